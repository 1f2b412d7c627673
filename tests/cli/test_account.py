"""``auditdp account``: every family against its accountants, the inverse problems, and refusals that say what to do."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import weakref
from xml.etree import ElementTree

import numpy as np
import pytest

from auditdp.accountants import (
    ZCDP,
    FixedSizeSubsampled,
    FixedSizeUpper,
    GaussianCurve,
    HeterogeneousComposition,
    LaplaceUpper,
    NodeLevelUpper,
    OptimalComposition,
    PLDUpper,
    PoissonSubsampled,
    ShuffledLower,
    ShuffledUpper,
    Soundness,
    TopKZCDP,
    WithReplacementSubsampled,
)
from auditdp.cli import _carried_out
from auditdp.cli.account import Sampling, dp_sgd
from tests.cli.conftest import ForkServer

pytestmark = pytest.mark.dear

NO_OPACUS = importlib.util.find_spec("opacus") is None
KEYS = {
    "schema",
    "family",
    "parameters",
    "asked",
    "given",
    "statement",
    "upper",
    "lower",
    "solved",
    "verdict",
    "reason",
    "findings",
    "accountants",
}
ROW = {"name", "soundness", "sampling", "adjacency", "source", "finding", "absent"}

# Each family: its options without the free parameter, the free parameter, and the accountant of the smallest bound.
FAMILIES = [
    (
        "compose --count 10 --part-delta 1e-9",
        "--part-epsilon .1",
        OptimalComposition(0.1, 1e-9, 10),
    ),
    ("top-k --count 20", "--eta .1", TopKZCDP(20, 0.1)),
    ("gaussian --sensitivity 2 --count 3", "--sigma 5", GaussianCurve(5.0, 2.0, 3)),
    ("laplace --sensitivity 2 --count 3", "--scale 5", LaplaceUpper(5.0, 2.0, 3)),
    ("zcdp --count 4", "--rho .05", ZCDP(0.2)),
    (
        "subsample --scheme poisson --sampling-rate .01",
        "--mechanism-epsilon 2",
        PoissonSubsampled(2.0, 0.0, 0.01),
    ),
    (
        "subsample --scheme fixed --records 1000 --batch 10 --mechanism-delta 1e-6",
        "--mechanism-epsilon 2",
        FixedSizeSubsampled(2.0, 1e-6, 0.01),
    ),
    (
        "subsample --scheme with-replacement --records 1000 --batch 10",
        "--mechanism-epsilon 2",
        WithReplacementSubsampled(2.0, 0.0, 1000, 10),
    ),
    (
        "dp-sgd --sampling-rate .1 --steps 20",
        "--noise-multiplier 2",
        PLDUpper(2.0, 0.1, 20),
    ),
    (
        "dp-sgd --sampling fixed --records 1000 --batch 100 --steps 20",
        "--noise-multiplier 4",
        FixedSizeUpper(4.0, 1000, 100, 20),
    ),
    (
        "dp-sgd --sampling shuffled --records 1000 --batch 100 --epochs 2",
        "--noise-multiplier 2",
        ShuffledUpper(2.0, 10, 2),
    ),
    (
        "node-level --nodes 1000 --out-degree 2 --layers 2 --batch 10 --steps 10",
        "--noise-multiplier 20",
        NodeLevelUpper(20.0, 1000, 7, 10, 10),
    ),
]
each_family = pytest.mark.parametrize(
    ("options", "free", "best"), FAMILIES, ids=[o for o, _, _ in FAMILIES]
)


def account(project, options, *more):
    return project("account", *options.split(), *more)


def words(text):
    """Text without its line breaks."""
    return " ".join(text.split())


@each_family
def test_epsilon_at_delta(project, options, free, best):
    outcome = account(project, f"{options} {free} --delta 1e-5 --format json")
    assert outcome.code == 0, outcome.err
    record = outcome.record
    assert set(record) == KEYS
    assert (record["family"], record["asked"], record["given"]) == (
        options.split()[0],
        "epsilon",
        1e-5,
    )
    assert record["parameters"][free.split()[0].removeprefix("--")] == float(
        free.split()[1]
    )
    assert all(set(row) == ROW | {"epsilon"} for row in record["accountants"])
    rows = {row["name"]: row for row in record["accountants"]}
    assert record["upper"] == best.name
    row = rows[best.name]
    assert row["epsilon"] == pytest.approx(best.epsilon_at(1e-5), rel=1e-9)  # see below
    assert [row[key] for key in ("soundness", "sampling", "adjacency", "source")] == [
        best.soundness,
        best.sampling,
        best.adjacency,
        best.source,
    ]
    uppers = [
        float(r["epsilon"])
        for r in rows.values()
        if r["soundness"] == Soundness.UPPER and not r["absent"]
    ]
    assert min([*uppers, row["epsilon"]]) == row["epsilon"]
    assert (record["solved"], record["verdict"]) == (None, None)


@pytest.mark.parametrize(("options", "free", "best"), FAMILIES[:1])
def test_delta_at_epsilon(project, options, free, best):
    outcome = account(project, f"{options} {free} --epsilon .5 --format json")
    assert outcome.code == 0, outcome.err
    rows = {row["name"]: row for row in outcome.record["accountants"]}
    assert (outcome.record["asked"], outcome.record["upper"]) == ("delta", best.name)
    # A convolution in the same process may run on more threads, and add in another order.
    assert rows[best.name]["delta"] == pytest.approx(best.delta_at(0.5), rel=1e-12)
    assert all(set(row) == ROW | {"delta"} for row in rows.values())


@each_family
def test_what_is_solved_for_meets_the_target(project, options, free, best):
    """Solved for, put back, and it is within the target by less than one unit of the fifth digit allows."""
    outcome = account(
        project, f"{options} --target-epsilon 1 --delta 1e-4 --format json"
    )
    assert outcome.code == 0, outcome.err
    solved = outcome.record["solved"]
    assert (solved["parameter"], solved["target_epsilon"], solved["delta"]) == (
        free.split()[0][2:],
        1.0,
        1e-4,
    )
    again = account(
        project,
        f"{options} {free.split()[0]} {solved['value']!r} --delta 1e-4 --format json",
    ).record
    assert again["accountants"] == outcome.record["accountants"]
    proved = {row["name"]: row["epsilon"] for row in again["accountants"]}[
        again["upper"]
    ]
    assert 0.999 <= proved <= 1.0


def test_unequal_parts(project):
    arguments = ["--part", ".1,0,10", "--part", ".5,1e-7", "--delta", "1e-6"]
    expected = HeterogeneousComposition((0.1,) * 10 + (0.5,), (0.0,) * 10 + (1e-7,))
    record = account(project, "compose --format json", *arguments).record
    assert [row["epsilon"] for row in record["accountants"]] == [
        expected.epsilon_at(1e-6)
    ]
    refused = account(project, "compose --target-epsilon 1", *arguments)
    assert (refused.code, "no parameter in common" in refused.err) == (2, True)


def test_gumbel_noise_by_its_scale(project):
    """Scale 40 at sensitivity 2 has range 2·2/40 = .1, and .05 where scores move the same way."""
    by_scale = account(
        project, "top-k --count 9 --scale 40 --sensitivity 2 --delta 1e-6 --format json"
    ).record
    by_eta = account(
        project, "top-k --count 9 --eta .1 --delta 1e-6 --format json"
    ).record
    monotone = account(
        project,
        "top-k --count 9 --scale 40 --sensitivity 2 --monotone --delta 0 --format json",
    ).record
    assert [row["epsilon"] for row in by_scale["accountants"]] == pytest.approx(
        [row["epsilon"] for row in by_eta["accountants"]], rel=1e-12
    )
    assert monotone["accountants"][-1]["epsilon"] == pytest.approx(9 * 0.05, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (
            {"records": 60000, "batch": 256, "epochs": 2},
            {"sampling": "poisson", "sampling-rate": 256 / 60000, "steps": 469},
        ),
        (
            {"sampling_rate": 1e-6, "epochs": 1},
            {"sampling": "poisson", "sampling-rate": 1e-6, "steps": 1_000_000},
        ),
        (
            {"sampling": Sampling.fixed, "records": 1000, "batch": 30, "epochs": 1},
            {"sampling": "fixed", "records": 1000, "batch": 30, "steps": 34},
        ),
        (
            {"sampling": Sampling.shuffled, "records": 1000, "batch": 30, "steps": 68},
            {"sampling": "shuffled", "batches": 34, "epochs": 2},
        ),
    ],
)
def test_how_long_a_training_is(options, parameters):
    """⌈2·60000/256⌉ = ⌈468.75⌉ steps; 1/1e-6 exactly, though the double is smaller than 1e-6; ⌈1000/30⌉ = 34 batches."""
    assert dp_sgd(noise_multiplier=1.0, **options).parameters == parameters


def test_infinity_is_a_string(project):
    """The parts' own δ exceed the δ that is asked for."""
    record = account(
        project,
        "compose --part-epsilon 1 --part-delta .1 --count 9 --delta 1e-3 --format json",
    ).record
    assert {row["epsilon"] for row in record["accountants"]} == {"inf"}
    assert (
        record["statement"]
        == f"No ε is proved at δ = 0.001; ε not below ∞ by {record['lower']}"
    )
    assert (
        account(project, "gaussian --sigma 1 --epsilon inf --format json").record[
            "given"
        ]
        == "inf"
    )


