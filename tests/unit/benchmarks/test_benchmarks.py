"""The machinery of the benchmark: measurements, views, and runs that lose nothing."""

import json
import math
import re
import time
from dataclasses import asdict
from functools import partial

import numpy as np
import pytest
from scipy.stats import norm
from typer.testing import CliRunner

from auditdp import GaussianDP, Pair, PureDP
from auditdp.betting.forecasters.forecaster import LikelihoodRatio
from auditdp.testing import LaplaceMechanism, Response
from benchmarks import __main__ as command
from benchmarks import alarms, calls, peers, speed, tightness
from benchmarks.false_alarms_estimation import Noise
from benchmarks.parts import Bar, BlackBox, Options, Part, Table, View, median, spread
from benchmarks.record import Fragments, is_current

pytestmark = pytest.mark.dear


def asked(names):
    """Run the command for parts by name, in a Typer application of its own."""
    import typer

    app = typer.Typer()
    app.command()(command.main)
    return CliRunner().invoke(app, names)


# what is counted


def test_games_that_were_cut_off_are_longer_than_all_others():
    assert calls.middle([30, 10, None]) == 30
    assert calls.middle([10, None, None]) == math.inf
    best = "white box, best pair"
    result = {"reference": 20.0, "calls": {best: [20, 30, None]}}
    assert calls.factor(result, best) == 1.5
    assert calls.factor(result, calls.SEARCHED) is None
    assert calls.factor(result | {"reference": "Infinity"}, best) is None
    assert median([3, "Infinity", 1]) == 3
    assert spread([1.0, 1.0001], lambda value: f"{value:.2f}") == "1.00"
    assert spread([1.0, 3.0, 2.0], lambda value: f"{value:.0f}") == "2 (1–3)"


@pytest.mark.parametrize(
    ("true_level", "reference", "counts"),
    [
        (1.5, 100, True),
        (1.49, 100, False),
        ("Infinity", 99_999, True),
        (2.0, 100_000, False),
    ],
)
def test_rows_count_where_the_violation_is_clear_and_no_deep_tail(
    true_level, reference, counts
):
    row = {"true_level": true_level, "level": 1.0, "reference": reference}
    assert calls.counts_for_the_bar(row) is counts


def test_growth_is_the_divergence_of_the_posterior_from_the_cap():
    """A mechanism without noise gains ln(1/q) a call, for q = e^ε/(1+e^ε).

    Inside the cap nothing is gained.
    """
    p, q = 0.9, PureDP(1.0).posterior_cap()
    expected = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    odds = np.array([np.inf, 1.0, 0.5, math.log(p / (1 - p))])
    growth = calls.posterior_growth(odds, 1.0)
    assert growth == pytest.approx([math.log(1 / q), 0.0, 0.0, expected])


def test_gaussian_epsilon_inverts_the_curve():
    """For σ = 1 it is 4.377 at δ = 1e-5 (Balle & Wang 2018, Theorem 8)."""
    epsilon = calls.gaussian_epsilon(1.0, 1e-5)
    assert GaussianDP(1.0).delta_at(epsilon) == pytest.approx(1e-5, rel=1e-9)
    assert epsilon == pytest.approx(4.377, abs=1e-3)


def test_every_false_claim_is_false_and_each_way_of_playing_is_measured():
    every = calls.cases()
    assert len({case.name for case in every}) == len(every) == 21
    assert all(case.true_level > case.claim.level for case in every)
    result = calls.measure("Randomised response 1.5", 1, repeats=3)
    assert set(result["calls"]) == {calls.REFERENCE, calls.REPLAYED, *calls.GIVEN}
    assert all(len(found) == 3 for found in result["calls"].values())
    assert 20 <= result["reference"] <= 2000
    name = "TruncatedGeometric, natural logarithm"
    cut_off = calls.measure(name, 1, repeats=1, most_calls=100)
    assert cut_off["reference"] == math.inf
    assert set(cut_off["calls"]) == {calls.REFERENCE}
    (line,) = calls.view({name: cut_off}).tables[0].rows
    assert "> 100" in line


def test_clocks_count_the_time_of_the_mechanism_and_end_a_game():
    started = time.thread_time()
    outputs = speed.Busy(50.0)(np.zeros(3), 1000, rng=np.random.default_rng(0))
    assert outputs.shape == (1000, 3)
    assert 0.05 <= time.thread_time() - started < 0.1
    result = speed.measure(20, 1, [100, 1000], 1)
    assert [clock["calls"] for clock in result["clocks"]] == [100, 1000]
    last = result["clocks"][-1]
    assert last["mechanism_seconds"] >= 0.02
    overhead = last["cpu_seconds"] / last["mechanism_seconds"] - 1
    assert speed.overhead(last) == pytest.approx(overhead)
    started = time.process_time()
    assert tightness.play("Laplace", 1, cpu_seconds=0.0)["calls"] == 0
    assert time.process_time() - started < 5


