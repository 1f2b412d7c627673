"""A run as a reader meets it: every verdict, every kind of plot, an infinite epsilon, and names that mean harm."""

import math
from dataclasses import replace

import numpy as np
import pytest

from auditdp.claims.claim import Claim
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.record.results import (
    AuditResult,
    ClaimRecord,
    ControlResult,
    Counterexample,
    Evidence,
    LedgerEntry,
    Published,
    RunRecord,
    Verdict,
    with_figure,
)
from auditdp.report.formats import render


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    """Where tensors are: on the processor, and on a GPU where there is one."""
    torch = pytest.importorskip("torch")
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    return request.param


@pytest.fixture
def made_on_device(device):
    """Make all tensors of a test there."""
    with pytest.importorskip("torch").device(device):
        yield


ALPHA = 0.05 / 16
THRESHOLD = math.log(1 / ALPHA)
NASTY = (
    "<script>alert('pair')</script> & $x_1$ {{ 7*7 }} \x1b[31m \u202e ]]> _\" onload=\""
)
GAME_ASSUMES = [
    "calls are independent runs of the same mechanism",
    "the coin that chooses the input is fair and hidden from the forecasters",
]


def claimed(claim: Claim, adjacency: str, source: str) -> ClaimRecord:
    return ClaimRecord(
        kind=type(claim).__name__,
        text=str(claim),
        adjacency=adjacency,
        source=source,
        parameter=claim.parameter,
        epsilon=getattr(claim, "epsilon", None),
        delta=getattr(claim, "delta", None),
        mu=getattr(claim, "mu", None),
    )


