"""The files that changed since a revision, by git, and the audits that they affect.

``changed_since`` finds the files, and ``concerned`` the audits.

Settings of a repository can name programs, such as filters, hooks and file monitors. In
a repository of somebody else these must not run. So ``Repository`` gives git a folder
of its own in place of ``.git``. That folder has the objects, references and index of
the repository, and only the settings that state the format of files.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from auditdp.errors import ConfigurationError
from auditdp.runner.audit_sources import HARNESS, trace
from auditdp.runner.imports import WHOLE, Imports, Reach, changed_names

SECONDS = 60.0


@dataclass(frozen=True)
class Changed:
    """The changes since a revision."""

    base: str
    """The commit with which the working tree is compared: the merge base of the
    revision and HEAD, as the first 12 characters of its hash."""
    files: frozenset[Path]
    """Absolute paths of the files that were changed, added or removed."""
    repository: Repository | None = None
    """The repository of the files; None if their old content is not available."""

    def names(self, file: Path) -> set[str]:
        """Return the names at the top of a Python file whose statements changed.

        The result is {``WHOLE``} if the file is new or removed, cannot be parsed, or
        has no known old content. ``ALWAYS`` stands for statements that run at every
        import.
        """
        before = after = None
        if self.repository is not None and file.is_file():
            after = file.read_bytes()
            name = file.relative_to(self.repository.top).as_posix()
            shown = self.repository.git("cat-file", "blob", f"{self.base}:{name}")
            before = (
                None
                if shown.returncode
                else shown.stdout.encode("utf-8", "surrogateescape")
            )
        return changed_names(before, after)

    @property
    def removed(self) -> frozenset[Path]:
        """The changed files that no longer exist."""
        return frozenset(file for file in self.files if not file.exists())


@contextmanager
def checked_out(commit: str, folder: Path) -> Iterator[Path]:
    """Check out a commit, and yield the folder in it that corresponds to ``folder``.

    The files are temporary, and removed after the block. Files that are not committed,
    and submodules, are missing.

    Raises:
        ConfigurationError: If git is missing or fails, or ``folder`` is in no
            repository.
    """
    repository = Repository(folder, commit)
    with TemporaryDirectory(
        prefix="auditdp-version-", ignore_cleanup_errors=True
    ) as made:
        tree = Path(made).resolve() / "tree"
        tree.mkdir()
        index = {"GIT_INDEX_FILE": str(tree.with_name("index"))}
        repository.asked("read-tree", commit, **index)
        repository.asked("checkout-index", "--all", f"--prefix={tree}/", **index)
        yield tree / folder.resolve().relative_to(repository.top)


def changed_since(revision: str, folder: Path) -> Changed:
    """Return the changes since the merge base of a revision and HEAD.

    Changes that are not committed count. So do new files, except those that git
    ignores.

    Raises:
        ConfigurationError: If there is no git or no repository; or if the revision is
            unknown, or has no common commit with HEAD, for example because the clone is
            shallow.
    """
    if not revision or revision.startswith("-"):
        raise ConfigurationError(
            f"revision {revision!r}: expected a revision, such as origin/main"
        )
    repository = Repository(folder, revision)
    shallow = repository.shallow
    remedy = (
        "fetch the whole history: git fetch --unshallow, or fetch-depth: 0 with "
        "actions/checkout, or GIT_DEPTH: 0"
    )
    if repository.git(
        "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"
    ).returncode:
        if shallow:
            raise ConfigurationError(
                f"revision {revision}: not in this shallow clone; {remedy}"
            )
        raise ConfigurationError(
            f"revision {revision}: git knows no such revision here; fetch it, or give another, such as HEAD~1"
        )
    base = repository.git("merge-base", revision, "HEAD")
    if base.returncode:
        why = (
            f"this clone is shallow and does not reach where they parted; {remedy}"
            if shallow
            else "unrelated histories"
        )
        raise ConfigurationError(
            f"revision {revision}: it has no commit in common with HEAD: {why}"
        )
    commit = base.stdout.strip()
    # Without this option for submodules git would run itself in each of them.
    listed = (
        "--name-only",
        "--no-renames",
        "--ignore-submodules=dirty",
        "-z",
    )
    differing = repository.asked("diff", *listed, commit, "--", ".")
    untracked = repository.asked(
        "ls-files", "--others", "--exclude-standard", "--full-name", "-z"
    )
    names = [name for name in (differing + untracked).split("\0") if name]
    return Changed(
        commit[:12],
        frozenset((repository.top / name).resolve() for name in names),
        repository,
    )


KEPT = (
    *(
        "core.repositoryformatversion",
        "extensions.objectformat",
        "extensions.refstorage",
    ),
    *(
        "core.autocrlf",
        "core.eol",
        "core.filemode",
        "core.ignorecase",
        "core.precomposeunicode",
        "core.symlinks",
    ),
)
"""Settings of a repository that git may read. They state the format of files, and none
of them can name a program."""
SHARED = ("refs", "packed-refs", "reftable", "logs", "shallow", "info")
"""Entries of ``.git`` to which the folder of ``Repository`` has links."""
OWN = ("HEAD", "config", "index", "objects")
"""Entries of ``.git`` that are copied into the folder of ``Repository``, or that
environment variables of git name."""


class Repository:
    """A git repository, read without running programs that its settings name.

    Args:
        folder: A folder in the working tree of the repository.
        revision: The requested revision, for messages of errors.

    Attributes:
        top: The top folder of the working tree.
        shallow: Whether the clone is shallow, so that a part of the history is missing.

    Raises:
        ConfigurationError: If there is no git, ``folder`` is in no working tree, or the
            path of the tree has a line break.
    """

    def __init__(self, folder: Path, revision: str) -> None:
        self._revision = revision
        self._folder, self._environment = folder, dict(os.environ)
        paths = [word for name in (*SHARED, *OWN) for word in ("--git-path", name)]
        found = (
            self.asked(
                "rev-parse", "--show-toplevel", "--is-shallow-repository", *paths
            )
            .removesuffix("\n")
            .split("\n")
        )
        self.top, self.shallow = Path(found[0]).resolve(), found[1] == "true"
        if len(found) != len(paths) // 2 + 2 or not folder.resolve().is_relative_to(
            self.top
        ):
            raise ConfigurationError(
                f"revision {revision}: {folder} is not in the files of its "
                "repository, or that has a line break in its path"
            )
        places = {
            name: (folder / path).resolve()
            for name, path in zip((*SHARED, *OWN), found[2:], strict=True)
        }
        settings = self.asked(
            "config", "--file", str(places["config"]), "--no-includes", "--list", "-z"
        )
        # A folder of our own, without the repository's settings, which may name programs.
        self._made = TemporaryDirectory(
            prefix="auditdp-git-", ignore_cleanup_errors=True
        )
        made = Path(self._made.name)
        for name in SHARED:
            if places[name].exists():
                (made / name).symlink_to(places[name])
        (made / "HEAD").write_bytes(places["HEAD"].read_bytes())
        (made / "config").touch()
        for setting in settings.split("\0"):
            name, _, value = setting.partition("\n")
            if name in KEPT:
                self.asked(
                    "config", "--file", str(made / "config"), name, value or "true"
                )
        self._folder = self.top
        self._environment |= {
            "GIT_DIR": str(made),
            "GIT_WORK_TREE": str(self.top),
            "GIT_INDEX_FILE": str(places["index"]),
            "GIT_OBJECT_DIRECTORY": str(places["objects"]),
            "GIT_OPTIONAL_LOCKS": "0",
        }

    def asked(self, *arguments: str, **variables: str) -> str:
        """Return the standard output of a git command.

        Args:
            arguments: The arguments of git.
            variables: Additional environment variables.

        Raises:
            ConfigurationError: If git is not installed, fails, or takes too long.
        """
        done = self.git(*arguments, **variables)
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            raise ConfigurationError(
                f"revision {self._revision}: git cannot tell what changed in {self._folder} "
                f"({lines[-1] if lines else 'it failed'}); "
                "run inside a repository, or without this option, which runs all audits"
            )
        return done.stdout

    def git(
        self, *arguments: str, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run git and return the ended process, whatever its exit code.

        Args:
            arguments: The arguments of git.
            variables: Additional environment variables.

        Raises:
            ConfigurationError: If git is not installed, or takes too long.
        """
        try:
            return subprocess.run(
                ["git", "-C", str(self._folder), *arguments],
                capture_output=True,
                encoding="utf-8",
                # Names of files in git's output need not be UTF-8.
                errors="surrogateescape",
                env={**self._environment, **variables},
                timeout=SECONDS,
                check=False,
            )
        except FileNotFoundError:
            raise ConfigurationError(
                "comparing revisions needs git, which is not installed here"
            ) from None
        except subprocess.TimeoutExpired:
            raise ConfigurationError(
                f"git took longer than {SECONDS:g} seconds"
            ) from None


