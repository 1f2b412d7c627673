"""The audit of a mechanism and of its controls: from all the evidence to one result."""

from __future__ import annotations

import time
from typing import Any

from auditdp.accountants import Description, narrowest
from auditdp.auditing.declaration import Audit
from auditdp.auditing.gathering import Settings, gather, kept_if_refuted
from auditdp.auditing.remote_audit import AuditElsewhere
from auditdp.claims.claim import Claim
from auditdp.claims.estimates import Unbiased, VarianceAtMost
from auditdp.errors import CollectionError, Timeout
from auditdp.evidence.confirmation import play_again
from auditdp.mechanism.calls.allowance import allowance
from auditdp.mechanism.capabilities import capabilities
from auditdp.mechanism.protocol import as_mechanism, brief, name_of
from auditdp.numerics.rounding import SAME, same_number
from auditdp.numerics.streams import one_thread
from auditdp.record.details import GameDetails
from auditdp.record.results import (
    REFUTATIONS,
    AuditResult,
    ClaimRecord,
    ControlResult,
    Evidence,
    Verdict,
    details,
    with_figure,
)
from auditdp.record.verdict import bounds, conclude, leading


def run_audit(built: Audit, settings: Settings) -> AuditResult:
    """Gather all evidence for one audit, run its controls, and draw the verdict.

    Numerical libraries run single-threaded inside, so that no sum depends on the number of threads.

    Raises:
        AuditError: If the audit cannot be carried out; the runner turns this into ERROR.
    """
    with one_thread():
        return _run_audit(built, settings)


def _run_audit(built: Audit, settings: Settings) -> AuditResult:
    started, cpu, before = time.perf_counter(), _cpu(built), allowance().made
    evidence = gather(built, built.mechanism, settings, "mechanism")
    calls = allowance().made - before
    controls: list[ControlResult] = []
    with kept_if_refuted(evidence):
        if built.figure is not None:
            figure = built.figure(settings.streams("figure")("figure", 0))
            try:
                evidence[-1] = with_figure(evidence[-1], figure)
            except (TypeError, ValueError) as error:
                raise CollectionError(
                    f"figure: expected a dict with a scatter plot, got {brief(figure)}: {error}"
                ) from None
        for number, twin in enumerate(built.controls):
            try:
                controls.append(_control(built, twin, settings, number))
            except Timeout as late:
                if any(each.verdict is Verdict.VIOLATED for each in evidence):
                    raise
                controls.append(
                    ControlResult(name_of(twin), Verdict.INCONCLUSIVE, str(late), 0)
                )
    verdict, summary = conclude(evidence, controls)
    lead = leading(evidence)
    lower, upper = bounds(evidence, verdict)
    return AuditResult(
        id=settings.key,
        verdict=verdict,
        summary=summary,
        mechanism=described(built).text
        if built.mechanism is None
        else name_of(built.mechanism),
        claim=claim_record(built),
        evidence=evidence,
        epsilon_lower=lower,
        epsilon_upper=upper,
        log_e_value=lead.log_e_value,
        alpha=settings.alpha,
        calls=calls,
        controls=controls,
        counterexample=lead.counterexample if verdict in REFUTATIONS else None,
        asked=list(built.asked),
        cpu_seconds=_cpu(built) - cpu,
        seconds=time.perf_counter() - started,
        lacking=_lacking(built, settings, evidence),
    )


def _cpu(built: Audit) -> float:
    """Return the seconds that this process has computed, and that of the mechanism, where that is another."""
    return time.process_time() + (
        built.channel.cpu if isinstance(built, AuditElsewhere) else 0.0
    )


def _lacking(built: Audit, settings: Settings, evidence: list[Evidence]) -> int:
    """How many calls a brief budget left out of those that the audit names, or that find what it is to find."""
    if built.is_promise or built.is_formula or settings.further:
        return 0
    games = (game.calls_lacking or 0 for game in details(evidence, GameDetails))
    return max(settings.lacking(built.calls), *games, 0)


