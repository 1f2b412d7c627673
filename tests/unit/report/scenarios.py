"""Runs whose reports are compared with snapshots, and what else several tests of reports need."""

import math
from collections.abc import Callable
from dataclasses import replace

from auditdp.record.details import Confirmation, GameDetails
from auditdp.record.results import (
    AuditResult,
    ClaimRecord,
    Counterexample,
    Evidence,
    Place,
    Published,
    RunRecord,
    Verdict,
)
from auditdp.record.traces import (
    Fate,
    GameTrace,
    MutantResult,
    Mutation,
    TracedFinding,
    TracedLine,
)
from tests.unit.conftest import results, run

BY_NAME = {result.id.partition("::")[2]: result for result in results()}
VIOLATED = BY_NAME["feature_rr[theta=record]"]
CLEAN = BY_NAME["dprr"]
CERTIFIED = BY_NAME["warner_rr"]
CLAIM = ClaimRecord("PureDP", "1-DP", "value LDP", epsilon=1.0)


def only(*audits: AuditResult, **fields) -> RunRecord:
    """A run of these audits, which has nothing else planned."""
    return replace(run(list(audits)), alpha_ledger=[], **fields)


def plain(*audits: AuditResult) -> RunRecord:
    """A run of these audits, of which nothing else is recorded."""
    return RunRecord(1, "complete", {}, {}, "", "", [], list(audits))


def clean() -> RunRecord:
    audits = [result for result in results() if result.as_expected]
    return replace(
        run(audits),
        started="2026-11-23T09:05:00+01:00",
        project="counts",
        author="R. Viewer",
    )


def published() -> RunRecord:
    """A violated claim, its repair, and one that is not refuted."""
    repair = Published(
        "the mechanism",
        "with public bounds",
        VIOLATED.id,
        cost="4 times the variance",
    )
    stated = Published(
        "another | mechanism", "as stated", decides="a proof of the sensitivity"
    )
    return only(
        replace(VIOLATED, published=Published("the mechanism", "as deployed")),
        replace(CERTIFIED, published=repair),
        replace(CLEAN, published=stated),
    )


def miscalibrated() -> AuditResult:
    """An audit whose calibration is refuted beside a clean game."""
    calibration = Evidence(
        "sensitivity",
        Verdict.MISCALIBRATED,
        "The noise is calibrated to l1 sensitivity 1, but two neighbours need 2: the calibration is refuted",
        counterexample=Counterexample("0 | 2", "the first gives 0 and the second 2"),
    )
    return replace(
        CLEAN,
        verdict=Verdict.MISCALIBRATED,
        evidence=[*CLEAN.evidence, calibration],
        counterexample=calibration.counterexample,
    )


def calibrations() -> RunRecord:
    """A refuted calibration, one that is declared, and one that is declared and not found."""
    found, expected = miscalibrated(), "miscalibration"
    declared = replace(found, id="audits/audit_c.py::declared", expected=expected)
    missed = replace(CLEAN, id="audits/audit_c.py::missed", expected=expected)
    return only(found, declared, missed)


ENDED = {
    Verdict.VIOLATED: ("violation", 3),
    Verdict.MISCALIBRATED: ("miscalibration", 2),
    Verdict.CERTIFIED: ("holds", 5),
    Verdict.EQUIVALENT: ("holds", 4),
    Verdict.NOT_REFUTED: ("holds", 1),
}
"""What is declared of audits with a verdict, and how many there are in the run of each verdict."""


def ended(verdict, expected="holds", name="one") -> AuditResult:
    return AuditResult(
        f"audits/audit_a.py::{name}",
        verdict,
        f"it ended {verdict}",
        expected=expected,
        description="Adding half of the noise is 1-DP.",
        claim=CLAIM,
        evidence=[Evidence("game", verdict, "…")],
    )


def as_declared() -> RunRecord:
    """A run of each verdict, in which everything is as declared."""
    return plain(
        *(
            ended(verdict, expected, f"{verdict}_{k}")
            for verdict, (expected, count) in ENDED.items()
            for k in range(count)
        )
    )


NOT_CONFIRMED = """
bets had multiplied their stake by 318; fresh calls, made one by one,
did not confirm it (e-value 0.962), and of several outputs did (53.6)
"""