def test_the_answer_in_words_and_a_table(project):
    outcome = account(
        project,
        "dp-sgd --noise-multiplier 1 --sampling-rate .01 --steps 1000 --delta 1e-5",
    )
    parameters = "(noise_multiplier=1, rate=0.01, steps=1000)"
    assert (
        f"(1.829, 1e-5)-DP: upper bound by PLDUpper{parameters}; ε not below 1.828 by PLDLower{parameters}"
        in words(outcome.out)
    )
    rows = {line.split()[0]: line.split() for line in outcome.out.splitlines() if line}
    assert rows["PLDUpper"][1:4] == ["upper", "bound", "1.82827"]
    assert rows["PLDLower"][1:4] == ["lower", "bound", "1.82822"]
    assert rows["RDP"][1:5] == ["unproved", "upper", "bound", "2.10137"]


@pytest.mark.skipif(not NO_OPACUS, reason="Opacus is installed")
def test_an_accountant_that_is_not_installed_is_a_row_with_the_remedy(project):
    outcome = account(
        project,
        "dp-sgd --noise-multiplier 1 --sampling-rate .01 --steps 10 --delta 1e-5 --claim 9",
    )
    assert outcome.code == 0
    assert (
        "OpacusPRV needs opacus, which is not installed; install it with: pip install 'auditdp[torch]'"
        in outcome.out
    )
    assert "found about accountants" not in outcome.out


