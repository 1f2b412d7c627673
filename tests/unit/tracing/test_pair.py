"""A pair of traced runs.

Outputs of any form, levels of loss, and values beside noise.
"""

import json
import math
import re
from dataclasses import dataclass

import numpy as np
import pytest

from auditdp import (
    AccountedDP,
    ApproxDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from auditdp.accountants import GaussianCurve
from auditdp.errors import MechanismError
from auditdp.tracing import Trace
from auditdp.tracing.outputs import where_differ
from tests.unit.tracing.toys import certain_kinds, kinds, pair_of, two_sided


@dataclass
class Report:
    total: float
    rows: int = 0


def total(values, rng):
    return sum(values) + rng.laplace(scale=1.0)


def gaussian(v, rng):
    return v + rng.normal()


def laplace(v, rng):
    return v + rng.laplace()


FORMS = {
    "set": lambda noisy: {noisy},
    "JSON": lambda noisy: json.dumps({"total": noisy}),
    "text": lambda noisy: f"about {noisy:.2f}",
    "object": lambda noisy: Report(noisy, 3),
    "array": lambda noisy: np.array([noisy, 0.0]),
}


@pytest.mark.parametrize(
    "noise", [lambda rng: rng.laplace(), lambda rng: two_sided(1, rng)]
)
@pytest.mark.parametrize("form", FORMS)
def test_outputs_of_any_form_differ_by_their_noisy_values_alone(form, noise):
    def released(v, rng):
        return FORMS[form](v + noise(rng))

    pair = pair_of(released, 3, 5, PureDP(1.0))
    assert pair.extent == "full"
    assert pair.differ is None
    assert kinds(pair) == ["loss"]
    plain = released(3, np.random.default_rng(0))
    assert where_differ(pair.first.output, plain) is None


def test_tables_of_pandas_are_traced():
    pd = pytest.importorskip("pandas")

    def counts(table, rng):
        sizes = table.groupby("city").size().reindex(["Oslo", "Rome"], fill_value=0)
        return pd.DataFrame({"n": sizes + rng.laplace(scale=1.0, size=2)})

    rows = pd.DataFrame({"city": ["Oslo", "Rome", "Rome"]})
    pair = pair_of(counts, rows, rows.iloc[:2], PureDP(1.0))
    assert pair.extent == "full"
    assert not kinds(pair)
    assert pair.level == pytest.approx(1.0)
    plain = counts(rows, np.random.default_rng(0))
    pd.testing.assert_frame_equal(pair.first.output, plain)


@pytest.mark.parametrize(
    ("show", "place"),
    [
        (lambda noisy, v: [noisy, v], r"output\[1\] \(3 and 5\)"),
        (lambda noisy, v: Report(noisy, v), r"output.rows \(3 and 5\)"),
        (lambda noisy, v: {noisy: 1, v: 2}, "keys"),
        (lambda noisy, v: np.array([noisy, v]), r"output \(\[1\] 3.0 and 5.0\)"),
        (lambda noisy, v: np.zeros(v), r"shapes \(3,\) and \(5,\)"),
        (lambda noisy, v: f"{noisy:.1f} of {v}", "of 3"),
        (lambda noisy, v: dict.fromkeys(("a", "b")[:: v - 4], noisy), "order of keys"),
        (lambda noisy, v: noisy / (v - 3), "raised ZeroDivisionError"),
    ],
)
def test_a_value_beside_the_noise_is_found_with_its_place(show, place):
    pair = pair_of(
        lambda v, rng: show(v + rng.laplace(scale=9.0), v), 3, 5, PureDP(1.0)
    )
    assert certain_kinds(pair) == ["round"]
    assert re.search(place, pair.findings[0].sentence), pair.findings


def test_a_finding_names_the_line_the_move_and_the_scale_that_is_needed():
    line = total.__code__.co_firstlineno + 1
    (finding,) = pair_of(total, [1, 2], [1, 5], PureDP(1.0)).findings
    assert finding.sentence == (
        f"line {line} adds Laplace noise of scale 1 to a value that differs by 3 between "
        "the inputs; 1-DP needs scale 3"
    )
    assert finding.site.file == __file__
    assert finding.site.line == line


@pytest.mark.parametrize(
    ("code", "claim", "level", "needs"),
    [
        (laplace, PureDP(1.0), 2.0, "scale 2"),
        (gaussian, GaussianDP(1.0), 2.0, "scale 2"),
        (gaussian, ZeroConcentratedDP(0.5), 2.0, "scale 2"),
        (gaussian, RenyiDP(4.0, 2.0), 8.0, ""),
        # Theorem 8 of Balle & Wang (2018): μ = 2 at δ = 1e-5 has ε = 9.9973.
        (gaussian, ApproxDP(1.0, 1e-5), 9.99730, "scale 7.46"),
    ],
)
def test_the_level_is_that_of_the_accountants(code, claim, level, needs):
    pair = pair_of(code, 3, 5, claim)
    assert pair.satisfies is False
    assert needs in pair.findings[0].sentence
    assert pair.level == pytest.approx(level, rel=0.02)
    assert pair.share > 1


def test_a_move_as_large_as_a_double_needs_infinite_noise():
    pair = pair_of(gaussian, 0.0, 1e308, ApproxDP(1.0, 1e-5))
    assert "scale inf" in pair.findings[0].sentence


def test_many_releases_compose_by_the_optimal_theorem():
    """The theorem is of Kairouz, Oh & Viswanath (2015); δ = 1e-5."""

    def satisfies(claim):
        def noisy(values, rng):
            return [v + rng.laplace(scale=10.0) for v in values]

        return pair_of(noisy, [0] * 30, [1] * 30, claim, outcomes=0).satisfies

    assert [satisfies(PureDP(epsilon)) for epsilon in (3.0, 2.9)] == [True, False]
    claims = ApproxDP(2.4, 1e-5), ApproxDP(1.0, 1e-5)
    assert list(map(satisfies, claims)) == [True, False]


def test_gaussian_and_pure_parts_compose_to_a_bound():
    def noisy(v, rng):
        return v + rng.normal(scale=2.0), v + rng.laplace(scale=4.0)

    pair = pair_of(noisy, claim=ApproxDP(2.0, 1e-3))
    # The exact curve of both, by numerical integration over the Laplace output.
    x = np.linspace(-80, 81, 200001)
    density = np.exp(-np.abs(x - 1) / 4) / 8
    losses = (np.abs(x) - np.abs(x - 1)) / 4
    grid = np.linspace(-0.25, 0.25, 41)
    curve = [GaussianCurve(2.0).delta_at(2.0 - loss) for loss in grid]
    exact = float((density * np.interp(losses, grid, curve)).sum() * (x[1] - x[0]))
    assert exact * (1 - 1e-3) <= pair.composed.delta_at(2.0) < 10 * exact


def test_a_curve_is_compared_at_each_of_its_points():
    claim = AccountedDP([(0.0, 0.4), (1.0, 0.13), (2.0, 0.03)], quoted=0.13)
    assert pair_of(gaussian, claim=claim).satisfies
    assert not pair_of(lambda v, rng: v + rng.normal(scale=0.7), claim=claim).satisfies
    quoted = GaussianCurve(1.0).delta_at(4.0)
    claim = AccountedDP([(0.0, 0.04), (1.0, 0.01), (4.0, quoted)], quoted=quoted)
    pair = pair_of(gaussian, claim=claim)
    assert pair.is_single
    assert pair.proposes
    assert pair.share == pytest.approx(1.0)


def test_without_a_claim_there_is_no_level():
    pair = pair_of(total, [1], [2])
    assert pair.satisfies is None
    assert not pair.findings
    with pytest.raises(ValueError, match="give compare"):
        _ = pair.level
    assert "no claim" in str(pair)


def test_a_summary_states_whether_the_level_is_a_bound():
    claim = PureDP(2.0)
    assert str(pair_of(total, [1], [2], claim)).endswith(
        "on this pair and run: at most epsilon = 1; the claim is 2-DP"
    )
    partly = pair_of(
        lambda v, rng: v + rng.laplace() + rng.standard_t(2.0), 1, 2, claim
    )
    assert not partly.is_bound
    assert "the output may lose more" in str(partly)


def largest_of(v, rng):
    return max(0.0, *(0 * v + rng.laplace(scale=1.0) for _ in range(v)))


def test_a_loop_that_runs_more_often_is_named_and_proposes_nothing():
    found = pair_of(largest_of, 2, 3, PureDP(9.0)).findings
    flow = [finding for finding in found if finding.kind == "flow"]
    assert "more often" in flow[0].sentence
    assert not flow[0].is_read_off


@pytest.mark.parametrize(("rows", "runs"), [([1, 2, 3], 2), ([0, 1, 2], 3)])
def test_a_replay_is_repeated_only_if_its_releases_are_matched_anew(rows, runs):
    trace = Trace(lambda rows, rng: [row + rng.laplace() for row in rows])
    trace.replay(rows, trace.record([1, 2], np.random.default_rng(0)))
    assert trace.runs == runs


def test_vectorised_mechanisms_are_traced_for_one_run():
    def histogram(data, size, *, rng):
        return data + rng.laplace(scale=1.0, size=(size, len(data)))

    first = np.array([1.0, 2.0])
    second = np.array([1.0, 4.0])
    pair = pair_of(histogram, first, second, PureDP(1.0))
    assert pair.extent == "full"
    assert pair.level == pytest.approx(2.0)
    plain = histogram(first, 1, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(pair.first.output, plain)


def test_a_search_has_one_number_for_every_pair():
    pairs = [pair_of(total, [0], [k], PureDP(2.0), outcomes=0) for k in range(4)]
    assert [pair.share for pair in pairs] == [pytest.approx(k / 2) for k in range(4)]
    assert [pair.is_notable for pair in pairs] == [False, False, False, True]
    beside = pair_of(lambda v, rng: [v, laplace(v, rng)], claim=PureDP(1), outcomes=0)
    assert beside.share == math.inf
    assert beside.is_notable
    assert pair_of(largest_of, 2, 3, outcomes=0).is_notable


def test_an_input_that_is_changed_in_place_is_refused():
    with pytest.raises(MechanismError, match="changes its input"):
        pair_of(lambda rows, rng: rows.append(rng.laplace()), [1.0], [2.0])


@pytest.mark.parametrize(("norm", "findings"), [(1.000001, 0), (1.001, 1)])
def test_an_excess_of_single_precision_is_no_finding(norm, findings):
    def clipped(vector, rng):
        return np.asarray(vector, np.float32) + rng.normal(size=2)

    pair = pair_of(clipped, [norm, 0.0], [0.0, 0.0], GaussianDP(1.0))
    assert pair.share == pytest.approx(norm, rel=1e-6)
    assert len(pair.findings) == findings


def test_a_sum_in_another_order_differs_by_rounding_alone():
    def descent(values, rng):
        rng.normal(size=len(values))  # Its shape parts the two runs.
        weight = 0.1
        for value in values[:4]:
            weight = weight - 0.3 * (value + rng.normal())
        return weight

    first = [0.1, 20.2, 3.3, 40.1, 1.0]
    second = [20.3, 3.4, 40.2, 0.2]
    pair = pair_of(descent, first, second, GaussianDP(0.1), seed=4)
    assert pair.second.parted
    assert pair.differ is None


@pytest.mark.parametrize(
    ("show", "is_certain"),
    [(lambda rows: rows.sum(), False), (lambda rows: rows, True)],
)
def test_noise_on_each_record_is_certain_if_the_output_shows_it(show, is_certain):
    rows = np.arange(3.0)
    pair = pair_of(
        lambda rows, rng: show(rows + rng.normal(size=len(rows))),
        rows,
        rows[1:],
        GaussianDP(1.0),
    )
    losses = [one.is_read_off for one in pair.findings if one.kind == "loss"]
    assert losses == [is_certain]