def wealth_path(
    growth: float, *, seed: int, calls: int = 20_000
) -> tuple[list[list[float]], int | None]:
    """A path of log wealth at growing batches that drifts by ``growth`` nats a call, stopped at the threshold."""
    rng = np.random.default_rng(seed)
    path, log, spent, batch = [[0.0, 0.0]], 0.0, 0, 16
    while spent < calls:
        log += (
            growth * batch
            + 0.25 * math.sqrt(abs(growth) * batch) * rng.standard_normal()
        )
        spent += batch
        path.append([spent, log])
        if log >= THRESHOLD:
            return path, spent
        batch = max(16, spent // 24)
    return path, None


def game(
    growth: float,
    *,
    seed: int,
    verdict: Verdict,
    epsilon: float | None,
    detectable: float | None = None,
) -> Evidence:
    path, refuted_at = wealth_path(growth, seed=seed)
    calls = int(path[-1][0])
    confirmation = {
        "pair": "0 | 1",
        "calls": 412,
        "log_e_value": 9.3,
        "alpha": 0.001,
        "confirmed": True,
    }
    return Evidence(
        kind="game",
        verdict=verdict,
        statement=(
            f"The bets multiplied their stake by {math.exp(path[-1][1]):.3g}, which a true claim allows with "
            f"probability at most {ALPHA}."
            if refuted_at
            else f"{calls:,} calls over 6 pairs did not refute the claim."
        ),
        assumptions=GAME_ASSUMES,
        epsilon_lower=epsilon,
        log_e_value=path[-1][1],
        calls=calls,
        details={
            "wealth_path": path,
            "threshold": THRESHOLD,
            "refuted_at": refuted_at,
            "detectable_epsilon": detectable,
            "detectable_alternative": "randomised response" if detectable else None,
            "forecasters": [
                {
                    "name": "atoms (Krichevsky–Trofimov)",
                    "log_wealth": path[-1][1] + 0.7,
                },
                {"name": "logistic regression", "log_wealth": path[-1][1] - 3.1},
            ],
            "pairs": [
                {
                    "pair": f"bit {bit} of {8} flipped",
                    "calls": calls // (bit + 1),
                    "growth": growth / (bit + 1),
                }
                for bit in range(10)
            ],
            "confirmation": confirmation if refuted_at else None,
            "batches": len(path) - 1,
        },
    )


def exact(
    claim: Claim, epsilon: float, *, verdict: Verdict, slack: float = 1.0
) -> Evidence:
    grid = [1.25 * claim.level * step / 100 for step in range(101)]
    truth = claim.at(slack * claim.level)
    return Evidence(
        kind="exact",
        verdict=verdict,
        statement=(
            "The largest ratio of output probabilities over all pairs is at most e^ε, in outward-rounded arithmetic."
            if verdict is Verdict.CERTIFIED
            else "One output has probability 0.0183 under the first input and 0 under the second."
        ),
        assumptions=["the code draws from the law that `distribution` states"],
        epsilon_lower=epsilon,
        epsilon_upper=epsilon,
        details={
            "curve": [[point, truth.delta_at(point)] for point in grid],
            "claim_curve": [[point, claim.delta_at(point)] for point in grid],
            "exact_epsilon": "inf" if math.isinf(epsilon) else epsilon,
            "worst_pair": "1 0 0 0 0 0 0 | 0 0 0 0 0 0 0",
            "scope": "all neighbour lists of 7 bits",
            "pairs_enumerated": 448,
        },
    )


def estimation(verdict: Verdict, shift: float) -> Evidence:
    rng = np.random.default_rng(11)
    classes = []
    for degree in (0, 1, 2, 5, 10, 20, 50, 100):
        middle = degree + shift * (degree == 0) + 0.03 * rng.standard_normal()
        classes.append(
            {
                "class": f"degree {degree}",
                "n": 20_000,
                "truth": float(degree),
                "mean": middle,
                "low": middle - 0.11,
                "high": middle + 0.11,
                "variance": 31.2 + 0.1 * degree,
                "variance_low": 30.1 + 0.1 * degree,
                "variance_high": 32.3 + 0.1 * degree,
                "variance_bound": 43.5 if degree else None,
            }
        )
    return Evidence(
        kind="estimation",
        verdict=verdict,
        statement="The mean noisy degree was compared with the degree in eight classes of nodes.",
        calls=160_000,
        details={"classes": classes, "margin": 0.25},
    )


def class_of(name: str, **other: object) -> dict[str, object]:
    values = {
        "n": 30,
        "truth": 1.0,
        "mean": 1.1,
        "low": 1.0,
        "high": 1.2,
        "variance": 1.0,
        "variance_low": 0.9,
    }
    return {"class": name, **values, "variance_high": 1.1, **other}


def degrees() -> dict[str, object]:
    rng = np.random.default_rng(5)
    degree = np.round(np.exp(rng.uniform(0.0, 6.0, size=400)))
    noisy = {
        "DPRR": np.maximum(0.5, degree + 4 * rng.standard_normal(400)),
        "RR": 300 + degree + 12 * rng.standard_normal(400),
        "LocalLap": 35 + 8 * rng.uniform(-4, 4, 400),
    }
    return {
        "x_label": "original degree",
        "y_label": "noisy degree",
        "series": [
            {"name": name, "points": np.stack([degree, y], axis=1).tolist()}
            for name, y in noisy.items()
        ],
        "diagonal": True,
        "log": True,
    }


def refuted(name: str, calls: int, epsilon: float) -> ControlResult:
    return ControlResult(
        name, Verdict.VIOLATED, f"Refuted after {calls:,} calls.", calls, epsilon
    )


def results() -> list[AuditResult]:
    warner = PureDP(1.0)
    gaussian = GaussianDP(0.5)
    appr = ApproxDP(2.0, 1e-5)
    entries = [
        AuditResult(
            id="audits/audit_edges.py::warner_rr",
            verdict=Verdict.CERTIFIED,
            summary="Proved by enumeration: ε is exactly 1 for every pair of neighbour lists of 7 bits.",
            description="Warner's randomised response, bit by bit.\n\nA bit stays with probability e^ε/(1+e^ε).",
            mechanism="WarnerRR(epsilon=1)",
            parameters={"epsilon": 1.0, "nodes": 8},
            claim=claimed(warner, "edge LDP", "Hidano & Murakami 2022, Section 2.3"),
            evidence=[
                exact(warner, 1.0, verdict=Verdict.CERTIFIED),
                game(
                    -4e-5,
                    seed=1,
                    verdict=Verdict.NOT_REFUTED,
                    epsilon=0.962,
                    detectable=1.037,
                ),
            ],
            epsilon_lower=1.0,
            epsilon_upper=1.0000000000000002,
            controls=[refuted("WarnerRR(epsilon=1.5)", 128, 1.21)],
            reproduce="auditdp run audits/audit_edges.py::warner_rr --seed 20240611",
        ),
        AuditResult(
            id="audits/audit_edges.py::dprr",
            verdict=Verdict.NOT_REFUTED,
            summary="20,448 calls over 6 pairs did not refute the claim; ε = 1.08 would have been.",
            description="The DPRR provides (ε₁ + ε₂)-edge LDP.",
            mechanism="DPRR(epsilon1=0.1, epsilon2=0.9)",
            parameters={"epsilon1": 0.1, "epsilon2": 0.9},
            claim=claimed(
                PureDP(1.0), "edge LDP", "Hidano & Murakami 2022, Proposition 2"
            ),
            evidence=[
                with_figure(
                    game(
                        -1.5e-5,
                        seed=2,
                        verdict=Verdict.NOT_REFUTED,
                        epsilon=0.871,
                        detectable=1.083,
                    ),
                    {"scatter": degrees()},
                )
            ],
            epsilon_lower=0.871,
            controls=[
                refuted("DPRR(epsilon1=0.1, epsilon2=1.8)", 96, 1.34),
                refuted("DPRR without degree noise", 412, 1.09),
            ],
            reproduce="auditdp run audits/audit_edges.py::dprr --seed 20240611",
        ),
        AuditResult(
            id="audits/audit_features.py::feature_rr[theta=record]",
            verdict=Verdict.VIOLATED,
            summary="Refuted after 1,680 calls: ε is at least 1.31, against a claim of 1.",
            description="FeatureRR with θ computed from the record itself.",
            mechanism="FeatureRR(epsilon=1, bins=5, theta='record')",
            parameters={"epsilon": 1.0, "bins": 5, "theta": "record"},
            claim=claimed(PureDP(1.0), "value LDP", "Tran et al. 2022, Theorem 3"),
            evidence=[game(0.0036, seed=3, verdict=Verdict.VIOLATED, epsilon=1.31289)],
            epsilon_lower=1.31289,
            controls=[refuted("FeatureRR(epsilon=2)", 64, 1.41)],
            counterexample=Counterexample(
                pair="z  = (0.00, 0.00, 1.00)\nz' = (0.00, 1.00, 1.00)",
                output="u = (1, 5, 5)",
                explanation="P(u | z) = 0.0127 and P(u | z') = 0.0508: a ratio of 4.00, where e^1 = 2.72 is allowed.",
            ),
            reproduce="auditdp replay 'audits/audit_features.py::feature_rr[theta=record]' --seed 20240611",
        ),
        AuditResult(
            id="audits/audit_edges.py::graphpub_degrees",
            verdict=Verdict.VIOLATED,
            expected="violation",
            summary="One output is possible for one input and impossible for its neighbour: ε is infinite.",
            description="GraphPub with noisy degrees, as published.",
            mechanism="GraphPub(epsilon1=1, epsilon2=3)",
            claim=claimed(PureDP(4.0), "edge", "Xu et al. 2024, Section 3.6"),
            evidence=[
                exact(PureDP(4.0), math.inf, verdict=Verdict.VIOLATED, slack=1.2)
            ],
            epsilon_lower=math.inf,
            epsilon_upper=math.inf,
            counterexample=Counterexample(
                pair="path 0–1–2 | path 0–1–2 with the edge 0–2",
                output="the empty graph",
                explanation="P(output | first) = 0.0183 and P(output | second) = 0.",
            ),
            reproduce="auditdp replay audits/audit_edges.py::graphpub_degrees --seed 20240611",
        ),
        AuditResult(
            id="audits/audit_edges.py::lap_graph",
            verdict=Verdict.INCONCLUSIVE,
            summary="A control survived, so this audit has no power: LapGraph without noise on the edge count.",
            mechanism="LapGraph(epsilon=1)",
            claim=claimed(PureDP(1.0), "edge", "Wu et al. 2021, Section 5"),
            evidence=[
                game(
                    -2e-5,
                    seed=4,
                    verdict=Verdict.NOT_REFUTED,
                    epsilon=0.12,
                    detectable=1.9,
                )
            ],
            epsilon_lower=0.12,
            controls=[
                refuted("LapGraph(epsilon=3)", 800, 1.2),
                ControlResult(
                    "LapGraph without noise on |E|",
                    Verdict.NOT_REFUTED,
                    "Wealth 0.31 at the end.",
                    20_000,
                    0.4,
                ),
            ],
            reproduce="auditdp run audits/audit_edges.py::lap_graph --seed 20240611",
        ),
        AuditResult(
            id="audits/audit_classic.py::sparse_vector_without_query_noise",
            verdict=Verdict.NOT_REFUTED,
            expected="violation",
            summary="4,000 calls did not refute the claim, though the violation is known.",
            mechanism="SparseVector(epsilon=1, noise_on_queries=False)",
            claim=claimed(PureDP(1.0), "value", "Lyu, Su & Li 2017, Algorithm 5"),
            evidence=[
                game(
                    2e-4,
                    seed=6,
                    verdict=Verdict.NOT_REFUTED,
                    epsilon=0.4,
                    detectable=2.5,
                )
            ],
            epsilon_lower=0.4,
            reproduce="auditdp run audits/audit_classic.py::sparse_vector_without_query_noise --seed 20240611",
        ),
        AuditResult(
            id="audits/audit_classic.py::gaussian",
            verdict=Verdict.NOT_REFUTED,
            summary="21,016 calls did not refute the curve; μ = 0.56 would have been.",
            mechanism="Gaussian(sensitivity=1, sigma=2)",
            claim=claimed(gaussian, "value", "Dong, Roth & Su 2022, Theorem 2.7"),
            evidence=[
                exact(gaussian, 0.5, verdict=Verdict.CERTIFIED, slack=0.96),
                game(
                    -3e-5,
                    seed=7,
                    verdict=Verdict.NOT_REFUTED,
                    epsilon=0.441,
                    detectable=0.56,
                ),
            ],
            epsilon_lower=0.441,
            reproduce="auditdp run audits/audit_classic.py::gaussian --seed 20240611",
        ),
        AuditResult(
            id="audits/audit_accounting.py::dp_appr_em_row",
            verdict=Verdict.CERTIFIED,
            summary="The optimal composition gives ε = 1.79 at δ = 1e-5, within the claim.",
            mechanism="TopK(k=20, epsilon=0.1)",
            claim=claimed(appr, "edge", "Zhang et al. 2024, Corollary 1"),
            evidence=[
                replace(
                    exact(appr, 1.79, verdict=Verdict.CERTIFIED, slack=0.8),
                    kind="accounting",
                    epsilon_lower=None,
                    details={"claimed_epsilon": 2.0, "about": "DP-SGD", "delta": 1e-5},
                )
            ],
            epsilon_upper=1.79000001,
        ),
        AuditResult(
            id="audits/audit_features.py::multi_bit_rectifier",
            verdict=Verdict.EQUIVALENT,
            summary="The mean is within 0.25 of the truth in all eight classes.",
            description="The multi-bit rectifier is unbiased.",
            mechanism="MultiBit(epsilon=2, features=100)",
            evidence=[estimation(Verdict.EQUIVALENT, 0.0)],
        ),
        AuditResult(
            id="audits/audit_edges.py::dprr_degree_is_unbiased",
            verdict=Verdict.VIOLATED,
            expected="violation",
            summary="The noisy degree of isolated nodes is too large by 0.71 on average.",
            mechanism="DPRR(epsilon1=0.1, epsilon2=0.9)",
            evidence=[estimation(Verdict.VIOLATED, 0.71)],
            reproduce="auditdp replay audits/audit_edges.py::dprr_degree_is_unbiased --seed 20240611",
        ),
        AuditResult(
            id="audits/audit_trainers.py::dp_sgd",
            verdict=Verdict.ERROR,
            summary=(
                "Traceback (most recent call last):\n"
                '  File "trainers.py", line 88, in fit\n'
                "    raise ValueError(shape)\n"
                "MechanismError: expected 64 outputs, got an array of shape (63, 2)"
            ),
            mechanism="DPSGD(noise_multiplier=1)",
            claim=claimed(appr, "relationship", "Abadi et al. 2016, Theorem 1"),
            reproduce="auditdp run audits/audit_trainers.py::dp_sgd --seed 20240611",
        ),
        AuditResult(
            id="audits/audit_trainers.py::lpgnn_ensemble",
            verdict=Verdict.SKIPPED,
            summary="Needs a CUDA device, and there is none here.",
            claim=claimed(
                PureDP(1.0), "label LDP", "Sajadmanesh & Gatica-Perez 2021, Section 4"
            ),
        ),
        AuditResult(
            id="audits/audit_nasty.py::evil[<script>alert('id')</script>]",
            verdict=Verdict.VIOLATED,
            summary=f"Refuted, whatever it is called: {NASTY}",
            description=NASTY,
            mechanism=f"Evil({NASTY})",
            parameters={
                "<b>name</b>": NASTY,
                "nothing": None,
                "shape": [1, 2],
                "flag": True,
            },
            claim=replace(
                claimed(PureDP(0.5), "value", "a source"), source=NASTY, adjacency=NASTY
            ),
            evidence=[
                Evidence(
                    kind="game",
                    verdict=Verdict.VIOLATED,
                    statement=NASTY,
                    assumptions=[NASTY],
                    epsilon_lower=0.50002,
                    details={
                        "wealth_path": [[10, 0.1], [40, "inf"], [80, 7.0]],
                        "threshold": THRESHOLD,
                        "refuted_at": 80,
                        NASTY: NASTY,
                        "scatter": {
                            "x_label": NASTY,
                            "y_label": NASTY,
                            "series": [{"name": NASTY, "points": [[1, 2], [2, 1]]}],
                        },
                        "pairs": [{"pair": NASTY, "calls": 3}],
                        "forecasters": [{"name": NASTY, "log_wealth": 1.0}],
                    },
                ),
                Evidence(
                    "estimation",
                    Verdict.NOT_REFUTED,
                    NASTY,
                    details={"classes": [class_of(NASTY), class_of("inf", high="inf")]},
                ),
            ],
            epsilon_lower=0.50002,
            controls=[refuted(NASTY, 20, 0.9)],
            counterexample=Counterexample(
                pair=NASTY, output=NASTY, explanation=NASTY, confirmed=False
            ),
            reproduce=f"auditdp replay {NASTY}",
        ),
    ]
    return [_with_totals(result, index) for index, result in enumerate(entries)]


def _with_totals(result: AuditResult, index: int) -> AuditResult:
    calls = sum(evidence.calls for evidence in result.evidence) + sum(
        control.calls for control in result.controls
    )
    seconds = 0.05 + calls * 3.1e-5 * (1 + index % 3)
    logs = [
        evidence.log_e_value
        for evidence in result.evidence
        if evidence.log_e_value is not None
    ]
    return replace(
        result,
        calls=calls,
        seconds=seconds,
        cpu_seconds=seconds * 0.9,
        cpu_by_phase={"game": seconds * 0.6, "trace": seconds * 0.3},
        mechanism_cpu_seconds=seconds * 0.2,
        log_e_value=max(logs) if logs else None,
        alpha=ALPHA if logs else None,
    )


def run(audits: list[AuditResult], status: str = "complete") -> RunRecord:
    ledger = []
    for result in audits:
        if result.evidence and result.evidence[-1].kind in ("game", "estimation"):
            ledger.append(LedgerEntry(result.id, "game", ALPHA))
            ledger.append(LedgerEntry(result.id, "confirmation", ALPHA / 4))
    return RunRecord(
        root_seed=20240611,
        status=status,
        arguments={
            "paths": ["audits"],
            "budget": "standard",
            "workers": "auto",
            "parameters": {},
            "keyword": None,
        },
        versions={
            "auditdp": "0.1.0",
            "python": "3.11.9",
            "numpy": "2.1.3",
            "scipy": "1.14.1",
            "scikit-learn": "1.5.2",
        },
        revision="4f1c2d7e9b",
        device="cpu, 16 cores",
        alpha_ledger=ledger,
        results=audits,
        seconds=sum(result.seconds for result in audits),
    )


@pytest.fixture
def record() -> RunRecord:
    return run(results())


@pytest.fixture(scope="session")
def whole_page() -> str:
    """The record as one page."""
    return render(run(results()), "html")


@pytest.fixture
def clean_record() -> RunRecord:
    audits = [result for result in results() if result.as_expected]
    return run(audits)


@pytest.fixture
def large_record() -> RunRecord:
    """Forty audits with evidence and plots."""
    plotted = [
        result for result in results() if result.evidence and "nasty" not in result.id
    ]
    return run(
        [
            replace(plotted[k % len(plotted)], id=f"audits/audit_{k}.py::claim_{k}")
            for k in range(40)
        ]
    )


@pytest.fixture
def audit(record: RunRecord):
    """Find an audit of the record by a part of its id."""
    return lambda part: next(result for result in record.results if part in result.id)


@pytest.fixture
def published(record: RunRecord):
    """Three audits of the record as published claims: a violated one, its repair, and one that is not refuted."""
    violated = next(
        r for r in record.results if r.verdict is Verdict.VIOLATED and r.counterexample
    )
    certified = next(r for r in record.results if r.verdict is Verdict.CERTIFIED)
    clean = next(r for r in record.results if r.verdict is Verdict.NOT_REFUTED)
    listed = {
        violated.id: Published("the mechanism", "as deployed"),
        certified.id: Published(
            "the mechanism",
            "with public bounds",
            violated.id,
            cost="4 times the variance",
        ),
        clean.id: Published(
            "another | mechanism", "as stated", decides="a proof of the sensitivity"
        ),
    }
    results = [replace(r, published=listed.get(r.id)) for r in record.results]
    return replace(record, results=results), violated, certified, clean
