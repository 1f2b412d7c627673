"""Which files an audit is made of, in a small repository on disk that nobody imports."""

from pathlib import Path

import pytest

from auditdp.runner.audit_sources import trace
from auditdp.runner.changes import Changed, concerned
from auditdp.runner.imports import Imports

FILES = {
    "pkg/__init__.py": "",
    "pkg/one.py": "from .deep import value\nimport numpy\n",
    "pkg/two.py": "from pkg import shared\n",
    "pkg/shared.py": "def f():\n    import late\n",
    "pkg/deep/__init__.py": "from . import value\n",
    "pkg/deep/value.py": "",
    "late.py": "",
    "src/installed.py": "",
    "unused.py": "",
    "audits/beside.py": "",
    ".hidden/secret.py": "",
}
AUDITS = """
from auditdp import Audit, audit
from pkg.one import a
from pkg import two as t
import beside
import installed
import unused
CONSTANT = installed.x

def helper():
    return t.f()

@audit()
def first():
    return a()

@audit()
def second():
    return helper(), CONSTANT

@audit()
def third(size=beside.y):
    return size
"""
PACKAGE = {"pkg/__init__.py"}
ONE = PACKAGE | {"pkg/one.py", "pkg/deep/__init__.py", "pkg/deep/value.py"}
TWO = PACKAGE | {"pkg/two.py", "pkg/shared.py", "late.py", "src/installed.py"}


@pytest.fixture
def root(tmp_path):
    for name, text in {**FILES, "audits/audit_it.py": AUDITS}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def traced(root, factory, removed=()):
    found = trace(
        Imports(root, frozenset(removed)), root / "audits" / "audit_it.py", factory
    )
    return {file.relative_to(root).as_posix() for file in found.files} - {
        "audits/audit_it.py"
    }, found.opaque


def add(root, text, name="audits/audit_it.py"):
    (root / name).write_text((root / name).read_text() + text)


@pytest.mark.parametrize(
    ("factory", "files"),
    [("first", ONE), ("second", TWO), ("third", {"audits/beside.py"})],
)
def test_an_audit_is_made_of_what_its_factory_reaches(root, factory, files):
    assert traced(root, factory) == (files, "")


@pytest.mark.parametrize(
    "statement",
    [
        "try:\n    import unused as u\nexcept ImportError:\n    u = None\n",
        "if True:\n    import unused\n",
        "from unused import *\n",
        "unused.patch()\n",
        "unused.setting = 3\n",
        "import importlib\nimportlib.import_module('unused')\n",
    ],
)
def test_what_runs_when_the_file_is_imported_belongs_to_every_audit(root, statement):
    add(root, statement)
    assert "unused.py" in traced(root, "third")[0]


def test_code_that_reaches_names_it_does_not_write_down_has_the_whole_file(root):
    add(root, "\n@audit()\ndef fourth():\n    return globals()['a']\n")
    assert traced(root, "fourth")[0] == ONE | TWO | {"unused.py", "audits/beside.py"}


def test_what_only_a_run_can_tell_is_said(root):
    add(root, "import importlib\nimportlib.import_module(name())\n", "late.py")
    assert (
        traced(root, "second")[1]
        == "late.py, line 2, imports a name that only a run determines"
    )
    assert traced(root, "first")[1] == ""
    (root / "late.py").write_text("no python at all (")
    assert "late.py, line 1" in traced(root, "second")[1]


def test_imports_that_lead_to_each_other_end(root):
    add(root, "import pkg.one\n", "pkg/deep/value.py")
    assert traced(root, "first")[0] == ONE


def test_a_file_that_is_gone_still_answers_the_import_of_it(root):
    (root / "late.py").unlink()
    assert "late.py" not in traced(root, "second")[0]
    assert "late.py" in traced(root, "second", [root / "late.py"])[0]


def selected(root, *files):
    audits = [
        (f"audits/audit_it.py::{name}", root / "audits" / "audit_it.py")
        for name in ("first", "second", "third")
    ]
    found = concerned(
        audits, Changed("base", frozenset(root / file for file in files)), root
    )
    return {
        name.rpartition("::")[2]: reason for name, reason in found.concerned.items()
    }, found


@pytest.mark.parametrize(
    ("files", "names", "reason"),
    [
        (["pkg/deep/value.py"], ["first"], "pkg/deep/value.py changed"),
        (["late.py", "pkg/two.py"], ["second"], "late.py changed and 1 more"),
        (["pkg/__init__.py"], ["first", "second"], "pkg/__init__.py changed"),
        (
            ["audits/audit_it.py"],
            ["first", "second", "third"],
            "audits/audit_it.py changed",
        ),
        (["unused.py"], [], ""),
        (["README.md"], [], ""),
        ([], [], ""),
        (
            ["pyproject.toml"],
            ["first", "second", "third"],
            "pyproject.toml changed, which determines the installed packages",
        ),
        (
            ["sub/requirements-dev.txt"],
            ["first", "second", "third"],
            "which determines the installed packages",
        ),
    ],
)
def test_a_change_concerns_the_audits_that_are_made_of_it(root, files, names, reason):
    reasons, found = selected(root, *files)
    assert list(reasons) == names
    assert all(reason in message for message in reasons.values())
    assert len(found.left_out) == 3 - len(names)


def test_what_cannot_be_followed_is_run_or_named(root):
    add(root, "__import__(name())\n", "late.py")
    assert selected(root, "unused.py")[0] == {
        "second": "late.py, line 1, imports a name that only a run determines"
    }
    assert selected(root, "data.csv")[0] == {}
    assert selected(root, "data.csv")[1].untraced == ("data.csv",)


def test_a_change_of_the_harness_concerns_every_audit(root):
    harness = Path(__file__).parents[4] / "auditdp" / "claims.py"
    audits = [("audits/audit_it.py::third", root / "audits" / "audit_it.py")]
    found = concerned(audits, Changed("base", frozenset({harness})), root)
    assert "auditdp itself changed" in found.concerned["audits/audit_it.py::third"]
