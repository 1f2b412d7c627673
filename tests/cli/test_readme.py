"""The README's first example is run, and prints what the README shows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.dear

README = Path(__file__).parents[2] / "README.md"


def blocks(language, document=README):
    """Return the code blocks of a language in a document."""
    text = document.read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.S)


def without_times(text):
    return re.sub(r" +[\d.]+ (s|ms|min)$", "", text, flags=re.M).rstrip("\n")


def test_the_example_prints_what_the_readme_shows(project):
    project.write("audits/audit_counts.py", blocks("python")[0])
    run = project("run --seed 1")
    shown = blocks("console")[0].partition("\n")[2]
    assert run.code == 1
    assert without_times(run.out).startswith(without_times(shown))


def test_the_pytest_example_raises(project):
    definition = blocks("python")[0].partition("@audit")[0]
    project.write("test_count.py", definition + blocks("python")[1])
    command = [sys.executable, "-m", "pytest", "-q", "test_count.py"]
    found = subprocess.run(command, cwd=project.root, capture_output=True, text=True)
    assert found.returncode == 1
    assert "PrivacyViolation" in found.stdout
    assert "noisy_count is not 1-DP" in found.stdout


def test_every_command_in_the_readme_exists(project):
    known = project("--help").out
    named = re.findall(r"`auditdp (\w+)", README.read_text(encoding="utf-8"))
    assert [name for name in named if name not in known] == []