@pytest.fixture(scope="module")
def fork_server():
    """One that has imported Opacus, which half of the questions ask: two seconds each."""
    server = ForkServer("opacus.accountants")
    yield server
    server.close()


def patched(project, patch, *arguments):
    """Run the command line in a process where something was replaced before."""
    project.write("run.py", f"{patch}\nfrom auditdp.cli import main\nmain()\n")
    return subprocess.run(
        [sys.executable, "run.py", "account", *arguments],
        cwd=project.root,
        capture_output=True,
        text=True,
    )


FAILING = """
from auditdp.accountants.dp_sgd_poisson import RDP
def fails(self, level):
    raise RuntimeError("no such series")
RDP.epsilon_at = RDP.delta_at = fails
"""
ENDING = """
import os
from auditdp.accountants.dp_sgd_poisson import Opacus
Opacus.delta_at = lambda self, epsilon: os._exit(99)
"""
TRAINING = ["dp-sgd", "--sampling-rate", ".01", "--steps", "10"]


@pytest.mark.parametrize("question", [("--delta", "1e-5"), ("--epsilon", "1")])
def test_an_accountant_that_fails_is_a_row_and_no_finding(project, question):
    """Whoever raises is named with a remedy, and the others answer and are drawn."""
    options = [*TRAINING, "--noise-multiplier", "5", "--plot", "a.svg", *question]
    done = project("account", *options, patch=FAILING)
    assert done.code == 0, done.err
    assert (
        "RDP raised RuntimeError: no such series; it gave no answer: use another"
        in words(done.out)
    )
    assert "RDP(noise_multiplier=5, rate=0.01, steps=10): raised" not in words(
        done.out
    ), "no finding"
    assert "-DP: upper bound by PLDUpper" in done.out
    assert (project.root / "a.svg").stat().st_size > 5_000


