"""The README's first example is run, and prints what the README shows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.dear

README = Path(__file__).parents[2] / "README.md"
COMMAND = Path(sys.executable).with_name("auditdp")


def blocks(language):
    return re.findall(
        rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.S
    )


def without_times(text):
    return re.sub(r" +[\d.]+ (s|ms|min)$", "", text, flags=re.M)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readme")
    (folder / "audits").mkdir()
    (folder / "audits" / "audit_counts.py").write_text(
        blocks("python")[0], encoding="utf-8"
    )
    return subprocess.run(
        [COMMAND, "run", "--seed", "1"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_example_prints_what_the_readme_shows(run):
    shown = blocks("console")[0].partition("\n")[2]
    assert run.returncode == 1
    assert without_times(run.stdout).startswith(without_times(shown).rstrip("\n"))


def test_the_pytest_example_raises(tmp_path):
    definition = blocks("python")[0].partition("@audit")[0]
    (tmp_path / "test_count.py").write_text(
        definition + blocks("python")[1], encoding="utf-8"
    )
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "test_count.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 1
    assert "PrivacyViolation" in found.stdout
    assert "noisy_count is not 1-DP" in found.stdout


def test_every_command_in_the_readme_exists():
    known = subprocess.run(
        [COMMAND, "--help"], capture_output=True, text=True, check=True
    ).stdout
    for name in set(re.findall(r"`auditdp (\w+)", README.read_text(encoding="utf-8"))):
        assert name in known
