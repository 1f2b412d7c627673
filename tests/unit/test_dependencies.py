"""What code imports is declared in pyproject.toml, and what is declared is imported."""

import ast
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from auditdp.errors import EXTRAS

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OPTIONAL = PROJECT["optional-dependencies"]
ROOMS = {
    "auditdp": ("dask", "torch", "parquet"),
    "mechanisms": (),
    "gnn": ("torch",),
    "audits": ("dev", "torch"),
    "libraries": ("libraries",),
    "benchmarks": ("bench", "dev"),
    "docs": ("docs", "dev"),
    "tests": ("dev", "docs", "libraries", "parquet"),  # tests that need one of the last three are skipped without it
}
"""The extras with which the code of each room may be run."""
DISTRIBUTIONS = {
    "distributed": "dask",
    "flint": "python-flint",
    "griffe": "griffelib",
    "markdown_it": "markdown-it-py",
    "PIL": "pillow",
    "pydantic_core": "pydantic",  # which pins it
    "pydp": "python-dp",
    "sklearn": "scikit-learn",
    "typing_extensions": "pydantic",  # which needs it, and asks for its TypedDict before Python 3.12
    "yaml": "pyyaml",
}
"""Where modules come from that are not called like their distribution."""
GIVEN = {("auditdp", "pytest"), ("auditdp", "ipython"), ("auditdp", "pandas")}
"""Imported only where somebody uses them: the plugin of pytest, progress in a notebook, rows of a frame."""


def names(requirements):
    return {canonicalize_name(Requirement(text).name) for text in requirements}


@cache
def imported(room):
    """The distributions that the modules of a room import, each with a module that does."""
    found = {}
    for file in sorted((ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_bytes())):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                modules = [node.module]
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "importorskip")):
                modules = [arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)]
            for module in modules:
                top = module.partition(".")[0]
                if top not in sys.stdlib_module_names and top not in ROOMS:
                    found[canonicalize_name(DISTRIBUTIONS.get(top, top))] = file.relative_to(ROOT).as_posix()
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_what_is_imported_is_declared(room):
    declared = names(PROJECT["dependencies"]).union(*(names(OPTIONAL[extra]) for extra in ROOMS[room]))
    undeclared = {name: file for name, file in imported(room).items() if name not in declared}
    assert {(room, name) for name in undeclared} <= GIVEN, undeclared


def test_what_is_declared_is_imported():
    assert names(PROJECT["dependencies"]) <= set(imported("auditdp"))


def test_every_extra_has_an_importer():
    everything = {name for room in ROOMS for name in imported(room)}
    for extra in set(OPTIONAL) - {"dev", "bench", "docs"}:
        assert names(OPTIONAL[extra]) & everything, extra


def test_messages_name_extras_that_exist():
    assert set(EXTRAS.values()) <= set(OPTIONAL)
    for module, extra in EXTRAS.items():
        assert canonicalize_name(DISTRIBUTIONS.get(module, module)) in names(OPTIONAL[extra])


def test_python_versions_agree():
    versions = {text.rpartition(":: ")[2] for text in PROJECT["classifiers"] if "Python :: 3." in text}
    assert PROJECT["requires-python"] == f">={min(versions, key=lambda text: int(text.partition('.')[2]))}"
