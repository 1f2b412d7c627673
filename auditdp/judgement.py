"""Gathering the evidence for one audit and its controls."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from auditdp.accountants.description import Description, narrowest
from auditdp.adjacency import as_adjacency
from auditdp.budgets import Fault, Goal
from auditdp.capabilities import capabilities
from auditdp.claims import ApproxDP, Claim, GaussianDP, PureDP
from auditdp.curve_claims import AccountedDP, RenyiDP
from auditdp.declaration import DEFAULT_KINDS, Audit
from auditdp.errors import CollectionError, ConfigurationError
from auditdp.evidence.accounting import accounting_evidence
from auditdp.evidence.confirming import play_again
from auditdp.evidence.counting import counting_evidence
from auditdp.evidence.coverage import EXAMPLES as PAIRS_GENERATED
from auditdp.evidence.estimation import estimation_evidence
from auditdp.evidence.exact import exact_evidence, has_exact_law
from auditdp.evidence.game import play_game
from auditdp.evidence.one_run import one_run_evidence
from auditdp.evidence.promises import Unbiased, VarianceAtMost
from auditdp.evidence.sensitivity import EXAMPLES, sensitivity_evidence
from auditdp.evidence.support import support_evidence
from auditdp.mechanism import as_mechanism, brief, name_of
from auditdp.randomness import Streams, stream
from auditdp.results import REFUTATIONS, SAMPLED, AuditResult, ClaimRecord, ControlResult, Evidence, with_figure
from auditdp.verdict import bounds, conclude, leading, without_fallen_certificates

PLAYED = ("game", "one_run", "support", "sensitivity")
COUNTING_CALLS = 4
"""Counting has a quarter of the calls of the game, beside them."""
BRIEF_SEARCH = 4
"""A search has a quarter of its pairs where an audit is to be brief."""
COUNTING_ALPHA = 0.1
"""Share of an audit's alpha that counting has where it applies."""


@dataclass(frozen=True)
class Settings:
    """What a run decides for an audit: its level, its budget, and the root of its randomness.

    Attributes:
        alpha: Error probability of the audit.
        calls: Calls of a game, unless the audit names its own number.
        root_seed: Root of the run's randomness.
        key: What the audit's randomness is keyed by.
        brief: Whether no game has more calls than that, whatever the audit names, games end at their verdict, and searches
            are a quarter as long.
        least: Calls that evidence has at least, whatever number the audit names.
        find: A fault that the game is to find nine times in ten; it then has as many calls as that takes, and at least those
            that the audit names. All other evidence has ``calls``.
        further: How many calls the game has altogether when it has gone on, once for each time that it does. All other
            evidence, but for that of controls, stays as it is.
        recorded: The log wealth of the game before it goes on for the last time, if that is known.

    Raises:
        ConfigurationError: If alpha is not strictly between 0 and 1.
    """

    alpha: float
    calls: int
    root_seed: int
    key: str = field(default="audit")
    brief: bool = False
    least: int = 1
    find: Fault | None = None
    further: tuple[Goal, ...] = ()
    recorded: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ConfigurationError(f"expected alpha strictly between 0 and 1, got alpha={self.alpha!r}")

    def streams(self, purpose: str) -> Streams:
        """Return the streams of one purpose, keyed by audit, purpose and batch."""
        return partial(_stream, self.root_seed, self.key, purpose)

    def lacking(self, named: int | None) -> int:
        """Return how many calls the game of an audit lacks of those that the audit names."""
        return max(named - self.calls, 0) if self.brief and named is not None else 0

    def generated(self, examples: int) -> int:
        """Return how many pairs a search generates, of those that it would generate."""
        return examples // BRIEF_SEARCH if self.brief else examples


def _stream(root: int, key: str, purpose: str, kind: str, batch: int) -> np.random.Generator:
    return stream(root, key, purpose, kind, batch)


def run_audit(built: Audit, settings: Settings) -> AuditResult:
    """Gather all evidence for one audit, run its controls, and draw the verdict.

    Numerical libraries run single-threaded inside, so that no sum depends on the number of threads.

    Raises:
        AuditError: If the audit cannot be carried out; the runner turns this into ERROR.
    """
    with threadpool_limits(limits=1):
        return _run_audit(built, settings)