FOR_ALL = (
    *("pyproject.toml", "setup.py", "setup.cfg", "*requirements*.txt"),
    *("*constraints*.txt", "*.lock", "Pipfile", "environment.y*ml"),
)
"""Patterns of names of files that list the installed packages. A change of such a file
affects every audit."""


@dataclass(frozen=True)
class Selection:
    """The audits that a change affects, and those that it does not affect."""

    concerned: Mapping[str, str]
    """The affected audits: the reason by the id of the audit."""
    left_out: tuple[str, ...]
    """Ids of the other audits."""
    untraced: tuple[str, ...]
    """Changed files below the working folder that are not Python, as relative paths.
    Audits may read them, but no import leads to them."""


def concerned(
    audits: Iterable[tuple[str, Path]], changed: Changed, root: Path
) -> Selection:
    """Return the audits that a change affects.

    A change affects an audit in three cases:

    - It changes code that the audit's factory reaches, in the audit file or in an
      imported file below ``root``.
    - It changes any Python file, and the imports of the audit are not all known.
    - It changes auditdp or the list of installed packages.

    Args:
        audits: The id and the file of each audit.
        changed: The change.
        root: The working folder.
    """
    imports = Imports(root, changed.removed)
    reach, names = Reach(imports), cache(changed.names)
    whole = _for_all(changed, root)
    reasons: dict[str, str] = {}
    left_out = []
    for identifier, file in audits:
        reason = whole or _reason(
            reach, file.resolve(), identifier.partition("::")[2], changed, names
        )
        if reason:
            reasons[identifier] = reason
        else:
            left_out.append(identifier)
    others = sorted(
        _shown(file, root)
        for file in changed.files
        if file.suffix != ".py" and file.is_relative_to(root)
    )
    return Selection(reasons, tuple(left_out), tuple(others))