def _control(built: Audit, twin: Any, settings: Settings, number: int) -> ControlResult:
    """Audit a broken twin as the mechanism was audited; each kind of evidence must refute it, or it has survived.

    Evidence of sensitivity or of the support is blind to the size of the noise, so it has to refute a control only where
    nothing else was gathered; there a refuted calibration is enough.
    """
    evidence = gather(
        built, twin, settings, f"control {number}", control=True, bounded=False
    )
    judging = [e for e in evidence if e.known.sees_noise] or evidence
    blind = [e for e in judging if e.verdict not in REFUTATIONS]
    verdict = blind[0].verdict if blind else leading(judging).verdict
    return ControlResult(
        name=name_of(twin),
        verdict=verdict,
        statement="; ".join(f"{e.kind}: {e.statement}" for e in blind or evidence),
        calls=sum(e.calls for e in evidence),
        epsilon_lower=bounds(evidence, verdict)[0],
        blind=[e.kind for e in blind],
    )


def described(built: Audit) -> Description:
    """Return what a formula is about: what is said, or the narrowest class that is described."""
    described = (
        built.about.describes
        if built.about is not None
        else narrowest([a.describes for a in built.accountants])
    )
    return described or built.accountants[0].describes


def claim_record(built: Audit) -> ClaimRecord:
    """Return the claim of an audit as records have it."""
    if isinstance(built, AuditElsewhere) and built.held.record is not None:
        return built.held.record
    claim = built.claim
    assert not callable(claim)  # settled when the audit was made
    if isinstance(claim, Unbiased | VarianceAtMost):
        classes = len(built.inputs or {})
        level = claim.margin if isinstance(claim, Unbiased) else claim.bound
        among = f"{classes} classes of inputs"
        return ClaimRecord(
            claim.kind,
            str(claim),
            among,
            source=claim.source,
            parameter="",
            level=level,
            digest=built.digest,
        )
    if built.is_sensitivity:
        able = capabilities(built.mechanism)
        return ClaimRecord(
            "Sensitivity",
            f"{able.norm.name} sensitivity {able.sensitivity:.6g}",
            built.adjacency.name,
            source=claim.source,
            parameter="sensitivity",
            level=able.sensitivity,
            digest=built.digest,
        )
    among = described(built).adjacency if built.is_formula else built.adjacency.name
    return claim_of_privacy(claim, among, built.digest)


def claim_of_privacy(claim: Claim, adjacency: str, digest: str = "") -> ClaimRecord:
    """Return a claim of privacy as records have it, with the name and the digest of its neighbours."""
    level: dict[str, Any] = {claim.parameter: claim.level}
    return ClaimRecord(
        kind=type(claim).__name__,
        text=str(claim),
        adjacency=adjacency,
        source=claim.source,
        parameter=claim.parameter,
        delta=claim.delta,
        curve=[] if claim.recorded_by else list(claim.tangents()),
        digest=digest,
        **level,
    )


def judge_recorded(built: Audit, result: AuditResult, settings: Settings) -> list[str]:
    """Play the findings of a result again on their recorded outputs, and return what comes of it, a line for each.

    Outputs are recorded where the mechanism draws its randomness from elsewhere: a re-run then repeats the test, and not the
    numbers.
    """
    lines = []
    for confirmation in result.recorded:
        wealth = play_again(
            as_mechanism(built.mechanism),
            built.claim,  # type: ignore[arg-type]  # only claims of privacy are played
            built.adjacency,
            confirmation,
            streams=settings.streams("mechanism"),
            forecasters=built.forecasters,
            play=built.play,
        )
        then = confirmation.log_e_value
        same = (
            "as then"
            if same_number(wealth, then, near=SAME)
            else f"DIFFERENT: then {then:.6g}"
        )
        lines.append(
            f"the mechanism draws its own randomness, so the re-run is another test; on the {confirmation.calls:,} "
            f"recorded outputs of the finding on {confirmation.pair} the bets gain {wealth:.6g} nats, {same}"
        )
    return lines
