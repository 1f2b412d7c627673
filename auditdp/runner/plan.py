"""The plan of a run: its audits, with parameters, randomness, level and budget.

``make_plan`` finds the audit files, collects their declarations (``Listed``), and makes
a ``Task`` for each selected audit.
"""

from __future__ import annotations

import ast
import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from auditdp.errors import ConfigurationError, did_you_mean
from auditdp.files import FileLimits, without_middle
from auditdp.record.budget import LONGEST, MOST_SEED, Budget

if TYPE_CHECKING:
    from auditdp.record.results import LedgerEntry

PATTERN = "audit_*.py"
Shown = Annotated[str, AfterValidator(without_middle)]
"""Text from the process of an audit, without the middle of a long one."""


@dataclass(frozen=True)
class Listed:
    """An audit that a file declares, as plain data."""

    id: Annotated[str, Field(max_length=FileLimits.id_characters)]
    """Path of the file and name of the audit, as in ``audits/audit_edges.py::dprr``."""
    path: str
    """Absolute path of the file."""
    expect: Annotated[str, Field(pattern="^(holds|violation|miscalibration)$")] = (
        "holds"
    )
    timeout: Annotated[float, Field(gt=0, le=LONGEST)] | None = None
    """Time limit that the audit declares, in seconds; None if it declares none."""
    description: str = ""
    parameters: tuple[str, ...] = ()
    """Names of its parameters."""
    unreadable: str = ""
    """Why the value that is given for a parameter cannot be read; empty otherwise."""


@dataclass(frozen=True)
class Collected:
    """The outcome of importing one audit file."""

    audits: tuple[Listed, ...] = ()
    failure: Shown = ""
    """The reason why the file could not be imported; empty if it could."""
    sources: tuple[str, ...] = ()
    """Files below the working folder that the import loaded, with the audit file."""
    printed: Shown = ""
    """Text that the import printed."""
    forkable: bool = True
    """True if a process that has imported the file can be forked."""

    def as_json(self) -> bytes:
        """Return the JSON that the process of the file sends to the run."""
        # A validator of pydantic would take a tenth of the time of ``auditdp list``.
        return json.dumps(asdict(self)).encode()


Collector = Callable[[Sequence[Path]], Sequence[Collected]]
"""Function that imports audit files, each in a process of its own, and returns their
declarations in the order of the files."""


@dataclass(frozen=True)
class Against:
    """Another revision of the code, with which mechanisms are compared."""

    revision: str
    """The requested revision with its commit, such as 'main (1a2b3c4d5e6f)'."""
    commit: str
    folder: str
    """Folder in the checked-out revision that corresponds to the working folder."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Options of a run with one value for all of its audits."""

    root_seed: int
    data: str = ""
    """Folder of data files; empty for none."""
    mutants: bool = False
    """True to audit the mutants of each mechanism as well."""
    against: Against | None = None
    """The revision with which mechanisms are compared; None for no comparison."""
    trace: bool = True
    """True to trace the code of mechanisms before games."""


@dataclass(frozen=True)
class Task(Asked):
    """One audit to run: the plain data that a worker process needs.

    Attributes:
        id: The id of the audit.
        path: Absolute path of the audit file.
        name: Name of the audit in its file.
        root: The working folder.
        overrides: Given parameters of this audit, as text.
        expect: The fault that the audit declares, or 'holds'.
        alpha: The audit's share of alpha.
        budget: The budget, as text for ``Budget.read``.
        timeout: Time limit in seconds; None for no limit.
        recorded: Log wealth of the recorded game that this audit continues; None for a
            new game.
    """

    id: str
    path: str
    name: str
    root: str
    overrides: dict[str, str]
    expect: str
    alpha: float
    budget: str
    timeout: float | None
    recorded: float | None = None

    @property
    def reproduce(self) -> str:
        """The command that repeats this audit, without the option for a data folder."""
        # Without a folder, a name that starts with a hyphen would be an option.
        name = f"./{self.id}" if self.id.startswith("-") else self.id
        words = [
            "auditdp",
            "run",
            name,
            "--seed",
            str(self.root_seed),
            "--alpha",
            repr(self.alpha),
        ]
        words += ["--budget", self.budget]
        words += [
            word
            for name, value in self.overrides.items()
            for word in ("-P", f"{name}={value}")
        ]
        words += ["--mutants"] * self.mutants
        words += ["--no-trace"] * (not self.trace)
        words += ["--compare", self.against.commit] if self.against is not None else []
        return shlex.join(words)