def _for_all(changed: Changed, root: Path) -> str:
    for file in sorted(changed.files):
        if file.is_relative_to(HARNESS):
            return f"auditdp itself changed ({_shown(file, root)})"
        if any(fnmatch(file.name, pattern) for pattern in FOR_ALL):
            return (
                f"{_shown(file, root)} changed, which determines the installed packages"
            )
    return ""


def _reason(
    reach: Reach,
    file: Path,
    name: str,
    changed: Changed,
    names: Callable[[Path], set[str]],
) -> str:
    imports = reach.imports
    traced = trace(imports, file, name)
    touched = sorted(traced.files & changed.files)
    # Following names is slow, and only narrows down files that did change.
    reached = reach.of(file, name, traced.files) if touched else {}
    touched = [
        each for each in touched if _meets(reached.get(each, set()), names(each))
    ]
    if touched:
        more = f" and {len(touched) - 1} more" if len(touched) > 1 else ""
        return f"{_shown(touched[0], imports.root)} changed{more}"
    python = any(other.suffix == ".py" for other in changed.files)
    return traced.opaque if python else ""


def _meets(reached: set[str], changed: set[str]) -> bool:
    """Return True if a changed name is reached; ``WHOLE`` stands for all names."""
    return bool(changed) if WHOLE in reached else bool(changed & {*reached, WHOLE})


def _shown(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)
