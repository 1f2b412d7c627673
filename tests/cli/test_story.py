"""CI.md: somebody's repository from nothing to a check that fails on a broken mechanism and passes on its repair.

The commands are run as they are documented, but for the installation, which ``tests/check_wheel.py`` does in an environment
of its own, and what they print is what the document shows.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import PATIENCE, SCRIPT

pytestmark = pytest.mark.dear

DOCUMENT = Path(__file__).parents[2] / "CI.md"


def blocks(language):
    return re.findall(
        rf"```{language}\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), flags=re.S
    )


def commands():
    """(command, what it prints) of the document's first two console blocks."""
    found = []
    for line in "".join(blocks("console")[:2]).splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in found]


def without_times(text):
    return re.sub(r" +[\d.]+ (s|ms|min)$", "", text, flags=re.M).rstrip("\n")


@pytest.fixture
def repository(project):
    (project.root / "counts.py").write_text(blocks("python")[0], encoding="utf-8")

    def run(command):
        words = shlex.split(command)
        assert words[0] == "auditdp"
        done = project(*words[1:])
        return done.code, without_times(done.out)

    return project.root, run


def test_the_five_commands(repository):
    folder, run = repository
    install, init, first, update, check = commands()
    assert install[0].startswith("pip install auditdp-")
    assert run(init[0]) == (0, init[1])
    assert run(first[0]) == (1, first[1])
    source = folder / "counts.py"
    source.write_text(source.read_text().replace("scale=0.5", "scale=1.0"))
    assert run(first[0]) == (0, "")
    assert run(update[0]) == (0, update[1])
    assert run(check[0]) == (0, check[1])
    source.write_text(source.read_text().replace("scale=1.0", "scale=0.5"))
    code, message = run(check[0])
    assert code == 1
    assert (
        "new finding        audits/audit_counts.py::noisy_count_is_private" in message
    )
    source.write_text(source.read_text().replace("scale=0.5", "scale=1.0"))
    audits = folder / "audits" / "audit_counts.py"
    audits.write_text(re.sub(r" +controls=.*\n", "", audits.read_text()))
    code, message = run(check[0])
    assert code == 6
    assert "control 'noisy_count without noise' is no longer refuted" in message


@pytest.mark.full
def test_the_example_for_pytest(repository):
    import sys

    folder, _ = repository
    (folder / "test_counts.py").write_text(blocks("python")[1], encoding="utf-8")
    plugin = (
        []
        if "auditdp.pytest_plugin" in _installed()
        else ["-p", "auditdp.pytest_plugin"]
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *plugin,
        "test_counts.py",
    ]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, "noisy_count is not 1-DP" in done.stdout) == (1, True), (
        done.stdout
    )


def _installed():
    from importlib.metadata import entry_points

    return [point.value for point in entry_points(group="pytest11")]


def test_every_option_and_format_of_the_document_exists():
    text = DOCUMENT.read_text(encoding="utf-8")
    for group in (["run"], ["report"], ["baseline", "update"], ["init"]):
        shown = subprocess.run(
            [SCRIPT, *group, "--help"], capture_output=True, text=True, check=True
        ).stdout
        for option in set(
            re.findall(rf"`auditdp {' '.join(group)} [^`]*?(--[a-z-]+)", text)
        ):
            assert option in shown, option
