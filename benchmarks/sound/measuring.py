"""Statements of the auditor about a case, as plain data; only this file uses it."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from auditdp import Audit, check
from auditdp.adjacency import Pair
from auditdp.auditing.gathering import Settings
from auditdp.claims.claim import Claim
from auditdp.errors import AuditError
from auditdp.numerics.streams import stream
from auditdp.record.budget import Budget
from auditdp.record.results import REFUTATIONS
from auditdp.runner.version_comparison import compared
from auditdp.runner.version_process import output_of, traces_of
from auditdp.tracing import Trace, compare
from benchmarks.sound.case import Known

ALPHA = 1e-6
"""Chance with which an audit of a correct mechanism may refute it, so that no refutation in a run is one of chance."""
ROUNDING = 1e-6
"""Relative distance by which a stated bound may lie below the truth."""


@dataclass(frozen=True)
class Stated:
    """The statements of traces about one mechanism.

    Attributes:
        bounds: Levels that are stated as bounds ("at most").
        certain: Sentences that are stated as certain, against the claim.
        hedged: Sentences that name a place to look at.
    """

    bounds: tuple[float, ...]
    certain: tuple[str, ...]
    hedged: tuple[str, ...]

    def too_small(self, truth: float) -> list[float]:
        """Return the bounds that lie below the truth."""
        return [bound for bound in self.bounds if bound < truth * (1 - ROUNDING)]


def stated(known: Known, seeds: range) -> Stated:
    """Return the statements of traces on all pairs, in both orders, for each seed."""
    bounds, certain, hedged = list[float](), list[str](), list[str]()
    with Trace(copy.deepcopy(known.function)) as trace:
        for seed in seeds:
            for number, pair in enumerate(
                [*known.pairs, *(pair[::-1] for pair in known.pairs)]
            ):
                data, neighbour = copy.deepcopy(pair)
                found = compare(
                    trace,
                    data,
                    neighbour,
                    stream(seed, known.name, number),
                    claim=known.claim,
                )
                if found.is_bound:
                    bounds.append(found.level)
                for finding in found.findings:
                    (certain if finding.is_confirmed else hedged).append(
                        f"{finding.kind}: {finding.sentence}"
                    )
    return Stated(*(tuple(dict.fromkeys(each)) for each in (bounds, certain, hedged)))


@dataclass(frozen=True)
class Judged:
    """The outcome of an audit.

    Attributes:
        verdict: The verdict, or ERROR.
        accuses: Whether that is a refutation.
        statement: The summary, or the error.
    """

    verdict: str
    accuses: bool
    statement: str


def judged(known: Known, seed: int, calls: int) -> Judged:
    """Return the outcome of an audit of a mechanism."""
    try:
        result = check(
            copy.deepcopy(known.function),
            known.claim,
            list(known.pairs),
            calls=calls,
            alpha=ALPHA,
            seed=seed,
        )
    except AuditError as error:
        return Judged("ERROR", False, str(error))
    return Judged(result.verdict.value, result.verdict in REFUTATIONS, result.summary)


class OldVersion:
    """The version that stands, in this process; the comparison of two revisions has it in another one."""

    def __init__(self, function: Any, task: Any) -> None:
        self._function, self._task = function, task

    def traces(self, pairs: list[Pair], claim: Claim) -> Any:
        """Return the traces of pairs."""
        return traces_of(self._function, pairs, claim, self._task)

    def output(self, data: Any, seed: int) -> Any:
        """Return an output for an input."""
        return output_of(self._function, data, stream(seed, "old"))


@dataclass(frozen=True)
class Compared:
    """The statements of a comparison of two versions.

    Attributes:
        accuses: Whether it fails a check ("loses more").
        changed: Whether bets told the laws of the outputs apart.
        statement: Why it fails, or what changed.
        refuted: Whether the claim of the new version is refuted.
    """

    accuses: bool
    changed: bool
    statement: str
    refuted: bool = False

    @property
    def is_caught(self) -> bool:
        """True if the check of the change fails."""
        return self.accuses or self.refuted


def versions(
    old: Known, new: Known, seed: int, calls: int, judged_calls: int
) -> Compared:
    """Return the statements about two versions, and whether an audit refutes the new one."""
    task = SimpleNamespace(
        root_seed=seed, id=new.name, against=SimpleNamespace(revision="old")
    )
    built = Audit(new.function, new.claim, list(new.pairs))
    settings = Settings(ALPHA, Budget(calls), seed, new.name)
    try:
        comparison = compared(built, task, OldVersion(old.function, task), settings)
        found = comparison.result
    except AuditError as error:
        return Compared(
            False, False, f"ERROR: {error}", judged(new, seed, judged_calls).accuses
        )
    refuted = judged(new, seed, judged_calls).accuses
    return Compared(
        bool(found.worse),
        found.change.value == "changed",
        found.worse or found.text,
        refuted,
    )