@dataclass(frozen=True, kw_only=True)
class PlanOptions(Asked):
    """The options from which a plan is made."""

    overrides: Mapping[str, str] = field(default_factory=dict)
    """Parameters by name, as text; an audit takes those that it has."""
    alpha: float = 0.05
    budget: str = "standard"
    """The budget, as text for ``Budget.read``."""
    timeout: float | None = None
    """Time limit of every audit in seconds, in place of the limit that it declares;
    None if the declared limits count."""
    default_timeout: float | None = None
    """Time limit of audits that declare none, in seconds; None for no limit."""

    def check(self) -> None:
        """Check the budget, alpha, the seed and the time limits.

        Raises:
            ConfigurationError: If one of them is out of range or cannot be read.
        """
        Budget.read(self.budget)
        if not 0 < self.alpha < 1:
            raise ConfigurationError(
                f"expected alpha strictly between 0 and 1, got {self.alpha!r}"
            )
        if not 0 <= self.root_seed < MOST_SEED:
            raise ConfigurationError(
                f"expected a seed >= 0 and below 2^128, got {self.root_seed}"
            )
        for seconds in (self.timeout, self.default_timeout):
            if seconds is not None and not 0 < seconds <= LONGEST:
                raise ConfigurationError(
                    f"expected a timeout > 0 seconds and of at most 1e9, got {seconds!r}"
                )

    def task(self, audit: Listed, *, share: float) -> Task:
        """Return the task of one audit, with its share of alpha."""
        return Task(
            id=audit.id,
            path=audit.path,
            name=audit.id.partition("::")[2],
            root=str(Path.cwd()),
            overrides={
                name: value
                for name, value in self.overrides.items()
                if name in audit.parameters
            },
            expect=audit.expect,
            alpha=share,
            budget=str(Budget.read(self.budget)),
            timeout=next(
                (
                    t
                    for t in (self.timeout, audit.timeout, self.default_timeout)
                    if t is not None
                ),
                None,
            ),
            **{each.name: getattr(self, each.name) for each in fields(Asked)},
        )


@dataclass(frozen=True)
class Plan:
    """The tasks of a run in order, and the audit files that could not be collected."""

    tasks: list[Task]
    failures: list[tuple[str, str]] = field(default_factory=list)
    """(path, reason) of each file that could not be collected."""

    @property
    def ledger(self) -> list[LedgerEntry]:
        """The shares of alpha, one for each task."""
        # This import is slow, and collecting does not need it.
        from auditdp.record.results import (
            LedgerEntry,
        )

        return [
            LedgerEntry(task.id, "verdict and lower bound", task.alpha)
            for task in self.tasks
        ]


def audit_files(targets: Sequence[str]) -> list[tuple[Path, str]]:
    """Return the audit files that targets select, as (file, name).

    The name is that of one audit, or '' for all audits of the file.

    Args:
        targets: Folders, files, or ids such as ``audits/audit_edges.py::dprr``. In a
            folder, files ``audit_*.py`` are selected, except in hidden folders.

    Raises:
        ConfigurationError: If a path does not exist.
    """
    found: list[tuple[Path, str]] = []

    def visible(file: Path, folder: Path) -> bool:
        return not any(part.startswith(".") for part in file.relative_to(folder).parts)

    for target in targets:
        text, _, name = target.partition("::")
        path = Path(text)
        if not path.exists():
            raise ConfigurationError(
                f"no such file or folder: {text}; give a folder of {PATTERN} files, a file, or an id; "
                "auditdp init FILE::FUNCTION writes a first one"
            )
        # The order of rglob depends on the file system; that of the tasks must not.
        files = (
            sorted(f for f in path.rglob(PATTERN) if visible(f, path))
            if path.is_dir()
            else [path]
        )
        found += [(file, name) for file in files if (file, name) not in found]
    return found