@pytest.mark.full
def test_tightness_is_relative_to_the_exact_oracle_and_below_the_truth():
    result = tightness.play("NoisyHist2", 1, calls=20_000)
    assert result["calls"] == 20_000
    assert result["ratio"] == pytest.approx(result["bound"] / 9.9081, rel=1e-4)
    # False with probability at most .05, and far below at so few calls.
    assert 0.1 < result["bound"] < 10
    assert 0 < result["mechanism_seconds"] < result["cpu_seconds"]


def test_bars_are_open_until_everything_was_measured():
    run = {"ratio": 0.99, "bound": 0.098, "cpu_seconds": 10.0, "calls": 10}
    run |= {"mechanism_seconds": 1.0, "best_forecaster": "v"}
    every = {f"{row.name}/0": run for row in tightness.ROWS}

    def bar(results):
        return tightness.view(results).bars[0]

    wide = bar(every | {"SVT1/0": run | {"ratio": 0.9}})
    assert (wide.met, "not: SVT1" in wide.found) == (False, True)
    slow = every | {"SVT1/0": run | {"cpu_seconds": 61.0}}
    part = {"SVT1/0": run}
    assert [bar(each).met for each in (every, slow, part)] == [True, False, None]


def test_a_black_box_hides_the_law_and_keeps_the_clock():
    box = BlackBox(Response(1.0))
    assert not any(
        hasattr(box, name) for name in ("log_prob", "distribution", "score", "laplace")
    )
    assert box.name == "Response(1)"
    box(1, 1000, rng=np.random.default_rng(0))
    assert box.cpu_seconds > 0


def test_the_reference_of_a_violation_without_noise_is_the_floor():
    """Randomised response that returns its input gains ln(1/q) a call.

    The level needs ln 20 / .3133 = 9.6 calls, so 10 calls or a batch more.
    """
    case = calls.Case(
        "no noise",
        Response(math.inf),
        PureDP(1.0),
        calls.as_adjacency((1, 0)),
        math.inf,
    )
    spent = calls.calls_of_game(
        case.mechanism,
        case.claim,
        [Pair(1, 0)],
        [LikelihoodRatio()],
        lambda *_: np.random.default_rng(1),
        1000,
        bound=False,
    )
    assert 10 <= spent <= 14


# peers


@pytest.mark.parametrize("task", peers.TASKS, ids=lambda task: task.name)
def test_tasks_state_their_true_epsilon_and_tails(task):
    p, q = (part.clip(1e-300) for part in task.tail(task.thresholds))
    assert np.max(p - np.exp(task.epsilon) * q) <= task.delta + 1e-12
    first, second = task.outputs(20_000, np.random.default_rng(5))
    threshold, bound = task.best(task.draws)
    assert 0 < bound < task.epsilon
    for outputs, expected in ((first, p), (second, q)):
        at = float(expected[np.argmin(np.abs(task.thresholds - threshold))])
        tolerance = (
            norm.isf(0.5e-6) * math.sqrt(at * (1 - at) / 20_000) + 1e-3
        )  # α = 1e-6; 1e-3 for the grid and skewness
        assert abs(float((outputs >= threshold).mean()) - at) < tolerance


