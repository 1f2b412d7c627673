"""A repository that somebody sent: nothing that its settings name runs when auditdp asks git what changed."""

import pytest

from auditdp.errors import ConfigurationError
from auditdp.runner.changes import changed_since, checked_out
from tests.cli.conftest import git

SETTINGS = """
[core]
	fsmonitor = {program} fsmonitor
	hooksPath = hooks
	sshCommand = {program} ssh
	pager = {program} pager
	editor = {program} editor
[diff]
	external = {program} external
[diff "python"]
	textconv = {program} textconv
	command = {program} command
[filter "python"]
	clean = {program} clean
	smudge = {program} smudge
	required = true
[filter "server"]
	process = {program} process
[include]
	path = more
"""
MORE = (
    '[filter "included"]\n\tclean = {program} included\n\tsmudge = {program} included\n'
)
ATTRIBUTES = (
    "*.py filter=python diff=python\n*.txt filter=server\n*.md filter=included\n"
)
FILES = ("one.py", "two.txt", "three.md")


@pytest.fixture
def sent(tmp_path):
    """The repository, and the file into which all that runs would write its name."""
    root, ran, program = tmp_path / "sent", tmp_path / "ran", tmp_path / "program"
    root.mkdir()
    program.write_text(f"#!/bin/sh\necho $1 >> {ran}\ncat\n")
    program.chmod(0o755)
    git(root, "init", "-q", "-b", "main")
    (root / ".gitattributes").write_text(ATTRIBUTES)
    for name in FILES:
        (root / name).write_text("x = 1\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    for name in FILES:
        (root / name).write_text("x = 2\n")
    hooks = root / "hooks"
    hooks.mkdir()
    for hook in ("post-checkout", "post-index-change", "reference-transaction"):
        (hooks / hook).write_text(f"#!/bin/sh\necho {hook} >> {ran}\n")
        (hooks / hook).chmod(0o755)
    with (root / ".git/config").open("a") as config:
        config.write(SETTINGS.format(program=program))
    (root / ".git/more").write_text(MORE.format(program=program))
    return root, ran


def test_nothing_that_its_settings_name_runs(sent):
    root, ran = sent
    changed = changed_since("HEAD", root)
    assert {file.name for file in changed.files} == {
        *FILES,
        "post-checkout",
        "post-index-change",
        "reference-transaction",
    }
    assert changed.names(root / "one.py") == {"x"}
    with checked_out("HEAD", root) as tree:
        assert {name: (tree / name).read_text() for name in FILES} == dict.fromkeys(
            FILES, "x = 1\n"
        )
    assert not ran.exists(), ran.read_text()


def test_they_would_run_where_git_reads_them(sent):
    root, ran = sent
    git(root, "diff", "--name-only", "HEAD")
    assert {"fsmonitor", "clean", "included"} <= set(ran.read_text().split())


@pytest.mark.parametrize("work_tree", ["{elsewhere}", '"{elsewhere}\\nb"'])
def test_settings_that_lead_elsewhere_are_refused(sent, tmp_path, work_tree):
    root, _ = sent
    for name in ("elsewhere", "elsewhere\nb"):
        (tmp_path / name).mkdir()
    with (root / ".git/config").open("a") as config:
        config.write(
            f"[core]\n\tworktree = {work_tree.format(elsewhere=tmp_path / 'elsewhere')}\n"
        )
    with pytest.raises(ConfigurationError, match="not in the files of its repository"):
        changed_since("HEAD", root)
    with (
        pytest.raises(ConfigurationError, match="not in the files of its repository"),
        checked_out("HEAD", root),
    ):
        pass