def _run_audit(built: Audit, settings: Settings) -> AuditResult:
    started, cpu = time.perf_counter(), time.process_time()
    evidence = gather(built, built.mechanism, settings, "mechanism")
    if built.figure is not None:
        figure = built.figure(settings.streams("figure")("figure", 0))
        try:
            evidence[-1] = with_figure(evidence[-1], figure)
        except (TypeError, ValueError) as error:
            raise CollectionError(
                f"figure: expected a dict with a scatter plot, got {brief(figure)}: {error}"
            ) from None
    controls = [_control(built, twin, settings, k) for k, twin in enumerate(built.controls)]
    verdict, summary = conclude(evidence, controls)
    lead = leading(evidence)
    lower, upper = bounds(evidence)
    return AuditResult(
        id=settings.key,
        verdict=verdict,
        summary=summary,
        mechanism=_described(built).text if built.is_formula else name_of(built.mechanism),
        claim=_claim_record(built),
        evidence=evidence,
        epsilon_lower=lower,
        epsilon_upper=upper,
        log_e_value=lead.log_e_value,
        alpha=settings.alpha,
        calls=sum(e.calls for e in evidence),
        controls=controls,
        counterexample=lead.counterexample if verdict in REFUTATIONS else None,
        cpu_seconds=time.process_time() - cpu,
        seconds=time.perf_counter() - started,
        lacking=0 if built.is_promise or built.is_formula or settings.further else settings.lacking(built.calls),
    )


def gather(
    built: Audit, mechanism: Any, settings: Settings, purpose: str, *, control: bool = False, bounded: bool = True
) -> list[Evidence]:
    """Run every applicable kind of evidence on one mechanism.

    Args:
        built: The audit.
        mechanism: Its mechanism, or another that is audited as it is.
        settings: Of the audit.
        purpose: Names the randomness.
        control: Whether the mechanism is to be refuted: evidence then stops when it is.
        bounded: Whether the game is to give a lower bound.
    """
    claim = built.claim
    assert not callable(claim)  # settled when the audit was made
    if built.is_formula:
        assert not isinstance(claim, Unbiased | VarianceAtMost)  # checked then, too
        return [accounting_evidence(claim, built.accountants, about=built.about)]
    adapted, able, streams = as_mechanism(mechanism), capabilities(mechanism), settings.streams(purpose)
    calls = max(built.calls if built.calls is not None else settings.calls, settings.least)
    if isinstance(claim, Unbiased | VarianceAtMost):
        assert built.inputs is not None  # checked when the audit was made
        return [estimation_evidence(adapted, claim, built.inputs, alpha=settings.alpha, calls=calls, streams=streams)]
    calls -= settings.lacking(built.calls)
    adjacency = as_adjacency(built.pairs)
    kinds = built.evidence if built.evidence is not None else DEFAULT_KINDS
    if not isinstance(claim, PureDP | ApproxDP | GaussianDP):  # a curve, for which nothing but bets is built
        kinds = [kind for kind in kinds if kind in PLAYED]
    bets = [kind for kind in kinds if kind in SAMPLED]
    counted, share = None, COUNTING_ALPHA if bets else 1.0
    if "counting" in kinds and not control:
        counted = counting_evidence(
            adapted,
            claim,
            adjacency,
            alpha=settings.alpha * share,
            calls=calls // COUNTING_CALLS,
            streams=streams,
            pairs=built.play,
            law=able.law_of_output if "exact" in kinds else None,
        )
    left = settings.alpha if counted is None else settings.alpha * (1 - share)
    alpha = left / max(len(bets), 1)  # each kind that may err has its own share of the audit's alpha
    found: list[Evidence] = []
    if "exact" in kinds and has_exact_law(mechanism, adjacency, refuting=control):
        limited = None if built.exhaustive else (built.play or adjacency.pairs())
        seed = int(streams("exact", 0).integers(2**32))
        generated = settings.generated(PAIRS_GENERATED)
        exact = exact_evidence(
            mechanism, claim, adjacency, pairs=limited, seed=seed, examples=generated, refuting=control
        )
        found.append(exact)
    if "accounting" in kinds and built.accountants and not control:
        said = built.about is not None  # else the mechanism may be a better one than the worst that is described
        found.append(accounting_evidence(claim, built.accountants, about=built.about, attained=said))
    betting: dict[str, Any] = {
        "alpha": alpha,
        "calls": calls,
        "streams": streams,
        "pairs": built.play,
        "stop_when_refuted": control or settings.brief,
    }
    if "game" in kinds:
        played = betting | {"further": settings.further, "recorded": None if control else settings.recorded}
        if settings.find is not None:
            played |= {"calls": built.calls or 1, "find": settings.find}
        found.append(play_game(adapted, claim, adjacency, forecasters=built.forecasters, bounded=bounded, **played))
    if counted is not None:
        found.append(counted)
    if "one_run" in kinds:
        trainings = calls if built.calls is not None else 1
        found.append(one_run_evidence(adapted, claim, adjacency, alpha=alpha, trainings=trainings, streams=streams))
    if "support" in kinds:
        found.append(support_evidence(adapted, claim, adjacency, **betting))
    if "sensitivity" in kinds and able.is_calibrated:
        examples = settings.generated(EXAMPLES) if built.exhaustive else 0
        found.append(sensitivity_evidence(mechanism, adjacency, streams=streams, pairs=built.play, examples=examples))
    if not found:
        raise CollectionError(
            f"no evidence can be gathered: {able.name} states no law or query for evidence={list(kinds)}; add 'game'"
        )
    return without_fallen_certificates(found)