def out_of_memory(*_):
    raise MemoryError


@pytest.mark.parametrize(
    "question",
    [
        "--noise-multiplier 1 --delta 1e-6",
        "--noise-multiplier 1 --epsilon 1",
        "--target-epsilon 1 --delta 1e-6",
    ],
)
def test_where_no_accountant_answers_the_exit_code_says_so(
    monkeypatch, capsys, question
):
    """Running out of memory is no finding, with a target or without one."""
    for kind in (ShuffledUpper, ShuffledLower):
        for method in ("delta_at", "epsilon_at"):
            monkeypatch.setattr(kind, method, out_of_memory)
    options = (
        f"dp-sgd --sampling shuffled --records 1000 --batch 100 --epochs 2 {question}"
    )
    monkeypatch.setattr(sys, "argv", ["auditdp", "account", *options.split()])
    code, message = _carried_out(["account"], in_project=False), capsys.readouterr()
    assert code == 3
    assert "ran out of memory; it gave no answer: use fewer" in words(
        message.out + message.err
    )
    assert "found about" not in message.out
    assert "Traceback" not in message.err
    assert "Please report" not in message.err


def test_a_command_that_runs_out_of_memory_ends_with_no_code_of_a_finding(
    monkeypatch, capsys
):
    """What its frames hold is let go before anything is said, or Python ends it with 1."""
    held = []

    def fill():
        big = np.zeros(10)
        held.append(weakref.ref(big))
        raise MemoryError

    def formatted():
        if held[0]() is not None:
            raise MemoryError
        return ""

    monkeypatch.setattr("auditdp.cli.app", fill)
    monkeypatch.setattr("auditdp.cli.traceback.format_exc", formatted)
    assert _carried_out([], in_project=False) == 3
    assert held[0]() is None
    assert "out of memory" in capsys.readouterr().err


def test_opacus_is_not_asked_for_a_delta_when_solving(project):
    """It would take seconds each time."""
    solved = project(
        "account", *TRAINING, "--target-epsilon", "1", "--delta", "1e-5", patch=ENDING
    )
    assert solved.code == 0
    asked = project(
        "account", *TRAINING, "--noise-multiplier", "5", "--epsilon", "1", patch=ENDING
    )
    assert asked.code == 99


@pytest.mark.parametrize(
    ("claim", "verdict", "code"), [(4.3, "VIOLATED", 1), (4.4, "CERTIFIED", 0)]
)
def test_a_claim(project, claim, verdict, code):
    """σ = 1 loses 4.377 at δ = 1e-5, exactly."""
    outcome = account(project, f"gaussian --sigma 1 --delta 1e-5 --claim {claim}")
    assert outcome.code == code
    assert f"{verdict}: The claimed ε = {claim} at δ = 1e-05 is" in outcome.out
    assert (
        account(
            project, f"gaussian --sigma 1 --delta 1e-5 --claim {claim} --format json"
        ).record["verdict"]
        == verdict
    )


def test_a_claim_between_the_bounds_is_not_decided(project):
    outcome = account(project, "top-k --count 20 --eta .1 --delta 1e-6 --claim .95")
    assert outcome.code == 0
    assert "NOT_REFUTED: The claimed ε = 0.95" in outcome.out