def discover(
    targets: Sequence[str], keyword: str = "", *, collect: Collector
) -> tuple[list[Listed], list[tuple[str, str]]]:
    """Collect audit files, and return the selected audits and the failures.

    Args:
        targets: Folders, files or ids, as for ``audit_files``.
        keyword: An expression for ``matches``; empty for all audits.
        collect: The function that imports audit files.

    Returns:
        The audits, each once, and (path, reason) of each file that failed.

    Raises:
        ConfigurationError: If a target does not exist, an id names no audit of its
            file, or the keyword is not an expression.
    """
    declared: list[Listed] = []
    failures: list[tuple[str, str]] = []
    files = []
    for path, name in audit_files(targets):
        if (shown := os.fsencode(path).decode(errors="backslashreplace")) == str(path):
            files.append((path, name))
        else:
            failures.append(
                (shown, "its name is not UTF-8, as records are; rename the file")
            )
    for (path, name), collected in zip(
        files, collect([path for path, _ in files]), strict=True
    ):
        found = list(collected.audits)
        if collected.failure:
            # Several ids may name one file, whose failure counts once.
            if (str(path), collected.failure) not in failures:
                failures.append((str(path), collected.failure))
            continue
        if name:
            names = [d.id.partition("::")[2] for d in found]
            if name not in names:
                raise ConfigurationError(
                    f"{path} declares no audit {name!r}; {did_you_mean(name, names)}"
                )
            found = [d for d in found if d.id.endswith(f"::{name}")]
        known = {d.id for d in declared}
        declared += [d for d in found if d.id not in known]
    return [d for d in declared if matches(keyword, d.id)], failures


def matches(expression: str, identifier: str) -> bool:
    """Return True if an id matches a keyword expression of ``-k``.

    The expression has words that occur in the id, joined by and, or, not and
    parentheses. Case does not matter. An empty expression matches every id. Another
    expression, such as "a.b", is itself a text to search for if it has none of these
    operators.

    >>> matches("edges and not degree", "audits/audit_edges.py::dprr")
    True

    Raises:
        ConfigurationError: If an expression with operators is not of this form.
    """
    if not expression.strip():
        return True
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
        return _evaluate(tree, identifier.lower())
    except (SyntaxError, ValueError):
        if any(f" {word} " in f" {expression} " for word in ("and", "or", "not")):
            raise ConfigurationError(
                f"-k {expression!r}: expected words joined by and, or, not and parentheses"
            ) from None
        return expression.lower() in identifier.lower()


def _evaluate(node: ast.expr, identifier: str) -> bool:
    if isinstance(node, ast.BoolOp):
        values = [_evaluate(value, identifier) for value in node.values]
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _evaluate(node.operand, identifier)
    if isinstance(node, ast.Name):
        return node.id.lower() in identifier
    raise ValueError("not a keyword expression")


def make_plan(
    targets: Sequence[str],
    options: PlanOptions,
    *,
    collect: Collector,
    keyword: str = "",
) -> Plan:
    """Return the plan of a run, with equal shares of alpha (a Bonferroni budget).

    It has no tasks if no audit is selected.

    Args:
        targets: Folders, files or ids, as for ``audit_files``.
        options: The options of the run.
        collect: The function that imports audit files.
        keyword: An expression for ``matches``; empty for all audits.

    Raises:
        ConfigurationError: If a target, an option or the keyword is invalid, or if no
            selected audit has a given parameter.
    """
    options.check()
    declared, failures = discover(targets, keyword, collect=collect)
    known = {name for d in declared for name in d.parameters}
    for name in options.overrides:
        if name not in known:
            raise ConfigurationError(
                f"-P {name}: no selected audit has this parameter; {did_you_mean(name, known)}"
            )
    for d in declared:
        # A value that cannot be read is refused before anything runs.
        if d.unreadable and options.overrides:
            raise ConfigurationError(d.unreadable)
    return Plan(
        [options.task(d, share=options.alpha / len(declared)) for d in declared],
        failures,
    )