def _control(built: Audit, twin: Any, settings: Settings, number: int) -> ControlResult:
    """Audit a broken twin as the mechanism was audited; each kind of evidence must refute it, or it has survived.

    Evidence of sensitivity or of the support is blind to the size of the noise, so it has to refute a control only where
    nothing else was gathered; there a refuted calibration is enough.
    """
    evidence = gather(built, twin, settings, f"control {number}", control=True, bounded=False)
    judging = [e for e in evidence if e.kind not in ("sensitivity", "support")] or evidence
    blind = [e for e in judging if e.verdict not in REFUTATIONS]
    return ControlResult(
        name=name_of(twin),
        verdict=blind[0].verdict if blind else leading(judging).verdict,
        statement="; ".join(f"{e.kind}: {e.statement}" for e in blind or evidence),
        calls=sum(e.calls for e in evidence),
        epsilon_lower=bounds(evidence)[0],
        blind=[e.kind for e in blind],
    )


def _described(built: Audit) -> Description:
    """What a formula is about: what is said, or the narrowest class that is described."""
    said = built.about.describes if built.about is not None else narrowest([a.describes for a in built.accountants])
    return said or built.accountants[0].describes


def _claim_record(built: Audit) -> ClaimRecord:
    claim = built.claim
    assert not callable(claim)  # settled when the audit was made
    if isinstance(claim, Unbiased | VarianceAtMost):
        classes = len(built.inputs or {})
        return ClaimRecord(claim.kind, str(claim), f"{classes} classes of inputs", source=claim.source, parameter="")
    if built.is_sensitivity:
        able = capabilities(built.mechanism)
        return ClaimRecord(
            "Sensitivity",
            f"{able.norm.name} sensitivity {able.sensitivity:.6g}",
            as_adjacency(built.pairs).name,
            source=claim.source,
            parameter="sensitivity",
        )
    described = _described(built).adjacency if built.is_formula else as_adjacency(built.pairs).name
    return claim_of_privacy(claim, described)


def claim_of_privacy(claim: Claim, adjacency: str) -> ClaimRecord:
    """Return a claim of privacy as records have it, with what its neighbours are called."""
    return ClaimRecord(
        kind=type(claim).__name__,
        text=str(claim),
        adjacency=adjacency,
        source=claim.source,
        parameter=claim.parameter,
        epsilon=claim.level if claim.parameter == "epsilon" else None,
        delta=claim.delta,
        mu=claim.level if claim.parameter == "mu" else None,
        rho=claim.level if claim.parameter == "rho" else None,
        curve=list(claim.tangents()) if isinstance(claim, AccountedDP | RenyiDP) else [],
    )


SAME_WEALTH = 1e-6
"""Difference in nats that rounding explains."""


def judge_recorded(built: Audit, result: AuditResult, settings: Settings) -> list[str]:
    """Play the findings of a result again on their recorded outputs, and return what comes of it, a line for each.

    Outputs are recorded where the mechanism draws its randomness from elsewhere: a re-run then repeats the test, and not the
    numbers.
    """
    said = []
    for confirmation in result.recorded:
        wealth = play_again(
            as_mechanism(built.mechanism),
            built.claim,  # type: ignore[arg-type]  # only claims of privacy are played
            as_adjacency(built.pairs),
            confirmation,
            streams=settings.streams("mechanism"),
            forecasters=built.forecasters,
            pairs=built.play,
        )
        then = confirmation.log_e_value
        same = "as then" if abs(wealth - then) < SAME_WEALTH else f"DIFFERENT: then {then:.6g}"
        said.append(
            f"the mechanism draws its own randomness, so the re-run is another test; on the {confirmation.calls:,} "
            f"recorded outputs of the finding on {confirmation.pair} the bets earn {wealth:.6g} nats, {same}"
        )
    return said
