"""Gathering the evidence about one mechanism: which kinds apply, and what share of alpha and of the calls each has.

What a run decides for each of its audits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
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
from auditdp.mechanism.calls.remote_mechanism import MechanismElsewhere
from auditdp.mechanism.calls.untouched import starting_untouched
from auditdp.numerics.streams import Streams, stream
from auditdp.record.budget import Fault, Goal
from auditdp.record.details import KINDS, Subject
from auditdp.record.results import Evidence, Verdict
from auditdp.record.verdict import without_fallen_certificates

COUNTING_ALPHA = 0.1
"""Share of an audit's alpha that evidence has which may give none, such as counting, where others err too."""


def _gatherer(kind: str) -> Callable[[EvidenceRequest, float], Evidence | None]:
    found: Callable[[EvidenceRequest, float], Evidence | None] = resolve_name(
        KINDS[kind].gatherer
    )
    return found


for _kind in (
    KINDS
):  # imported with this module, before processes are forked from one that has it
    _gatherer(_kind)


def gather(
    built: Audit,
    mechanism: Any,
    settings: Settings,
    purpose: str,
    *,
    control: bool = False,
    bounded: bool = True,
) -> list[Evidence]:
    """Run every applicable kind of evidence on one mechanism.

    ``purpose`` names the randomness. Evidence about a ``control`` stops when it is refuted, and only a ``bounded`` game
    gives a lower bound.
    """
    if isinstance(mechanism, MechanismElsewhere):
        mechanism.begin(settings, purpose, control, bounded)
    request = request_for(
        built, mechanism, settings, purpose, control=control, bounded=bounded
    )
    with (
        nullcontext() if built.is_formula else starting_untouched(request.adapted),
        allowing(
            math.inf if built.is_promise else request.runs,
            share=1.0 if control else 1 / (1 + len(built.controls)),
        ),
    ):
        found = _gathered(request, settings.alpha)
    if not found:
        raise CollectionError(
            f"no evidence can be gathered: {request.able.name} states no law or query for "
            f"evidence={list(request.kinds)}; add 'game'"
        )
    return without_fallen_certificates(found)


def request_for(
    built: Audit,
    mechanism: Any,
    settings: Settings,
    purpose: str,
    *,
    control: bool,
    bounded: bool,
) -> EvidenceRequest:
    """Return what evidence about one mechanism is asked for with; see ``gather``."""
    claim = built.claim
    assert isinstance(claim, Claim | Promise)  # settled when the audit was made
    calls = max(
        built.calls if built.calls is not None else settings.calls, settings.least
    )
    calls -= 0 if built.is_promise else settings.lacking(built.calls)
    find = settings.find or built.fault
    after = min(calls, (built.calls or math.inf) - calls) if settings.brief else 0
    return EvidenceRequest(
        mechanism=mechanism,
        claim=claim,
        neighbours=None if built.pairs is None else built.adjacency,
        inputs=built.inputs or {},
        accountants=built.accountants,
        about=built.about,
        kinds=kinds_of(built),
        streams=settings.streams(purpose),
        calls=calls,
        named=built.calls,
        game=GameOptions(
            alpha=settings.alpha,
            calls=calls if find is None else max(built.calls or 1, settings.least),
            after=max(int(after), 0),
            find=find,
            most=settings.most,
            further=settings.further,
            recorded=None if control else settings.recorded,
            forecasters=built.forecasters,
            play=built.play,
            trace=built.trace and settings.trace,
            stop_when_refuted=control or settings.brief or settings.stop_when_refuted,
            within=settings.within,
            proposed=settings.proposed,
            bounded=bounded,
        ),
        exhaustive=built.exhaustive,
        brief=settings.brief,
        control=control,
    )


def kinds_of(built: Audit) -> Sequence[str]:
    """Return the kinds of evidence that can be about the claim: of a curve, only what is played."""
    if isinstance(built, AuditElsewhere):
        return [kind for kind in dict.fromkeys(built.held.kinds) if kind in KINDS]
    claim = built.claim
    if isinstance(claim, Claim) and not built.is_formula:
        return [
            kind for kind in built.asked if KINDS[kind].any_claim or not claim.of_curve
        ]
    subject = Subject.MODEL if built.is_formula else Subject.ESTIMATES
    return [name for name, kind in KINDS.items() if kind.subject is subject]


def gathered_here(kind: str, request: EvidenceRequest, alpha: float) -> Evidence | None:
    """Return evidence of one kind, if there is any."""
    return _gatherer(kind)(request, alpha)


