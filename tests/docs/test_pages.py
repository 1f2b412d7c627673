"""Every code block of the site's pages is run, in order and in a folder for each page, and what is printed is compared."""

import subprocess
import sys

import pytest

from docs.assembling import PAGES
from docs.blocks import RUN, blocks, play
from tests.cli.conftest import PATIENCE, environment, fork_server, project  # noqa: F401 - fixtures

pytestmark = pytest.mark.dear

PROGRAMS = {"pytest": ["-m", "pytest"], "python": []}
RUNNABLE = [
    page
    for page in sorted(PAGES.rglob("*.md"))
    if any(block.language in RUN for block in blocks(page.read_text(encoding="utf-8")))
]


@pytest.fixture
def run(project):  # noqa: F811 - the fixture
    def run(words):
        if words[0] == "auditdp":
            done = project(*words[1:])
            return done.code, done.out + done.err
        command = [sys.executable, *PROGRAMS[words[0]], *words[1:]]
        done = subprocess.run(
            command,
            cwd=project.root,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        return done.returncode, done.stdout + done.stderr

    return run


NEEDS = {"torch.md": ("torch", "opacus", "torch_geometric")}


@pytest.mark.parametrize(
    "page", RUNNABLE, ids=[page.relative_to(PAGES).as_posix() for page in RUNNABLE]
)
def test_the_blocks_of_a_page(page, project, run, monkeypatch):  # noqa: F811 - the fixture
    for module in NEEDS.get(page.name, ()):
        pytest.importorskip(module)
    monkeypatch.chdir(project.root)
    monkeypatch.syspath_prepend(str(project.root))
    before = set(sys.modules)
    try:
        played = list(play(page.read_text(encoding="utf-8"), project.root, run))
    finally:
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(
                str(project.root)
            ):
                del sys.modules[name]
    for command in played:
        assert command.agrees, (
            f"{command.line}\nis shown to print\n{command.shown}\nand prints\n{command.printed}"
        )
