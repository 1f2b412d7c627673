"""Gather the evidence about one mechanism: the kinds that apply, and their alphas.

``gather`` is the entry. ``Settings`` are the settings of a run for one of its audits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pkgutil import resolve_name
from typing import Any

from auditdp.auditing.declaration import Audit
from auditdp.auditing.remote_audit import AuditElsewhere, evidence_elsewhere
from auditdp.claims.claim import Claim
from auditdp.claims.estimates import Promise
from auditdp.errors import CollectionError, ConfigurationError, ExhaustedError, Timeout
from auditdp.evidence.request import EvidenceRequest, GameOptions
from auditdp.mechanism.calls.allowance import ASIDE, allowing
from auditdp.mechanism.calls.phases import phase
from auditdp.mechanism.calls.remote_mechanism import MechanismElsewhere
from auditdp.mechanism.calls.untouched import starting_untouched
from auditdp.numerics.streams import Streams, stream
from auditdp.record.budget import Budget
from auditdp.record.details import KINDS, Subject
from auditdp.record.results import Evidence, Verdict
from auditdp.record.verdict import without_fallen_certificates

UNCERTAIN_SHARE = 0.1
"""Share of alpha for kinds of evidence such as counting, if other kinds may also err.

The drawn outputs decide whether these kinds apply (``EvidenceKind.by_data``).
"""


def _gatherer(kind: str) -> Callable[[EvidenceRequest, float], Evidence | None]:
    function: Callable[[EvidenceRequest, float], Evidence | None] = resolve_name(
        KINDS[kind].gatherer
    )
    return function


# Every gatherer is imported with this module. So a process that imports this module and
# then forks spares its children these imports.
for _kind in KINDS:
    _gatherer(_kind)


@dataclass(frozen=True)
class Settings:
    """Settings of a run for one audit.

    Attributes:
        alpha: Largest probability that a true claim is refuted, or that a lower bound
            exceeds the true privacy loss.
        budget: The number of runs.
        root_seed: Root of all random streams.
        key: Name that keys the random streams of the audit.
        recorded: The recorded log wealth with which a continued game must begin; None
            unless a recorded audit is continued.
        trace: Whether the code is traced before its game.

    Raises:
        ConfigurationError: If alpha is not strictly between 0 and 1.
    """

    alpha: float
    budget: Budget
    root_seed: int
    key: str = "audit"
    recorded: float | None = None
    trace: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ConfigurationError(
                f"expected alpha strictly between 0 and 1, got alpha={self.alpha!r}"
            )

    def streams(self, purpose: str) -> Streams:
        """Return the random streams of one purpose."""
        return partial(stream, self.root_seed, self.key, purpose)


def gather(
    built: Audit,
    mechanism: Any,
    settings: Settings,
    purpose: str,
    *,
    control: bool = False,
) -> list[Evidence]:
    """Return the evidence of every kind that applies, in the order of ``KINDS``.

    Args:
        built: The audit.
        mechanism: Its mechanism, or one of its controls.
        settings: The settings of the run.
        purpose: Name that keys the random streams.
        control: Whether the mechanism is a broken twin. Games then end at their verdict
            and give no lower bound.

    Raises:
        CollectionError: If no kind of evidence applies.
        Exception: The exception of a kind of evidence, unless evidence of an earlier
            kind refutes the claim.
    """
    if isinstance(mechanism, MechanismElsewhere):
        mechanism.begin(settings, purpose, control)
    request = request_for(built, mechanism, settings, purpose, control=control)
    time_share = 1.0 if control else 1 / (1 + len(built.controls))
    runs = math.inf if built.is_promise else request.runs
    untouched = (
        nullcontext() if built.is_formula else starting_untouched(request.adapted)
    )
    with untouched, allowing(runs, share=time_share):
        gathered = _gathered(request, settings.alpha)
    if not gathered:
        raise CollectionError(
            f"no evidence can be gathered: {request.able.name} states no law or query for "
            f"evidence={list(request.kinds)}; add 'game'"
        )
    return without_fallen_certificates(gathered)


def request_for(
    built: Audit, mechanism: Any, settings: Settings, purpose: str, *, control: bool
) -> EvidenceRequest:
    """Return the request for evidence about one mechanism of an audit.

    Args:
        built: The audit.
        mechanism: Its mechanism, or one of its controls.
        settings: The settings of the run.
        purpose: Name that keys the random streams.
        control: Whether the mechanism is a broken twin.
    """
    claim = built.claim
    # The audit has computed its claim when it was made.
    assert isinstance(claim, Claim | Promise)
    budget = settings.budget.of_audit(
        built.calls, built.fault, is_limited=not built.is_promise
    )
    game = GameOptions(
        alpha=settings.alpha,
        budget=budget,
        forecasters=built.forecasters,
        play=built.play,
        trace=built.trace and settings.trace,
        recorded=None if control else settings.recorded,
        control=control,
    )
    return EvidenceRequest(
        mechanism=mechanism,
        claim=claim,
        neighbours=None if built.pairs is None else built.adjacency,
        inputs=built.inputs or {},
        accountants=built.accountants,
        about=built.about,
        kinds=kinds_of(built),
        streams=settings.streams(purpose),
        game=game,
        exhaustive=built.exhaustive,
    )


def kinds_of(built: Audit) -> Sequence[str]:
    """Return the requested kinds of evidence that can test the claim of an audit."""
    if isinstance(built, AuditElsewhere):
        return [kind for kind in dict.fromkeys(built.held.kinds) if kind in KINDS]
    claim = built.claim
    if isinstance(claim, Claim) and not built.is_formula:
        # Only some kinds of evidence can test a claim that is a curve.
        return [
            kind for kind in built.asked if KINDS[kind].any_claim or not claim.of_curve
        ]
    subject = Subject.MODEL if built.is_formula else Subject.ESTIMATES
    return [name for name, kind in KINDS.items() if kind.subject is subject]


def gathered_here(kind: str, request: EvidenceRequest, alpha: float) -> Evidence | None:
    """Return evidence of one kind, gathered in this process.

    It errs with a probability of at most ``alpha``.

    Returns:
        The evidence, or None if that kind does not apply.
    """
    return _gatherer(kind)(request, alpha)


def _evidence(kind: str, request: EvidenceRequest, alpha: float) -> Evidence | None:
    """Return evidence of one kind.

    If the mechanism is in another process and the kind needs its code, that process
    gathers the evidence.

    Returns:
        The evidence, or None if that kind does not apply.
    """
    mechanism = request.mechanism
    with phase(kind):
        if isinstance(mechanism, MechanismElsewhere) and kind not in mechanism.plays:
            return evidence_elsewhere(mechanism, kind, alpha)
        return gathered_here(kind, request, alpha)


def _gathered(request: EvidenceRequest, alpha: float) -> list[Evidence]:
    """Return evidence of all requested kinds, in the order of ``KINDS``.

    If the drawn outputs decide whether a kind applies, it has ``UNCERTAIN_SHARE`` of
    alpha, or all of alpha if no other kind may err. If such a kind applies, the other
    kinds that may err share the rest equally, and otherwise all of alpha. The game is
    gathered last, because it takes all runs that are left. If several kinds raise, the
    first of them in the order of ``KINDS`` counts.
    """
    kinds = [kind for kind in KINDS if kind in request.kinds]
    sampled = [kind for kind in kinds if KINDS[kind].sampled]
    share = UNCERTAIN_SHARE if sampled else 1.0
    outcomes: dict[str, Evidence | BaseException | None] = {}

    for kind in kinds:
        if KINDS[kind].by_data:
            outcomes[kind] = None
            with allowing(share=ASIDE), suppress(ExhaustedError, Timeout):
                outcomes[kind] = _evidence(kind, request, alpha * share)
    if any(evidence is not None for evidence in outcomes.values()):
        alpha *= 1 - share

    others = [kind for kind in kinds if kind not in outcomes]
    for kind in sorted(others, key=lambda kind: kind == "game"):
        try:
            outcomes[kind] = _evidence(kind, request, alpha / max(len(sampled), 1))
        except (Exception, SystemExit, Timeout) as error:
            outcomes[kind] = error

    gathered: list[Evidence] = []
    for kind in kinds:
        outcome = outcomes[kind]
        with kept_if_refuted(gathered):
            if isinstance(outcome, BaseException):
                raise outcome
            if outcome is not None:
                gathered.append(outcome)
    return gathered


@contextmanager
def kept_if_refuted(gathered: list[Evidence]) -> Iterator[None]:
    """Keep evidence that refutes the claim if the block raises or runs out of time.

    The statement of that evidence then names the error. Without such evidence the error
    is raised.
    """
    try:
        yield
    except (Exception, SystemExit, Timeout) as error:
        for index, evidence in enumerate(gathered):
            if evidence.verdict is Verdict.VIOLATED:
                late = f"what came after it ended with {type(error).__name__}: {error}"
                statement = f"{evidence.statement}; {late}"
                gathered[index] = replace(evidence, statement=statement)
                return
        raise
