"""Judge an audit: gather evidence about its mechanism and controls, and conclude."""

from __future__ import annotations

import time
from dataclasses import replace
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
from auditdp.mechanism.calls.phases import cpu_seconds, phase, phases
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
    """Gather all evidence of an audit, run its controls, and conclude the verdict.

    Numerical libraries run with one thread, so that no sum depends on the number of
    threads.

    Raises:
        AuditError: If the audit cannot be run; the runner records the verdict ERROR.
    """
    # Processes of the audit alone have also spent what they took to build it.
    before = 0.0 if isinstance(built, AuditElsewhere) else _cpu(built)
    with one_thread(), phases(lambda: _cpu(built) - before) as spent:
        result = _run_audit(built, settings)
    return replace(
        result,
        cpu_seconds=sum(spent.seconds.values()),
        cpu_by_phase=spent.seconds,
        mechanism_cpu_seconds=_mechanism_cpu(built),
    )


def _run_audit(built: Audit, settings: Settings) -> AuditResult:
    started, before = time.perf_counter(), allowance().made
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
                with phase("controls", whole=True):
                    controls.append(_control(built, twin, settings, number))
            except Timeout as late:
                # A refuted claim needs no controls, so the time limit ends the audit.
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
        seconds=time.perf_counter() - started,
        lacking=_lacking(built, settings, evidence),
    )


def _cpu(built: Audit) -> float:
    """Return the CPU seconds so far of this process and of the mechanism's process."""
    return cpu_seconds() + _mechanism_cpu(built)


def _mechanism_cpu(built: Audit) -> float:
    """Return the CPU seconds so far of the mechanism's own process, if it has one."""
    return built.channel.cpu if isinstance(built, AuditElsewhere) else 0.0


def _lacking(built: Audit, settings: Settings, evidence: list[Evidence]) -> int:
    """Return the number of calls by which a limited budget is too small, or 0.

    The budget is too small if the audit names a larger number of calls, or a fault that
    more calls would find.
    """
    if built.is_promise or built.is_formula or settings.budget.later:
        return 0
    games = (game.calls_lacking or 0 for game in details(evidence, GameDetails))
    return max(settings.budget.missing_calls(built.calls), *games, 0)


def _control(built: Audit, twin: Any, settings: Settings, number: int) -> ControlResult:
    """Gather evidence about a broken twin, which all kinds of evidence have to refute.

    Evidence of sensitivity and of the support does not depend on the size of the noise.
    So it has to refute a control only if there is no other evidence; a refuted
    calibration then suffices.
    """
    before = _cpu(built)
    evidence = gather(built, twin, settings, f"control {number}", control=True)
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
        cpu_seconds=_cpu(built) - before,
    )


def described(built: Audit) -> Description:
    """Return the description of the model that the accountants of an audit are about.

    It is that of the audit's ``about``, or else the narrowest class that an accountant
    describes. If none lies within all others, it is that of the first accountant.
    """
    described = (
        built.about.describes
        if built.about is not None
        else narrowest([a.describes for a in built.accountants])
    )
    return described or built.accountants[0].describes


def claim_record(built: Audit) -> ClaimRecord:
    """Return the record of an audit's claim."""
    if isinstance(built, AuditElsewhere) and built.held.record is not None:
        return built.held.record
    claim = built.claim
    # The audit has computed its claim when it was made.
    assert not callable(claim)
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
    """Return the record of a privacy claim.

    Args:
        claim: The claim.
        adjacency: Name of its adjacency.
        digest: Digest of the adjacency and the played pairs.
    """
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
    """Repeat the findings of a result on their recorded outputs.

    Outputs are recorded if the mechanism draws its own randomness. Running such a
    mechanism again repeats the test, but gives other numbers.

    Returns:
        One sentence for each finding.
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
