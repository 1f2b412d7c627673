"""``auditdp account``: every family against its accountants, the inverse problems, and refusals that say what to do."""

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

NO_OPACUS = importlib.util.find_spec("opacus") is None
KEYS = """
schema family parameters asked given statement upper lower solved verdict reason
findings accountants
"""
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


@pytest.fixture(scope="module")
def fork_server():
    """One that has imported Opacus, which half of the commands use: two seconds each."""
    server = ForkServer("opacus.accountants")
    yield server
    server.close()


def account(project, options, *more, **others):
    return project("account", *options.split(), *more, **others)


def recorded(project, options, *more):
    outcome = account(project, f"{options} --format json", *more)
    assert outcome.code == 0, outcome.err
    return outcome.record


def epsilons(record):
    return {row["name"]: row["epsilon"] for row in record["accountants"]}


def words(text):
    """Text without its line breaks."""
    return " ".join(text.split())


@pytest.mark.dear
@each_family
def test_epsilon_at_delta(project, options, free, best):
    record = recorded(project, f"{options} {free} --delta 1e-5")
    assert set(record) == set(KEYS.split())
    assert record["family"] == options.split()[0]
    assert (record["asked"], record["given"]) == ("epsilon", 1e-5)
    name, value = free.removeprefix("--").split()
    assert record["parameters"][name] == float(value)
    assert all(set(row) == ROW | {"epsilon"} for row in record["accountants"])
    assert record["upper"] == best.name
    rows = {row["name"]: row for row in record["accountants"]}
    row = rows[best.name]
    for key in ("soundness", "sampling", "adjacency", "source"):
        assert row[key] == getattr(best, key)
    # A convolution in the same process may run on more threads, and add in another order.
    assert row["epsilon"] == pytest.approx(best.epsilon_at(1e-5), rel=1e-9)
    for other in rows.values():
        if other["soundness"] == Soundness.UPPER and not other["absent"]:
            assert float(other["epsilon"]) >= row["epsilon"]
    assert (record["solved"], record["verdict"]) == (None, None)


@pytest.mark.parametrize(("options", "free", "best"), FAMILIES[:1])
def test_delta_at_epsilon(project, options, free, best):
    record = recorded(project, f"{options} {free} --epsilon .5")
    assert (record["asked"], record["upper"]) == ("delta", best.name)
    rows = {row["name"]: row for row in record["accountants"]}
    assert rows[best.name]["delta"] == pytest.approx(best.delta_at(0.5), rel=1e-12)
    assert all(set(row) == ROW | {"delta"} for row in rows.values())


@pytest.mark.dear
@each_family
def test_a_solution_meets_the_target(project, options, free, best):
    """It is within the target by less than one unit of the fifth digit allows."""
    record = recorded(project, f"{options} --target-epsilon 1 --delta 1e-4")
    solved, name = record["solved"], free.split()[0]
    assert (solved["target_epsilon"], solved["delta"]) == (1.0, 1e-4)
    assert f"--{solved['parameter']}" == name
    again = recorded(project, f"{options} {name} {solved['value']!r} --delta 1e-4")
    assert again["accountants"] == record["accountants"]
    assert 0.999 <= epsilons(again)[again["upper"]] <= 1.0


def test_unequal_parts(project):
    arguments = ["--part", ".1,0,10", "--part", ".5,1e-7", "--delta", "1e-6"]
    expected = HeterogeneousComposition((0.1,) * 10 + (0.5,), (0.0,) * 10 + (1e-7,))
    found = epsilons(recorded(project, "compose", *arguments))
    assert list(found.values()) == [expected.epsilon_at(1e-6)]
    refused = account(project, "compose --target-epsilon 1", *arguments)
    assert refused.code == 2
    assert "no parameter in common" in refused.err


def test_gumbel_noise_by_its_scale(project):
    """Scale 40 at sensitivity 2 has range 2·2/40 = .1, and .05 where scores move the same way."""
    by_scale = "top-k --count 9 --scale 40 --sensitivity 2"
    found = epsilons(recorded(project, f"{by_scale} --delta 1e-6"))
    by_eta = epsilons(recorded(project, "top-k --count 9 --eta .1 --delta 1e-6"))
    assert list(found.values()) == pytest.approx(list(by_eta.values()), rel=1e-12)
    monotone = epsilons(recorded(project, f"{by_scale} --monotone --delta 0"))
    assert list(monotone.values())[-1] == pytest.approx(9 * 0.05, rel=1e-12)


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
def test_the_length_of_a_training(options, parameters):
    """⌈2·60000/256⌉ = ⌈468.75⌉ steps; 1/1e-6 exactly, though the double is smaller than 1e-6; ⌈1000/30⌉ = 34 batches."""
    assert dp_sgd(noise_multiplier=1.0, **options).parameters == parameters