def test_a_peer_that_is_not_there_is_said_so(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(peers.importlib, "import_module", missing)
    result = peers.tightness(peers.TASKS[0].name, "privacy-estimates, beta", 1, 1)
    assert result["failed"].startswith(
        "not installed: ModuleNotFoundError: No module named 'privacy_estimates'"
    )
    (table,) = peers.view(
        {f"{peers.TASKS[0].name}: privacy-estimates, beta": result}
    ).tables
    assert table.rows[0][1] == "failed"
    assert result["failed"] in table.note


def test_our_bounds_on_a_task_are_below_the_truth_where_they_should_be():
    result = peers.tightness(peers.TASKS[0].name, "auditdp, game", 1, 1)
    assert (
        0 < result["bounds"][0] < 1.2
    )  # ε = 1; above it with probability at most .05, far above it much less


# false alarms


def test_alarm_view_adds_chunks_up_and_says_what_is_above():
    results = {
        "game: a/0": {"kind": "game", "name": "a", "repeats": 5000, "alarms": 200},
        "game: a/1": {"kind": "game", "name": "a", "repeats": 5000, "alarms": 400},
        "estimation: b/0": {
            "kind": "estimation",
            "name": "b",
            "repeats": 1000,
            "alarms": 51,
        },
    }
    view = alarms.view(results)
    assert [row[2:5] for table in view.tables for row in table.rows] == [
        ["10,000", "600", "6.00 %"],
        ["1,000", "51", "5.10 %"],
    ]
    (bar,) = view.bars
    assert bar.met is None  # not every case
    assert "above: game: a; estimation: b (beyond chance: game: a)" in bar.found


def test_an_overconfident_forecaster_is_wrong_and_sure():
    bound = alarms.Overconfident(LaplaceMechanism(0.5)).bind(
        LaplaceMechanism(1.0), Pair(1, 0)
    )
    assert bound.log_odds(np.array([5.0])) == pytest.approx([2.0])  # the truth is 1


def test_noises_are_standardised():
    """Mean 0 and variance 1 within 6 standard errors (with the fourth moments), α < 1e-8 each."""
    for kind, fourth in (
        ("normal", 3),
        ("Laplace", 6),
        ("exponential", 9),
        ("uniform", 1.8),
        ("coin", 1),
        ("rare", 98),
    ):
        draws = Noise(kind)(0.0, 100_000, rng=np.random.default_rng(3))
        assert abs(draws.mean()) < 6 / math.sqrt(1e5)
        assert abs(draws.var() - 1) < 6 * math.sqrt((fourth - 1) / 1e5) + 1e-3


# running and recording


def _bad():
    raise ValueError("no luck")


@pytest.fixture
def toy(monkeypatch):
    """One part with a unit that works and one that fails.

    ``ran`` lists the units that were run.
    """
    ran = []

    def watched(key, unit):
        ran.append(key)
        return unit()

    units = {"good/0": lambda: {"value": math.inf}, "bad": _bad}

    def view(results):
        rows = [[key, str(found["value"])] for key, found in results.items()]
        table = Table("Toy & co", ["name", "value"], rows, "note")
        return View([Bar("works <b>", True, "1 of 2")], [table])

    part = Part(
        "toy",
        "Toys",
        lambda options: {
            key: partial(watched, key, unit) for key, unit in units.items()
        },
        view,
        alone=True,
    )
    monkeypatch.setattr(command, "PARTS", {"toy": part})
    return part, ran


def test_a_failing_unit_is_recorded_and_loses_no_other(toy, tmp_path):
    outcome = asked(["all", "--out", str(tmp_path), "--seed", "7"])
    assert outcome.exit_code == command.FAILED, outcome.output
    fragment = json.loads((tmp_path / "bench" / "toy.json").read_text())
    assert fragment["units"]["good/0"]["result"] == {"value": "Infinity"}
    assert fragment["units"]["bad"]["error"] == "ValueError: no luck"
    assert fragment["stamps"][0]["options"] == asdict(Options(7))
    joined = json.loads((tmp_path / "bench.json").read_text())
    assert joined["parts"]["toy"] == fragment
    bar = {"text": "works <b>", "met": True, "found": "1 of 2"}
    assert joined["bars"]["toy"] == [bar]
    text = (tmp_path / "bench.html").read_text()
    assert "works &lt;b&gt;" in text
    assert "ValueError: no luck" in text
    assert "http" not in re.sub(r"http://www\.w3\.org/\S+", "", text)  # self-contained
    asked(["all", "--out", str(tmp_path), "--repeats", "3"])
    reduced = json.loads((tmp_path / "bench.json").read_text())
    assert reduced["bars"]["toy"][0]["met"] is None
    assert "Reduced runs: toys." in (tmp_path / "bench.html").read_text()


def test_resume_runs_only_what_is_missing_or_was_made_with_other_options(toy, tmp_path):
    part, ran = toy
    for arguments, expected in (
        (["--seed", "7"], ["good/0", "bad"]),
        (["--seed", "7", "--resume"], ["bad"]),
        (["--seed", "8", "--resume"], ["good/0", "bad"]),
        (["--seed", "8", "--row", "good"], ["good/0"]),
    ):
        ran.clear()
        asked(["all", "--out", str(tmp_path), *arguments])
        assert ran == expected, arguments
    fragment = Fragments(tmp_path).read(part)
    assert set(fragment["units"]) == {"good/0", "bad"}
    assert is_current(fragment["units"]["good/0"], fragment, Options(8))
    assert not is_current(fragment["units"]["bad"], fragment, Options(8))


def test_report_writes_the_page_again_and_runs_nothing(toy, tmp_path):
    asked(["all", "--out", str(tmp_path)])
    toy[1].clear()
    before = (tmp_path / "bench.html").read_text()
    (tmp_path / "bench.html").unlink()
    assert asked(["report", "--out", str(tmp_path)]).exit_code == 0
    assert (tmp_path / "bench.html").read_text() == before
    assert toy[1] == []


def test_an_unknown_row_is_told_the_rows(toy, tmp_path):
    outcome = asked(["all", "--row", "nobody", "--out", str(tmp_path)])
    assert outcome.exit_code == 2
    assert "bad, good" in re.sub(r"\s+", " ", outcome.output.replace("│", ""))
