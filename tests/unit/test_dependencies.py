"""What code imports is declared in pyproject.toml, and what is declared is imported."""

import ast
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from auditdp.errors import EXTRAS
from tests.unit.parsed import parsed

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, GROUPS = SETTINGS["project"], SETTINGS["dependency-groups"]
OPTIONAL = PROJECT["optional-dependencies"]
ROOMS = {
    "auditdp": ("accountants", "attest", "dask", "torch", "parquet"),
    "mechanisms": (),
    "gnn": ("torch",),
    "audits": ("dev", "torch"),
    "libraries": ("libraries",),
    "benchmarks": ("bench", "dev", "libraries"),
    "docs": ("docs", "dev"),
    "tests": (
        "bench",
        "dev",
        "docs",
        "libraries",
        "parquet",
    ),  # tests that need one that is not dev are skipped without it
}
"""The extras and groups with which the code of each room may be run."""
DISTRIBUTIONS = {
    "distributed": "dask",
    "flint": "python-flint",
    "griffe": "griffelib",
    "jax": "jax-privacy",  # which needs it
    "markdown_it": "markdown-it-py",
    "PIL": "pillow",
    "pydantic_core": "pydantic",  # which pins it
    "pydp": "python-dp",
    "sklearn": "scikit-learn",
    "typing_extensions": "pydantic",  # which needs it, and asks for its TypedDict before Python 3.12
    "yaml": "pyyaml",
}
"""Where modules come from that are not called like their distribution."""
GIVEN = {("auditdp", "pytest"), ("auditdp", "ipython"), ("benchmarks", "autodp")}
"""Imported only where somebody uses them: the plugin of pytest, progress in a notebook, a peer."""


def names(requirements):
    return {canonicalize_name(Requirement(text).name) for text in requirements}


@cache
def imported(room):
    """The distributions that the modules of a room import, each with a module that does."""
    found = {}
    for file in sorted((ROOT / room).rglob("*.py")):
        for node in parsed(file).imports:
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                modules = [node.module]
            elif isinstance(node, ast.Call):
                modules = [
                    arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)
                ]
            for module in modules:
                top = module.partition(".")[0]
                beside = file.with_name(f"{top}.py").exists()
                if (
                    top not in sys.stdlib_module_names
                    and top not in ROOMS
                    and not beside
                ):
                    found[canonicalize_name(DISTRIBUTIONS.get(top, top))] = (
                        file.relative_to(ROOT).as_posix()
                    )
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_what_is_imported_is_declared(room):
    declared = names(PROJECT["dependencies"]).union(
        *(names((OPTIONAL | GROUPS)[extra]) for extra in ROOMS[room])
    )
    undeclared = {
        name: file for name, file in imported(room).items() if name not in declared
    }
    assert {(room, name) for name in undeclared} <= GIVEN, undeclared


def test_what_is_declared_is_imported():
    assert names(PROJECT["dependencies"]) <= set(imported("auditdp"))


def test_every_extra_has_an_importer():
    everything = {name for room in ROOMS for name in imported(room)}
    for extra in (*OPTIONAL.values(), GROUPS["libraries"]):
        assert names(extra) & everything, extra


def test_messages_name_extras_that_exist():
    assert set(EXTRAS.values()) <= set(OPTIONAL)
    for module, extra in EXTRAS.items():
        assert canonicalize_name(DISTRIBUTIONS.get(module, module)) in names(
            OPTIONAL[extra]
        )


def test_the_lock_has_all_that_is_needed_as_it_is_pinned_and_from_the_public_index():
    lock = tomllib.loads((ROOT / "pylock.toml").read_text())
    pins = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines()
    )
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    locked = {package["name"]: package["version"] for package in lock["packages"]}
    assert {
        name: pinned.get(name, version) for name, version in locked.items()
    } == locked
    assert names([*PROJECT["dependencies"], *OPTIONAL["attest"]]) <= set(locked)
    files = [
        file
        for each in lock["packages"]
        for file in (*each.get("wheels", ()), each.get("sdist"))
    ]
    assert {file["url"].split("/")[2] for file in files if file} == {
        "files.pythonhosted.org"
    }


def test_python_versions_agree():
    versions = {
        text.rpartition(":: ")[2]
        for text in PROJECT["classifiers"]
        if "Python :: 3." in text
    }
    assert (
        PROJECT["requires-python"]
        == f">={min(versions, key=lambda text: int(text.partition('.')[2]))}"
    )


SMALL_AUDIT = """
import sys
from pathlib import Path

from auditdp import Audit, PureDP, audit

def noisy_count(count, rng):
    Path("loaded").write_text("\\n".join(sys.modules))
    return count + rng.laplace(scale=.5)

@audit()
def published_count():
    return Audit(noisy_count, PureDP(1.0), [(10, 11)])
"""
FOR_A_RUN = ("flint", "hypothesis", "matplotlib", "numpy", "scipy", "sklearn")
"""What the process of a command does without: audits have processes of their own."""
FOR_AN_AUDIT = (
    *("asyncio", "dp_accounting", "jinja2", "matplotlib", "rich", "sklearn", "typer"),
    *("scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.stats"),
)
"""What a small audit does without, up to and with its finding."""
WORDS = (
    "--seed",
    "1",
    "--budget",
    "quick",
    "--sandbox",
    "off",
)  # the audit writes which modules it finds


def test_a_run_loads_nothing_slow_that_it_does_not_use(tmp_path):
    (tmp_path / "audits").mkdir()
    (tmp_path / "audits" / "audit_count.py").write_text(SMALL_AUDIT)
    command = [sys.executable, "-X", "importtime", "-m", "auditdp", "run", *WORDS]
    ended = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "1 VIOLATED" in ended.stdout
    loaded = {
        line.rpartition("|")[2].strip()
        for line in ended.stderr.splitlines()
        if line.startswith("import time:")
    }
    assert "auditdp.cli.running" in loaded
    assert loaded.isdisjoint(FOR_A_RUN)
    loaded = set((tmp_path / "loaded").read_text().splitlines())
    assert "auditdp.evidence.confirmation" in loaded
    assert loaded.isdisjoint(FOR_AN_AUDIT)