def test_infinity_is_a_string(project):
    """The own δ of the parts exceed the δ of the command."""
    options = "compose --part-epsilon 1 --part-delta .1 --count 9 --delta 1e-3"
    record = recorded(project, options)
    assert set(epsilons(record).values()) == {"inf"}
    proved, bound = "No ε is proved at δ = 0.001", f"ε not below ∞ by {record['lower']}"
    assert record["statement"] == f"{proved}; {bound}"
    infinite = recorded(project, "gaussian --sigma 1 --epsilon inf")
    assert infinite["given"] == "inf"


POISSON = "dp-sgd --noise-multiplier 1 --sampling-rate .01"


def test_the_answer_in_words_and_a_table(project):
    outcome = account(project, f"{POISSON} --steps 1000 --delta 1e-5")
    parameters = "(noise_multiplier=1, rate=0.01, steps=1000)"
    upper = f"(1.829, 1e-5)-DP: upper bound by PLDUpper{parameters}"
    lower = f"ε not below 1.828 by PLDLower{parameters}"
    assert f"{upper}; {lower}" in words(outcome.out)
    rows = [line.split() for line in outcome.out.splitlines()]
    assert ["PLDUpper", "upper", "bound", "1.82827"] in [row[:4] for row in rows]
    assert ["PLDLower", "lower", "bound", "1.82822"] in [row[:4] for row in rows]
    assert ["RDP", "unproved", "upper", "bound"] in [row[:4] for row in rows]


@pytest.mark.skipif(not NO_OPACUS, reason="Opacus is installed")
def test_an_accountant_that_is_not_installed_is_a_row_with_the_remedy(project):
    outcome = account(project, f"{POISSON} --steps 10 --delta 1e-5 --claim 9")
    assert outcome.code == 0
    remedy = "install it with: pip install 'auditdp[torch]'"
    assert f"OpacusPRV needs opacus, which is not installed; {remedy}" in outcome.out
    assert "found about accountants" not in outcome.out


WITHOUT_DP_ACCOUNTING = "import sys\nsys.modules['dp_accounting'] = None"


def test_without_dp_accounting_the_other_accountants_answer(project):
    options = "dp-sgd --sampling fixed --noise-multiplier 4 --records 1000 --batch 10"
    options += " --steps 20 --delta 1e-5"
    done = account(project, options, patch=WITHOUT_DP_ACCOUNTING)
    assert done.code == 0, done.err
    assert "FixedSizeUpper" in done.out
    remedy = "install it with: pip install 'auditdp[accountants]'"
    missing = f"FixedSizeRDP needs dp_accounting, which is not installed; {remedy}"
    assert missing in words(done.out)


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
TRAINING = "dp-sgd --sampling-rate .01 --steps 10"


@pytest.mark.dear
@pytest.mark.parametrize("question", ["--delta 1e-5", "--epsilon 1"])
def test_an_accountant_that_fails_is_a_row_and_no_finding(project, question):
    """It is named with a remedy, and the others answer and are drawn."""
    options = f"{TRAINING} --noise-multiplier 5 --plot a.svg {question}"
    done = account(project, options, patch=FAILING)
    assert done.code == 0, done.err
    error = "RDP raised RuntimeError: no such series"
    assert f"{error}; it gave no answer: use another" in words(done.out)
    finding = "RDP(noise_multiplier=5, rate=0.01, steps=10): raised"
    assert finding not in words(done.out)
    assert "-DP: upper bound by PLDUpper" in done.out
    assert (project.root / "a.svg").stat().st_size > 5_000


def test_opacus_is_not_evaluated_for_a_delta_when_solving(project):
    """It would take seconds each time."""
    solving = f"{TRAINING} --target-epsilon 1 --delta 1e-5"
    assert account(project, solving, patch=ENDING).code == 0
    answering = f"{TRAINING} --noise-multiplier 5 --epsilon 1"
    assert account(project, answering, patch=ENDING).code == 99


