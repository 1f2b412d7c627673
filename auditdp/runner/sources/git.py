"""Which files of a repository changed since a revision, as git knows it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from auditdp.errors import ConfigurationError
from auditdp.runner.sources.reach import changed_names

SECONDS = 60.0


@dataclass(frozen=True)
class Changed:
    """What changed."""

    base: str
    """The commit that the working tree is compared with: where the revision and HEAD parted."""
    files: frozenset[Path]
    """Files that differ, are new, or are gone; absolute."""
    top: Path | None = None
    """The folder of the repository; None where what was there before cannot be asked for."""

    def names(self, file: Path) -> set[str]:
        """Return the names at the top of a Python file that differ, as ``changed_names`` has them."""
        before = after = None
        if self.top is not None and file.is_file():
            after = file.read_bytes()
            shown = _git(self.top, "show", f"{self.base}:{file.relative_to(self.top).as_posix()}")
            before = None if shown.returncode else shown.stdout.encode("utf-8", "surrogateescape")
        return changed_names(before, after)

    @property
    def removed(self) -> frozenset[Path]:
        """Those that are not there any more."""
        return frozenset(file for file in self.files if not file.exists())


@contextmanager
def checked_out(commit: str, folder: Path) -> Iterator[Path]:
    """Check a commit out into a folder of its own, and yield what there corresponds to a folder of the repository.

    Files that are not committed, submodules and hooks are left out.

    Raises:
        ConfigurationError: If git cannot do it.
    """
    top = Path(_asked(folder, commit, "rev-parse", "--show-toplevel").rstrip("\n")).resolve()
    with TemporaryDirectory(prefix="auditdp-version-", ignore_cleanup_errors=True) as made:
        tree = Path(made).resolve() / "tree"
        hooks = ["-c", f"core.hooksPath={os.devnull}"]
        _asked(folder, commit, *hooks, "worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            yield tree / folder.resolve().relative_to(top)
        finally:
            _git(folder, "worktree", "remove", "--force", str(tree))


def changed_since(revision: str, folder: Path) -> Changed:
    """Return the files that the working tree changes, with what is not committed, since it parted from a revision.

    Raises:
        ConfigurationError: If there is no git or no repository, the revision is unknown, or the history is too short.
    """
    if not revision or revision.startswith("-"):
        raise ConfigurationError(f"revision {revision!r}: expected a revision, such as origin/main")
    top = Path(_asked(folder, revision, "rev-parse", "--show-toplevel").rstrip("\n"))
    shallow = _asked(folder, revision, "rev-parse", "--is-shallow-repository").strip() == "true"
    remedy = "fetch the whole history: git fetch --unshallow, or fetch-depth: 0 with actions/checkout, or GIT_DEPTH: 0"
    if _git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").returncode:
        if shallow:
            raise ConfigurationError(f"revision {revision}: not in this shallow clone; {remedy}")
        raise ConfigurationError(
            f"revision {revision}: git knows no such revision here; fetch it, or give another, such as HEAD~1"
        )
    base = _git(folder, "merge-base", revision, "HEAD")
    if base.returncode:
        why = (
            f"this clone is shallow and does not reach where they parted; {remedy}"
            if shallow
            else "unrelated histories"
        )
        raise ConfigurationError(f"revision {revision}: it has no commit in common with HEAD: {why}")
    commit = base.stdout.strip()
    differing = _asked(folder, revision, "diff", "--name-only", "--no-renames", "-z", commit, "--", str(top))
    untracked = _asked(top, revision, "ls-files", "--others", "--exclude-standard", "--full-name", "-z")
    names = [name for name in (differing + untracked).split("\0") if name]
    return Changed(commit[:12], frozenset((top / name).resolve() for name in names), top.resolve())


def _asked(folder: Path, revision: str, *arguments: str) -> str:
    done = _git(folder, *arguments)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise ConfigurationError(
            f"revision {revision}: git cannot tell what changed in {folder} ({lines[-1] if lines else 'it failed'}); "
            "run inside a repository, or without this option, which runs all audits"
        )
    return done.stdout


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise ConfigurationError("telling what changed needs git, which is not installed here") from None
    except subprocess.TimeoutExpired:
        raise ConfigurationError(f"git took longer than {SECONDS:g} seconds") from None
