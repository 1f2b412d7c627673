"""Gathering the evidence for one audit and its controls, and drawing the one verdict."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from auditdp.adjacency import as_adjacency
from auditdp.betting.game import Streams
from auditdp.claims import GaussianDP
from auditdp.declaration import DEFAULT_KINDS, Audit
from auditdp.errors import CollectionError
from auditdp.evidence.accounting import accounting_evidence
from auditdp.evidence.estimation import Unbiased, VarianceAtMost, estimation_evidence
from auditdp.evidence.exact import exact_evidence, has_exact_law
from auditdp.evidence.game import play_game
from auditdp.evidence.query import has_query
from auditdp.evidence.sensitivity import EXAMPLES, sensitivity_evidence
from auditdp.evidence.support import support_evidence
from auditdp.mechanism import as_mechanism, name_of
from auditdp.randomness import stream
from auditdp.results import AuditResult, ClaimRecord, ControlResult, Evidence, Verdict


@dataclass(frozen=True)
class Settings:
    """What a run decides for an audit: its level, its budget, and the root of its randomness."""

    alpha: float
    calls: int
    root_seed: int
    key: str = field(default="audit")

    def streams(self, purpose: str) -> Streams:
        """Return the streams of one purpose, keyed by audit, purpose and batch."""
        return partial(_stream, self.root_seed, self.key, purpose)


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
        evidence[-1] = replace(evidence[-1], details={**evidence[-1].details, **figure})
    controls = [_control(built, twin, settings, k) for k, twin in enumerate(built.controls)]
    verdict, summary = _conclude(evidence, controls)
    bounds = _bounds(evidence)
    found = next((e.counterexample for e in evidence if e.counterexample is not None), None)
    return AuditResult(
        id=settings.key,
        verdict=verdict,
        summary=summary,
        mechanism=built.accountants[0].name if built.is_formula else name_of(built.mechanism),
        claim=_claim_record(built),
        evidence=evidence,
        epsilon_lower=bounds[0],
        epsilon_upper=bounds[1],
        log_e_value=next((e.log_e_value for e in evidence if e.log_e_value is not None), None),
        alpha=settings.alpha,
        calls=sum(e.calls for e in evidence),
        controls=controls,
        counterexample=found if verdict is Verdict.VIOLATED else None,
        cpu_seconds=time.process_time() - cpu,
        seconds=time.perf_counter() - started,
    )


def gather(built: Audit, mechanism: Any, settings: Settings, purpose: str, *, control: bool = False) -> list[Evidence]:
    """Run every applicable kind of evidence on one mechanism; the game against a control stops when it is refuted."""
    if built.is_formula:
        assert not isinstance(built.claim, Unbiased | VarianceAtMost)  # checked when the audit was made
        return [accounting_evidence(built.claim, built.accountants)]
    adapted, streams = as_mechanism(mechanism), settings.streams(purpose)
    calls = built.calls if built.calls is not None else settings.calls
    if isinstance(built.claim, Unbiased | VarianceAtMost):
        assert built.inputs is not None  # checked when the audit was made
        return [
            estimation_evidence(adapted, built.claim, built.inputs, alpha=settings.alpha, calls=calls, streams=streams)
        ]
    adjacency = as_adjacency(built.pairs)
    kinds = built.evidence if built.evidence is not None else DEFAULT_KINDS
    bets = [kind for kind in kinds if kind in ("game", "support")]
    alpha = settings.alpha / max(len(bets), 1)  # each kind that bets has its own share of the audit's alpha
    found: list[Evidence] = []
    if "exact" in kinds and has_exact_law(mechanism, adjacency, refuting=control):
        limited = None if built.exhaustive else (built.play or adjacency.pairs())
        seed = int(streams("exact", 0).integers(2**32))
        found.append(exact_evidence(mechanism, built.claim, adjacency, pairs=limited, seed=seed))
    if "accounting" in kinds and built.accountants and not control:
        found.append(accounting_evidence(built.claim, built.accountants))
    betting: dict[str, Any] = {
        "alpha": alpha,
        "calls": calls,
        "streams": streams,
        "pairs": built.play,
        "stop_when_refuted": control,
    }
    if "game" in kinds:
        found.append(play_game(adapted, built.claim, adjacency, forecasters=built.forecasters, **betting))
    if "support" in kinds:
        found.append(support_evidence(adapted, built.claim, adjacency, **betting))
    if "sensitivity" in kinds and has_query(mechanism):
        examples = EXAMPLES if built.exhaustive else 0
        found.append(sensitivity_evidence(mechanism, adjacency, streams=streams, pairs=built.play, examples=examples))
    if not found:
        raise CollectionError(
            f"no evidence can be gathered: {name_of(mechanism)} states no law or query for evidence={list(kinds)}; "
            "add 'game'"
        )
    return found


def _control(built: Audit, twin: Any, settings: Settings, number: int) -> ControlResult:
    """Audit a broken twin as the mechanism was audited; each kind of evidence must refute it, or it has survived.

    Evidence of sensitivity or of the support is blind to the size of the noise, so it has to refute a control only where
    nothing else was gathered.
    """
    evidence = gather(built, twin, settings, f"control {number}", control=True)
    judging = [e for e in evidence if e.kind not in ("sensitivity", "support")] or evidence
    blind = [e for e in judging if e.verdict is not Verdict.VIOLATED]
    return ControlResult(
        name=name_of(twin),
        verdict=blind[0].verdict if blind else Verdict.VIOLATED,
        statement="; ".join(f"{e.kind}: {e.statement}" for e in blind or evidence),
        calls=sum(e.calls for e in evidence),
        epsilon_lower=_bounds(evidence)[0],
    )


def _conclude(evidence: Sequence[Evidence], controls: Sequence[ControlResult]) -> tuple[Verdict, str]:
    """Draw one verdict: a refutation beats everything, a proof beats a clean game, surviving controls beat all."""
    order = (Verdict.VIOLATED, Verdict.INCONCLUSIVE, Verdict.CERTIFIED, Verdict.EQUIVALENT, Verdict.NOT_REFUTED)
    leading = min(evidence, key=lambda e: order.index(e.verdict))
    summary = leading.statement
    by_kind = {e.kind: e.verdict for e in evidence}
    if by_kind.get("game") is Verdict.VIOLATED and by_kind.get("exact") is Verdict.CERTIFIED:
        summary += "; the stated law is certified, so the code does not draw from the law that it states"
    if by_kind.get("sensitivity") is Verdict.VIOLATED and by_kind.get("exact") is Verdict.CERTIFIED:
        summary += "; the stated law is certified, so it is not the law of noise that is calibrated as declared"
    if by_kind.get("game") is Verdict.VIOLATED and by_kind.get("accounting") is Verdict.CERTIFIED:
        summary += "; the accountants certify the claim for their model, so the code is not that model"
    verdict = leading.verdict
    if verdict is Verdict.CERTIFIED and (beyond := beyond_its_law(evidence)) is not None:
        verdict, summary = Verdict.INCONCLUSIVE, f"{beyond}; what is certified is the law, and not the code"
    surviving = [control.name for control in controls if control.verdict is not Verdict.VIOLATED]
    if surviving:
        return Verdict.INCONCLUSIVE, (
            f"The audit has no teeth: it did not refute the broken {', '.join(surviving)}; for the mechanism itself: "
            f"{verdict}, {summary}"
        )
    return verdict, summary


def beyond_its_law(evidence: Sequence[Evidence]) -> str | None:
    """Return how the game shows that the code does not draw from the law that it states, if it does.

    It does where the loss that it shows, with the confidence of its verdict, is more than the law allows on any pair of
    neighbours. The claim may be true all the same: then the law has slack, and only this comparison sees the fault.
    """
    by_kind = {e.kind: e for e in evidence}
    law, game = by_kind.get("exact"), by_kind.get("game")
    if law is None or game is None or law.epsilon_upper is None or game.epsilon_lower is None:
        return None
    if game.epsilon_lower <= law.epsilon_upper:
        return None
    return (
        f"game: the code loses at least {game.epsilon_lower:.4g}, and the law that it states at most "
        f"{law.epsilon_upper:.4g}: it does not draw from that law"
    )


def _bounds(evidence: Sequence[Evidence]) -> tuple[float | None, float | None]:
    """Return the bounds that lead.

    Where an upper bound is known the game's lower bound stands against it, so that the two show each other's quality;
    else it is the largest lower bound of any evidence. Where there is a violation, the bound is of evidence that shows it.
    """
    showing = [e for e in evidence if e.verdict is Verdict.VIOLATED] or evidence
    lower = {e.kind: e.epsilon_lower for e in showing if e.epsilon_lower is not None}
    upper = [e.epsilon_upper for e in evidence if e.epsilon_upper is not None]
    if upper and math.isfinite(upper[0]) and "game" in lower:
        return lower["game"], upper[0]
    return max(lower.values(), default=None), min(upper, default=None)


def _claim_record(built: Audit) -> ClaimRecord:
    claim = built.claim
    if isinstance(claim, Unbiased | VarianceAtMost):
        classes = len(built.inputs or {})
        return ClaimRecord(claim.kind, str(claim), f"{classes} classes of inputs", source=claim.source, parameter="")
    return ClaimRecord(
        kind=type(claim).__name__,
        text=str(claim),
        adjacency=built.accountants[0].adjacency if built.is_formula else as_adjacency(built.pairs).name,
        source=claim.source,
        parameter=claim.parameter,
        epsilon=None if isinstance(claim, GaussianDP) else claim.level,
        delta=None if isinstance(claim, GaussianDP) else claim.delta,
        mu=claim.mu if isinstance(claim, GaussianDP) else None,
    )