def test_a_finding_about_an_accountant_does_not_count(project):
    """The classic formula at σ = .3 says 16.2 where 18.6 are lost; that is said, and the exit code is the claim's."""
    outcome = account(project, "gaussian --sigma .3 --delta 1e-5 --claim 30")
    assert outcome.code == 0
    assert "found about accountants, not about the mechanism:" in outcome.out
    assert "underestimates: ε = 16.1" in outcome.out
    assert GaussianCurve(0.3).epsilon_at(1e-5) > 18


@pytest.mark.parametrize("ending", ["svg", "png", "html"])
def test_a_plot(project, ending):
    outcome = account(
        project, f"top-k --count 20 --eta .1 --delta 1e-6 --plot plots/curve.{ending}"
    )
    assert outcome.code == 0, outcome.err
    file = project.root / "plots" / f"curve.{ending}"
    if ending == "png":
        assert file.read_bytes().startswith(b"\x89PNG")
        assert file.stat().st_size > 20_000
        return
    text = file.read_text(encoding="utf-8")
    assert ending == "svg" or "(1.015, 1e-6)-DP: upper bound by TopKZCDP" in text
    figure = ElementTree.fromstring(
        text[text.index("<svg") : text.index("</svg>") + len("</svg>")]
    )
    lines = [
        path.get("d").count("L")
        for path in figure.iter("{http://www.w3.org/2000/svg}path")
    ]
    assert (
        sum(points > 20 for points in lines) == 7
    )  # a curve for each accountant, none of them a stub
    assert "TopKNonAdaptive (lower bound)" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "compose --count 3 --part-epsilon 1",
            ["--delta D for ε", "--target-epsilon E --delta D"],
        ),
        ("compose --count 3 --part-epsilon 1 --delta .1 --epsilon 1", ["only one of"]),
        (
            "compose --count 3 --part-epsilon 1 --delta 1",
            ["--delta 1", "0 <= delta < 1"],
        ),
        (
            "compose --count 3 --part-epsilon 1 --delta nan",
            ["--delta nan", "0 <= delta < 1"],
        ),
        ("compose --count 3 --part-epsilon 1 --epsilon -1", ["--epsilon -1", ">= 0"]),
        ("compose --count x --part-epsilon 1 --delta .1", ["--count"]),
        ("compose --part-epsilon 1 --delta .1", ["--count is missing", "--part"]),
        (
            "compose --count 3 --delta .1",
            ["--part-epsilon is missing", "--target-epsilon E --delta D"],
        ),
        ("compose --count 3 --part .1,0 --delta .1", ["--part", "all of them"]),
        ("compose --part .1 --delta .1", ["--part .1", "EPSILON,DELTA"]),
        ("compose --part .1,0,-3 --delta .1", ["--part .1,0,-3", "EPSILON,DELTA"]),
        (
            "compose --count 3 --part-epsilon 1 --epsilon 1 --claim 2",
            ["--claim 2", "--delta instead"],
        ),
        (
            "compose --count 3 --part-epsilon 1 --delta .1 --claim -2",
            ["epsilon >= 0", "-2"],
        ),
        (
            "compose --count 3 --part-epsilon 1 --delta .1 --target-epsilon 2",
            ["nothing is missing", "--part-epsilon"],
        ),
        (
            "compose --count 9 --part-delta .1 --delta .1 --target-epsilon 2",
            ["no value from 1", "larger target"],
        ),
        ("compose --count 9 --target-epsilon 2 --delta 0", ["target delta", "0.0"]),
        (
            "compose --count 9 --part-epsilon 1 --delta .1 --plot curve.pdf",
            ["curve.pdf", ".svg, .png, .html"],
        ),
        (
            "compose --count 9 --part-epsilon 1 --delta .1 --plot a_file/curve.svg",
            ["a_file/curve.svg", "another path"],
        ),
        ("top-k --delta .1", ["--count"]),
        (
            "top-k --count 3 --eta 1 --scale 2 --delta .1",
            ["--eta and --scale", "one of them"],
        ),
        ("top-k --count 3 --eta 1 --monotone --delta .1", ["--monotone", "--scale"]),
        ("gaussian --sigma 0 --delta .1", ["sigma=0.0", "> 0"]),
        ("gaussian --sigma 1e-300 --delta .1", ["finite"]),
        ("zcdp --rho 1 --count -1 --delta .1", ["count=-1"]),
        ("subsample --mechanism-epsilon 1 --sampling-rate .1 --delta .1", ["--scheme"]),
        (
            "subsample --scheme coin --mechanism-epsilon 1 --sampling-rate .1 --delta .1",
            ["coin", "poisson"],
        ),
        (
            "subsample --scheme poisson --mechanism-epsilon 1 --sampling-rate 2 --delta .1",
            ["--sampling-rate 2", "(0, 1]"],
        ),
        (
            "subsample --scheme poisson --mechanism-epsilon 1 --sampling-rate nan --delta .1",
            ["nan", "(0, 1]"],
        ),
        (
            "subsample --scheme fixed --mechanism-epsilon 1 --batch 3 --delta .1",
            ["--records is missing"],
        ),
        (
            "subsample --scheme fixed --mechanism-epsilon 1 --batch 3 --records 2 --delta .1",
            ["--batch 3 --records 2"],
        ),
        (
            "subsample --scheme with-replacement --mechanism-epsilon 1 --sampling-rate .1 --delta .1",
            ["--records and"],
        ),
        (
            "dp-sgd --noise-multiplier 1 --sampling-rate .1 --delta .1",
            ["--steps or --epochs"],
        ),
        (
            "dp-sgd --noise-multiplier 1 --sampling-rate .1 --batch 3 --steps 3 --delta .1",
            ["--batch", "--records"],
        ),
        (
            "dp-sgd --noise-multiplier 1 --sampling fixed --sampling-rate .1 --steps 3 --delta .1",
            ["--sampling-rate"],
        ),
        (
            "dp-sgd --noise-multiplier 1 --sampling shuffled --sampling-rate .1 --steps 13 --delta .1",
            ["--steps 13", "10 batches", "--epochs"],
        ),
        (
            "compose --part .1,0,1000000000 --delta .1",
            ["--part .1,0,1000000000", "100,000 times at most"],
        ),
        (
            "node-level --nodes 9 --batch 3 --steps 3 --noise-multiplier 1 --delta .1",
            ["--out-degree is missing", "--reached"],
        ),
        (
            "node-level --nodes 9 --batch 3 --steps 3 --noise-multiplier 1 --delta .1 --reached 3 --layers 2",
            ["--reached says", "one or the other"],
        ),
    ],
)
def test_what_cannot_be_answered(project, options, message):
    project.write("a_file", "")
    outcome = account(project, options)
    assert outcome.code == 2, outcome
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    for part in message:
        assert part in words(outcome.err)


def test_without_dp_accounting_its_accountants_name_the_extra_and_the_others_answer(
    project,
):
    options = "dp-sgd --sampling fixed --noise-multiplier 4 --records 1000 --batch 10 --steps 20 --delta 1e-5"
    done = patched(
        project, "import sys\nsys.modules['dp_accounting'] = None", *options.split()
    )
    assert done.returncode == 0, done.stderr
    assert "FixedSizeUpper" in done.stdout
    assert (
        "FixedSizeRDP needs dp_accounting, which is not installed; install it with: pip install 'auditdp[accountants]'"
    ) in words(done.stdout)


def test_a_misspelt_family(project):
    outcome = account(project, "gausian --sigma 1 --delta .1")
    assert outcome.code == 2
    assert "gaussian" in outcome.err


def test_accountants_are_imported_when_they_are_asked():
    """The command line itself needs neither them nor plots."""
    code = "import sys, auditdp.cli; print({'torch', 'matplotlib', 'dp_accounting', 'opacus'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