def _evidence(kind: str, request: EvidenceRequest, alpha: float) -> Evidence | None:
    """Return evidence of one kind, from the process of its mechanism if more than calls is needed there."""
    mechanism = request.mechanism
    if isinstance(mechanism, MechanismElsewhere) and kind not in mechanism.plays:
        return evidence_elsewhere(mechanism, kind, alpha)
    return gathered_here(kind, request, alpha)


def _gathered(request: EvidenceRequest, alpha: float) -> list[Evidence]:
    """Gather it all. What may give none has its share of alpha; of the rest, each kind that may err has an equal one.

    A game comes last, since it takes all runs that are left. Errors count in the order of ``KINDS``.
    """
    kinds = [kind for kind in KINDS if kind in request.kinds]
    bets = [kind for kind in kinds if KINDS[kind].sampled]
    share = COUNTING_ALPHA if bets else 1.0
    made = dict[str, Evidence | BaseException | None]()
    for kind in (kind for kind in kinds if KINDS[kind].by_data):
        made[kind] = None
        with allowing(share=ASIDE), suppress(ExhaustedError, Timeout):
            made[kind] = _evidence(kind, request, alpha * share)
    left = (
        alpha
        if all(evidence is None for evidence in made.values())
        else alpha * (1 - share)
    )
    for kind in sorted(
        (kind for kind in kinds if kind not in made), key=lambda kind: kind == "game"
    ):
        try:
            made[kind] = _evidence(kind, request, left / max(len(bets), 1))
        except (Exception, SystemExit, Timeout) as error:
            made[kind] = error
    found: list[Evidence] = []
    for evidence in (made[kind] for kind in kinds):
        with kept_if_refuted(found):
            if isinstance(evidence, BaseException):
                raise evidence
            found += [] if evidence is None else [evidence]
    return found


@contextmanager
def kept_if_refuted(found: list[Evidence]) -> Iterator[None]:
    """Keep the evidence that refutes the claim, where what comes after it fails or runs out of time; say so there."""
    try:
        yield
    except (Exception, SystemExit, Timeout) as error:
        refuted = next(
            (
                k
                for k, evidence in enumerate(found)
                if evidence.verdict is Verdict.VIOLATED
            ),
            None,
        )
        if refuted is None:
            raise
        late = f"what came after it ended with {type(error).__name__}: {error}"
        found[refuted] = replace(
            found[refuted], statement=f"{found[refuted].statement}; {late}"
        )


@dataclass(frozen=True)
class Settings:
    """What a run decides for an audit: its level, its budget, and the root of its randomness.

    Raises:
        ConfigurationError: If alpha is not strictly between 0 and 1.
    """

    alpha: float
    calls: int
    """Calls of a game, unless the audit names its own number."""
    root_seed: int
    key: str = field(default="audit")
    """What the audit's randomness is keyed by."""
    brief: bool = False
    """Whether no game has more calls than that, whatever the audit names, games end at their verdict, and searches are a
    quarter as long.
    """
    least: int = 1
    """Calls that evidence has at least, whatever number the audit names."""
    find: Fault | None = None
    """A fault that the game is to find nine times in ten, instead of the audit's own; it then has as many calls as that
    takes, and at least those that the audit names. All other evidence has ``calls``.
    """
    further: tuple[Goal, ...] = ()
    """How many calls the game has altogether when it has gone on, once for each time that it does. All other evidence, but
    for that of controls, stays as it is.
    """
    recorded: float | None = None
    """The log wealth of the game before it goes on for the last time, if that is known."""
    trace: bool = True
    within: bool = False
    """Whether the calls of a game are all runs that it may make; see ``GameOptions``, as of the next two."""
    proposed: int | None = None
    """Runs in their place where a trace proposes that the claim fails."""
    stop_when_refuted: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ConfigurationError(
                f"expected alpha strictly between 0 and 1, got alpha={self.alpha!r}"
            )

    def streams(self, purpose: str) -> Streams:
        """Return the streams of one purpose, keyed by audit, purpose and batch."""
        return partial(stream, self.root_seed, self.key, purpose)

    def lacking(self, named: int | None) -> int:
        """Return how many calls the game of an audit lacks of those that the audit names."""
        return max(named - self.calls, 0) if self.brief and named is not None else 0

    @property
    def most(self) -> int | None:
        """Calls of a game at most, whatever it is to find; None for no limit."""
        return self.calls if self.brief else None
