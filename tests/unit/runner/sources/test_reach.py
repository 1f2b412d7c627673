"""Which audits a change of a file concerns, by what their factories reach in it."""

import subprocess

import pytest

from auditdp.runner.changes import changed_since, concerned
from auditdp.runner.imports import changed_names

FILES = {
    "pkg/__init__.py": "from .counts import count\nfrom .means import mean\n",
    "pkg/counts.py": "SCALE = 1.0\n\ndef count(rows, rng):\n    return len(rows) + rng.laplace(scale=SCALE)\n\n"
    "def unused(rows):\n    return rows\n",
    "pkg/means.py": "from pkg.counts import count as number\n\n"
    "def mean(rows, rng):\n    return sum(rows) / number(rows, rng)\n",
    "audit_it.py": "from auditdp import audit\nfrom pkg import count, mean\n\n@audit\ndef counted():\n    return count\n\n"
    "@audit\ndef averaged():\n    return mean\n",
}
BOTH = {"averaged", "counted"}


def git(folder, *arguments):
    settings = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run(
        ["git", *settings, *arguments], cwd=folder, check=True, capture_output=True
    )


@pytest.mark.parametrize(
    ("file", "before", "after", "names"),
    [
        ("pkg/counts.py", "SCALE = 1.0", "SCALE = 0.5", BOTH),
        ("pkg/counts.py", "return rows", "return [rows]", set()),
        ("pkg/counts.py", "SCALE = 1.0", "# about the scale\nSCALE = 1.0", set()),
        ("pkg/counts.py", "def unused", '"""Text."""\n\ndef unused', set()),
        ("pkg/counts.py", "def unused(", "print(1)\n\ndef unused(", BOTH),
        (
            "pkg/counts.py",
            "def unused(",
            "def registered(f):\n    return f\n\n@registered\ndef unused(",
            BOTH,
        ),
        ("pkg/means.py", "sum(rows)", "max(rows)", {"averaged"}),
        (
            "pkg/__init__.py",
            "from .means import mean\n",
            "from .means import mean\nVERSION = 2\n",
            set(),
        ),
        (
            "pkg/__init__.py",
            "from .counts import count\n",
            "from .means import number as count\n",
            {"counted"},
        ),
        ("audit_it.py", "    return mean\n", "    return (mean,)\n", {"averaged"}),
        (
            "audit_it.py",
            "    return mean\n",
            "    return globals()['mean']\n",
            {"averaged"},
        ),
    ],
)
def test_a_change_concerns_the_audits_that_reach_it(
    tmp_path, file, before, after, names
):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    assert FILES[file].count(before) == 1
    (tmp_path / file).write_text(FILES[file].replace(before, after))
    audits = [
        (f"audit_it.py::{name}", tmp_path / "audit_it.py") for name in sorted(BOTH)
    ]
    found = concerned(audits, changed_since("main", tmp_path), tmp_path)
    assert {name.rpartition("::")[2] for name in found.concerned} == names


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        (b"x = 1\n", b"x  =  1  # one\n", set()),
        (b"x = 1\n", b"x = 2\ny = 3\n", {"x", "y"}),
        (
            b"def f():\n    'old'\n    return 1\n",
            b"def f():\n    'new'\n    return 1\n",
            set(),
        ),
        (b"f()\n", b"g()\n", {""}),
        (
            b"from auditdp import audit as a\nP = 1\n@a(source=P)\ndef f(): return 1\n",
            b"from auditdp import audit as a\nP = 1\n@a(source=P)\ndef f(): return 2\n",
            {"f"},
        ),
        (b"", b"if __name__ == '__main__':\n    f()\n", set()),
        (b"x = 1\n", b"no python (", {"*"}),
        (None, b"x = 1\n", {"*"}),
    ],
)
def test_what_differs_between_two_states_of_a_file(before, after, names):
    assert changed_names(before, after) == names
