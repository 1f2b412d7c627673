"""CI.md: somebody's repository from nothing to a check that fails on a broken mechanism and passes on its repair.

The commands are run as they are documented, but for the installation, which
``tests/check_wheel.py`` does in an environment of its own, and what they print is
what the document shows.
"""

import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.cli.conftest import PATIENCE
from tests.cli.test_readme import blocks, without_times

pytestmark = pytest.mark.dear

DOCUMENT = Path(__file__).parents[2] / "CI.md"
HOLDS, LEAKS = "scale=1.0", "scale=0.5"


def commands():
    """Return each command of the document's first two console blocks with its output."""
    found = []
    for line in "".join(blocks("console", DOCUMENT)[:2]).splitlines():
        if line.startswith("$ "):
            found.append((line[2:].removeprefix("auditdp "), []))
        else:
            found[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in found]


def test_the_five_commands(project):
    source = project.write("counts.py", blocks("python", DOCUMENT)[0])

    def run(command):
        done = project(command)
        return done.code, without_times(done.out)

    def change(file, before, after):
        file.write_text(re.sub(before, after, file.read_text()))

    install, init, first, update, check = commands()
    assert install[0].startswith("pip install auditdp-")
    assert run(init[0]) == (0, init[1])
    assert run(first[0]) == (1, first[1])
    change(source, LEAKS, HOLDS)
    assert run(first[0]) == (0, "")
    assert run(update[0]) == (0, update[1])
    assert run(check[0]) == (0, check[1])
    change(source, HOLDS, LEAKS)
    code, message = run(check[0])
    finding = "new finding        audits/audit_counts.py::noisy_count_is_private"
    assert (code, finding in message) == (1, True)
    change(source, LEAKS, HOLDS)
    change(project.root / "audits" / "audit_counts.py", r" +controls=.*\n", "")
    code, message = run(check[0])
    weaker = "control 'noisy_count without noise' is no longer refuted"
    assert (code, weaker in message) == (6, True)


@pytest.mark.full
def test_the_example_for_pytest(project):
    definition, test = blocks("python", DOCUMENT)[:2]
    project.write("counts.py", definition)
    project.write("test_counts.py", test)
    installed = [point.value for point in entry_points(group="pytest11")]
    plugin = [] if "auditdp.pytest_plugin" in installed else ["auditdp.pytest_plugin"]
    command = [sys.executable, "-m", "pytest", "-q"]
    for name in ("no:cacheprovider", *plugin):
        command += ["-p", name]
    done = subprocess.run(
        [*command, "test_counts.py"],
        cwd=project.root,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 1, done.stdout
    assert "noisy_count is not 1-DP" in done.stdout


def test_every_option_and_format_of_the_document_exists(project):
    text = DOCUMENT.read_text(encoding="utf-8")
    for group in ("run", "report", "baseline update", "init"):
        shown = project(f"{group} --help").out
        named = re.findall(rf"`auditdp {group} [^`]*?(--[a-z-]+)", text)
        assert [option for option in named if option not in shown] == []