@pytest.fixture
def in_process(monkeypatch, capsys):
    """Run a command in this process, and return its exit code, standard output and standard error."""

    def run(options):
        monkeypatch.setattr(sys, "argv", ["auditdp", "account", *options.split()])
        code = _carried_out("account", options.split())
        return code, *capsys.readouterr()

    return run


def out_of_memory(*_):
    raise MemoryError


@pytest.mark.dear
@pytest.mark.parametrize(
    "question",
    [
        "--noise-multiplier 1 --delta 1e-6",
        "--noise-multiplier 1 --epsilon 1",
        "--target-epsilon 1 --delta 1e-6",
    ],
)
def test_a_command_without_any_answer_has_its_own_exit_code(
    monkeypatch, in_process, question
):
    """Running out of memory is no finding, with a target or without one."""
    for kind in (ShuffledUpper, ShuffledLower):
        for method in ("delta_at", "epsilon_at"):
            monkeypatch.setattr(kind, method, out_of_memory)
    training = "dp-sgd --sampling shuffled --records 1000 --batch 100 --epochs 2"
    code, out, err = in_process(f"{training} {question}")
    assert code == 3
    assert "ran out of memory; it gave no answer: use fewer" in words(out + err)
    assert "found about" not in out
    assert "Traceback" not in err
    assert "Please report" not in err


def test_a_command_that_runs_out_of_memory_ends_with_no_code_of_a_finding(monkeypatch):
    """The objects of its frames are released before anything is printed, or Python ends it with 1."""
    held, printed = [], []

    def fill():
        big = np.zeros(10)
        held.append(weakref.ref(big))
        raise MemoryError

    def note(message):
        assert held[0]() is None
        printed.append(message)

    monkeypatch.setattr("auditdp.cli.common.app", fill)
    monkeypatch.setattr("auditdp.cli.common.say", note)
    assert _carried_out("account", []) == 3
    assert "out of memory" in printed[0]


@pytest.mark.parametrize(
    ("options", "code", "part"),
    [
        # σ = 1 loses 4.377 at δ = 1e-5, exactly.
        ("gaussian --sigma 1 --delta 1e-5 --claim 4.3", 1, "VIOLATED: The claimed ε"),
        ("gaussian --sigma 1 --delta 1e-5 --claim 4.4", 0, "CERTIFIED: The claimed ε"),
        ("top-k --count 20 --eta .1 --delta 1e-6 --claim .95", 0, "NOT_REFUTED: The"),
        # The classic formula at σ = .3 has 16.2 where 18.6 are lost, which does not decide the exit code.
        ("gaussian --sigma .3 --delta 1e-5 --claim 30", 0, "underestimates: ε = 16.1"),
        ("gausian --sigma 1 --delta .1", 2, "gaussian"),
    ],
)
def test_a_claim_decides_the_exit_code(in_process, options, code, part):
    found, out, err = in_process(options)
    assert found == code
    assert part in words(out + err)


@pytest.mark.dear
@pytest.mark.parametrize("ending", ["svg", "png", "html"])
def test_a_plot(project, ending):
    options = f"top-k --count 20 --eta .1 --delta 1e-6 --plot plots/curve.{ending}"
    outcome = account(project, options)
    assert outcome.code == 0, outcome.err
    file = project.root / "plots" / f"curve.{ending}"
    if ending == "png":
        assert file.read_bytes().startswith(b"\x89PNG")
        assert file.stat().st_size > 20_000
        return
    text = file.read_text(encoding="utf-8")
    assert ending == "svg" or "(1.015, 1e-6)-DP: upper bound by TopKZCDP" in text
    end = text.index("</svg>") + len("</svg>")
    figure = ElementTree.fromstring(text[text.index("<svg") : end])
    paths = figure.iter("{http://www.w3.org/2000/svg}path")
    # A curve for each accountant, none of them a stub.
    assert sum(path.get("d").count("L") > 20 for path in paths) == 7
    assert "TopKNonAdaptive (lower bound)" in text


