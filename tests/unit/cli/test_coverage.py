"""``auditdp coverage``: which functions that draw noise no audit reaches, and which of a change are audited."""

import subprocess
from pathlib import Path

import pytest

from auditdp.cli.small_commands import coverage

RELEASE = """
def count(x, rng): return x + _noise(rng)
def _noise(rng): return rng.laplace()
def total(x, rng): return x + rng.laplace()
def plain(x): return x
class Server:
    def release(self, x, rng): return x + rng.laplace()
"""
AUDIT = """
from auditdp import Audit, PureDP, audit
from package.release import count, Server, total

@audit(source="here")
def count_is_private():
    return Audit(count, PureDP(1.0), [(0, 1)], controls=[Server().release])

def no_audit():
    return total
"""


def git(*words):
    subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", *words],
        check=True,
        capture_output=True,
    )


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "package/release.py": RELEASE,
        "package/__init__.py": "",
        "audits/audit_a.py": AUDIT,
    }.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)


def test_what_no_audit_reaches_is_listed_and_a_change_is_counted(project, capsys):
    coverage()
    found = [
        "package/release.py:4  total",
        "3 public functions draw randomness; audits reach 2",
    ]
    assert capsys.readouterr().out.splitlines() == found
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "all")):
        git(*words)
    changed = (
        RELEASE.replace("x + rng.laplace()", "x + 2 * rng.laplace()", 1)
        + "def fresh(x, rng): return rng.random()\n"
    )
    Path("package/release.py").write_text(
        changed.replace("rng.laplace()\ndef plain", "rng.normal()\ndef plain")
    )
    coverage([Path("package")], since="HEAD")
    assert capsys.readouterr().out.splitlines() == [
        "package/release.py:4  total  changed",
        "package/release.py:8  fresh  changed",
        "4 public functions draw randomness; audits reach 2",
        "the change since HEAD touches 2 of them; audits reach 0 of these",
    ]