def unconfirmed() -> RunRecord:
    """A clean run and, last in it, a refutation that calls one by one did not confirm."""
    statement = " ".join(NOT_CONFIRMED.split())
    found = []
    for e_value, confirmed in ((0.962, False), (53.6, True)):
        log = math.log(e_value)
        found.append(
            Confirmation(
                pair="0 | 1",
                calls=81,
                log_e_value=log,
                alpha=0.025,
                confirmed=confirmed,
            )
        )
    game = GameDetails(
        threshold=math.log(20), refuted_at=92, confirmation=found[0], together=found[1]
    )
    evidence = Evidence(
        "game",
        Verdict.INCONCLUSIVE,
        statement,
        log_e_value=math.log(318),
        details=game,
        unconfirmed=True,
    )
    hidden = ended(Verdict.INCONCLUSIVE, name="hidden")
    hidden = replace(hidden, evidence=[evidence], summary=statement)
    return plain(*as_declared().results, hidden)


SENTENCE = "line 31 adds Laplace noise of scale 1 to a value that differs by 3 between the inputs; 1-DP needs scale 3"
FINDING = TracedFinding(
    kind="loss",
    file="src/ages.py",
    line=31,
    sentence=SENTENCE,
    read_off=True,
    confirmed=True,
    pair="[3] | [0]",
)
HINT = replace(
    FINDING, line=40, sentence="line 40: draws differ", read_off=False, confirmed=False
)
ROUND = replace(
    FINDING,
    kind="round",
    file="",
    line=0,
    sentence="outputs differ although all noisy values are equal",
)
LINES = [
    TracedLine(
        file="src/ages.py",
        line=30,
        family="coin",
        scale="",
        moved=0.0,
        loss=0.0,
        share=0.0,
    ),
    TracedLine(
        file="src/ages.py",
        line=31,
        family="Laplace",
        scale="2",
        moved=1.04,
        loss=0.52,
        share=0.52,
        needed=1.04,
    ),
]


def with_trace(result: AuditResult, **fields) -> AuditResult:
    """A result whose game, the only evidence, has a trace."""
    trace = GameTrace(pairs=4000, runs=8012, extent="full", lines=LINES, **fields)
    game = replace(result.evidence[-1], kind="game", details=GameDetails(trace=trace))
    return replace(result, evidence=[game])


def traced_finding() -> AuditResult:
    found = with_trace(VIOLATED, share=3.0, findings=[ROUND, FINDING, HINT])
    return replace(
        found,
        counterexample=replace(found.counterexample, pair=FINDING.pair),
        mechanism_at=Place("src/ages.py", 25),
        audit_at=Place("audits/audit_f.py", 7),
    )


def traced_clean() -> AuditResult:
    return replace(with_trace(CLEAN, share=0.52, is_bound=True), epsilon_lower=0.1)


MUTATION = Mutation(
    [
        MutantResult(name, fault, statement, fate, reason, calls)
        for name, fault, statement, fate, reason, calls in (
            ("half", "noise halved", "is halved", Fate.KILLED, "game: refuted", 120),
            ("shared", "noise reused", "is shared", Fate.REJECTED, "dependent", 0),
            ("<blind>", "left out", "is <out>", Fate.SURVIVED, "5,000 & nothing", 5000),
            ("same", "noise reused", "is repeated", Fate.EQUIVALENT, "processing", 0),
            ("crash", "left out", "is constant", Fate.INVALID, "raised", 0),
        )
    ]
)


def mutated() -> RunRecord:
    return plain(
        replace(ended(Verdict.NOT_REFUTED), mutation=MUTATION),
        ended(Verdict.NOT_REFUTED, name="without_mutants"),
    )


SCENARIOS: dict[str, Callable[[], RunRecord]] = {
    "every verdict": lambda: run(results()),
    "clean": clean,
    "skipped": lambda: only(BY_NAME["lpgnn_ensemble"]),
    "interrupted": lambda: replace(
        run(results()), results=results()[:2], status="interrupted"
    ),
    "published": published,
    "calibrations": calibrations,
    "as declared": as_declared,
    "unconfirmed": unconfirmed,
    "traced": lambda: only(traced_finding(), traced_clean()),
    "mutated": mutated,
}