REFUSED = """
compose --count 3 --part-epsilon 1 => --delta D for ε … --target-epsilon E --delta D
compose --count 3 --part-epsilon 1 --delta .1 --epsilon 1 => one of these questions
compose --count 3 --part-epsilon 1 --delta 1 => --delta 1 … 0 <= delta < 1
compose --count 3 --part-epsilon 1 --delta nan => --delta nan … 0 <= delta < 1
compose --count 3 --part-epsilon 1 --epsilon -1 => --epsilon -1 … >= 0
compose --count x --part-epsilon 1 --delta .1 => --count
compose --part-epsilon 1 --delta .1 => --count is missing … --part
compose --count 3 --delta .1 => --part-epsilon is missing … --target-epsilon E --delta D
compose --count 3 --part .1,0 --delta .1 => --part … all of them
compose --part .1 --delta .1 => --part .1 … EPSILON,DELTA
compose --part .1,0,-3 --delta .1 => --part .1,0,-3 … EPSILON,DELTA
compose --count 3 --part-epsilon 1 --epsilon 1 --claim 2 => --claim 2 … --delta instead
compose --count 3 --part-epsilon 1 --delta .1 --claim -2 => epsilon >= 0 … -2
compose --count 3 --part-epsilon 1 --delta .1 --target-epsilon 2 => nothing is missing … --part-epsilon
compose --count 9 --part-delta .1 --delta .1 --target-epsilon 2 => no value from 1 … larger target
compose --count 9 --target-epsilon 2 --delta 0 => target delta … 0.0
compose --count 9 --part-epsilon 1 --delta .1 --plot curve.pdf => curve.pdf … .svg, .png, .html
compose --count 9 --part-epsilon 1 --delta .1 --plot a_file/curve.svg => a_file/curve.svg … another path
top-k --delta .1 => --count
top-k --count 3 --eta 1 --scale 2 --delta .1 => --eta and --scale … one of them
top-k --count 3 --eta 1 --monotone --delta .1 => --monotone … --scale
gaussian --sigma 0 --delta .1 => sigma=0.0 … > 0
gaussian --sigma 1e-300 --delta .1 => finite
zcdp --rho 1 --count -1 --delta .1 => count=-1
subsample --mechanism-epsilon 1 --sampling-rate .1 --delta .1 => --scheme
subsample --scheme coin --mechanism-epsilon 1 --sampling-rate .1 --delta .1 => coin … poisson
subsample --scheme poisson --mechanism-epsilon 1 --sampling-rate 2 --delta .1 => --sampling-rate 2 … (0, 1]
subsample --scheme poisson --mechanism-epsilon 1 --sampling-rate nan --delta .1 => nan … (0, 1]
subsample --scheme fixed --mechanism-epsilon 1 --batch 3 --delta .1 => --records is missing
subsample --scheme fixed --mechanism-epsilon 1 --batch 3 --records 2 --delta .1 => --batch 3 --records 2
subsample --scheme with-replacement --mechanism-epsilon 1 --sampling-rate .1 --delta .1 => --records and
dp-sgd --noise-multiplier 1 --sampling-rate .1 --delta .1 => --steps or --epochs
dp-sgd --noise-multiplier 1 --sampling-rate .1 --batch 3 --steps 3 --delta .1 => --batch … --records
dp-sgd --noise-multiplier 1 --sampling fixed --sampling-rate .1 --steps 3 --delta .1 => --sampling-rate
dp-sgd --noise-multiplier 1 --sampling shuffled --sampling-rate .1 --steps 13 --delta .1 => --steps 13 … 10 batches
compose --part .1,0,1000000000 --delta .1 => --part .1,0,1000000000 … 100,000 times at most
node-level --nodes 9 --batch 3 --steps 3 --noise-multiplier 1 --delta .1 => --out-degree is missing … --reached
node-level --nodes 9 --batch 3 --steps 3 --noise-multiplier 1 --delta .1 --reached 3 --layers 2 => --reached follows from
"""
"""A command a line, and the parts of its error."""


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_an_incomplete_or_contradictory_command_is_refused(
    tmp_path, monkeypatch, in_process, line
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a_file").touch()
    options, parts = line.split(" => ")
    code, out, err = in_process(options)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    for part in parts.split(" … "):
        assert part in words(err)


def test_accountants_are_imported_when_a_command_needs_them():
    """The command line itself needs neither them nor plots."""
    heavy = "{'torch', 'matplotlib', 'dp_accounting', 'opacus'}"
    code = f"import sys, auditdp.cli; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
