"""What a trace says of a pair: outputs of any form, sentences, levels, and what got round the noise."""

import json
import math
from dataclasses import dataclass

import numpy as np
import pytest

from auditdp.accountants import GaussianCurve
from auditdp.claims.curves import AccountedDP, RenyiDP, ZeroConcentratedDP
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.tracing import Trace, compare, in_full
from auditdp.tracing.outputs import where_differ


@dataclass
class Report:
    total: float
    rows: int = 0


def total(values, rng):
    return sum(values) + rng.laplace(scale=1.0)


def of(function, data, neighbour, claim=None, seed=0, **keywords):
    return compare(
        Trace(function),
        data,
        neighbour,
        np.random.default_rng(seed),
        claim=claim,
        **keywords,
    )


FORMS = {
    "number": lambda noisy: noisy,
    "list": lambda noisy: [noisy, 1],
    "tuple in a dictionary": lambda noisy: {"answers": (noisy, {"again": noisy})},
    "set": lambda noisy: {noisy},
    "key": lambda noisy: {noisy: 1},
    "JSON": lambda noisy: json.dumps({"total": noisy}),
    "text": lambda noisy: f"about {noisy:.2f}",
    "object": lambda noisy: Report(noisy, 3),
    "array": lambda noisy: np.array([noisy, 0.0]),
    "objects": lambda noisy: np.array([noisy, "x"], dtype=object),
    "string array": lambda noisy: np.array([str(noisy)]),
}


@pytest.mark.parametrize(
    "noise",
    [lambda rng: rng.laplace(), lambda rng: rng.geometric(0.6) - rng.geometric(0.6)],
)
@pytest.mark.parametrize("form", FORMS)
def test_outputs_of_any_form_are_the_same_where_the_noisy_values_are(form, noise):
    def released(v, rng):
        return FORMS[form](v + noise(rng))

    pair = of(released, 3, 5, PureDP(1.0))
    assert pair.extent == "full"
    assert pair.differ is None
    assert [finding.kind for finding in pair.findings] == ["loss"]
    plain = released(3, np.random.default_rng(0))
    assert where_differ(pair.first.output, plain) is None


def test_tables_of_pandas_are_traced():
    pd = pytest.importorskip("pandas")

    def counts(table, rng):
        sizes = table.groupby("city").size().reindex(["Oslo", "Rome"], fill_value=0)
        return pd.DataFrame({"n": sizes + rng.laplace(scale=1.0, size=2)})

    rows = pd.DataFrame({"city": ["Oslo", "Rome", "Rome"]})
    pair = of(counts, rows, rows.iloc[:2], PureDP(1.0))
    assert pair.extent == "full"
    assert not pair.findings
    assert pair.level == pytest.approx(1.0)
    pd.testing.assert_frame_equal(
        pair.first.output, counts(rows, np.random.default_rng(0))
    )


@pytest.mark.parametrize(
    ("show", "where"),
    [
        (lambda noisy, v: [noisy, v], r"output\[1\] \(3 and 5\)"),
        (lambda noisy, v: {"a": noisy, "raw": v}, r"output\['raw'\] \(3 and 5\)"),
        (lambda noisy, v: Report(noisy, v), r"output.rows \(3 and 5\)"),
        (lambda noisy, v: [noisy] * v, r"lengths 3 and 5"),
        (lambda noisy, v: {noisy: 1, "odd" if v == 3 else "even": 2}, "'even', 'odd'"),
        (lambda noisy, v: noisy if v == 3 else float(round(noisy)), "output"),
        (lambda noisy, v: np.array([noisy, v]), r"output \(\[1\] 3.0 and 5.0\)"),
        (lambda noisy, v: np.zeros(v), r"shapes \(3,\) and \(5,\)"),
        (lambda noisy, v: f"{noisy:.1f} of {v}", "of 3"),
        (
            lambda noisy, v: dict(sorted({"b": noisy, "a": 1}.items(), reverse=v == 3)),
            "the order of keys",
        ),
        (lambda noisy, v: 1 if v == 3 else 1.0, "int and float"),
        (lambda noisy, v: None if v == 3 else noisy, "NoneType and float"),
    ],
)
def test_what_got_round_the_noise_is_said_with_its_place(show, where):
    pair = of(lambda v, rng: show(v + rng.laplace(scale=9.0), v), 3, 5, PureDP(1.0))
    (finding,) = pair.findings
    assert finding.kind == "round"
    assert finding.is_read_off
    import re

    assert re.search(where, finding.sentence), finding.sentence


def test_an_exception_on_one_input_gets_round_the_noise():
    def logarithm(v, rng):
        return math.log(v) + rng.laplace(scale=9.0)

    pair = of(logarithm, 1, 0, PureDP(1.0))
    assert any(
        finding.kind == "round" and "raised ValueError" in finding.sentence
        for finding in pair.findings
    )


def test_a_sentence_names_the_line_the_value_and_the_scale_that_would_do():
    line = total.__code__.co_firstlineno + 1
    (finding,) = of(total, [1, 2], [1, 5], PureDP(1.0)).findings
    assert (
        finding.sentence
        == f"line {line} adds Laplace noise of scale 1 to a value that moves by 3; 1-DP needs scale 3"
    )
    assert finding.site.line == line
    assert finding.site.file == __file__


@pytest.mark.parametrize(
    ("noise", "claim", "level", "needs"),
    [
        (lambda rng: rng.laplace(scale=1.0), PureDP(1.0), 2.0, "scale 2"),
        (lambda rng: rng.laplace(scale=1.0), ApproxDP(1.0, 1e-6), 2.0, "scale 2"),
        (lambda rng: rng.normal(scale=1.0), GaussianDP(1.0), 2.0, "scale 2"),
        (lambda rng: rng.normal(scale=1.0), ZeroConcentratedDP(0.5), 2.0, "scale 2"),
        (lambda rng: rng.normal(scale=1.0), RenyiDP(4.0, 2.0), 8.0, ""),
        (lambda rng: rng.normal(scale=1.0), PureDP(1.0), math.inf, "no finite ε"),
        # Balle & Wang (2018), Theorem 8: μ = 2 at δ = 1e-5 has ε = 9.9973.
        (lambda rng: rng.normal(scale=1.0), ApproxDP(1.0, 1e-5), 9.99730, "scale 7.46"),
    ],
)
def test_the_level_is_that_of_the_accountants(noise, claim, level, needs):
    pair = of(lambda v, rng: v + noise(rng), 3, 5, claim)
    assert pair.satisfies is False
    assert needs in pair.findings[0].sentence
    assert pair.level == pytest.approx(level, rel=0.02)
    assert pair.share > 1


def test_many_releases_compose_by_the_optimal_theorem():
    def noisy(values, rng):
        return [v + rng.laplace(scale=10.0) for v in values]

    data, neighbour = [0] * 30, [1] * 30
    assert of(noisy, data, neighbour, PureDP(3.0)).satisfies
    assert not of(noisy, data, neighbour, PureDP(2.9)).satisfies
    # Kairouz, Oh & Viswanath (2015): thirty .1-DP mechanisms at δ = 1e-5.
    pair = of(noisy, data, neighbour, ApproxDP(2.4, 1e-5))
    assert pair.satisfies
    assert pair.level < 2.4
    assert of(noisy, data, neighbour, ApproxDP(1.0, 1e-5)).satisfies is False


def test_gaussian_and_pure_parts_compose_to_a_bound_that_holds():
    def noisy(v, rng):
        return v + rng.normal(scale=2.0), v + rng.laplace(scale=4.0)

    pair = of(noisy, 0.0, 1.0, ApproxDP(2.0, 1e-3))
    # The exact curve of both, by numerical integration over the Laplace output.
    x = np.linspace(-80, 81, 200001)
    density = np.exp(-np.abs(x - 1) / 4) / 8
    losses = (np.abs(x) - np.abs(x - 1)) / 4
    grid = np.linspace(-0.25, 0.25, 41)
    deltas = np.interp(
        losses, grid, [GaussianCurve(2.0).delta_at(max(2.0 - g, 0.0)) for g in grid]
    )
    exact = float((density * deltas).sum() * (x[1] - x[0]))
    assert pair.composed.delta_at(2.0) >= exact * (1 - 1e-3)
    assert pair.composed.delta_at(2.0) < 10 * exact


def test_a_curve_is_compared_at_each_of_its_points():
    claim = AccountedDP([(0.0, 0.4), (1.0, 0.13), (2.0, 0.03)], quoted=0.13)
    assert of(lambda v, rng: v + rng.normal(scale=1.0), 0.0, 1.0, claim).satisfies
    assert not of(lambda v, rng: v + rng.normal(scale=0.7), 0.0, 1.0, claim).satisfies


def test_without_a_claim_there_is_no_level():
    pair = of(total, [1], [2])
    assert pair.satisfies is None
    with pytest.raises(ValueError, match="give compare"):
        _ = pair.level
    assert not pair.findings
    assert "no claim" in str(pair)


def test_a_summary_says_what_it_was_seen_on_and_whether_it_is_a_bound():
    assert str(of(total, [1], [2], PureDP(2.0))).endswith(
        "on this pair and run: at most epsilon = 1; the claim is 2-DP"
    )
    partial = of(
        lambda v, rng: v + rng.laplace() + rng.standard_t(2.0), 1, 2, PureDP(2.0)
    )
    assert not partial.is_bound
    assert "the output may lose more" in str(partial)
    around = of(lambda v, rng: (v, v + rng.laplace()), 1, 2, PureDP(2.0))
    assert not around.is_bound


def test_control_flow_that_parted_is_said_and_proposes_nothing_by_itself():
    def looped(v, rng):
        return max(0.0, *(0 * v + rng.laplace(scale=1.0) for _ in range(v)))

    pair = of(looped, 2, 3, PureDP(9.0))
    flow = [finding for finding in pair.findings if finding.kind == "flow"]
    assert flow
    assert "more often" in flow[0].sentence
    assert not flow[0].is_read_off


def test_vectorised_mechanisms_are_traced_for_one_run():
    def histogram(data, size, *, rng):
        return data + rng.laplace(scale=1.0, size=(size, len(data)))

    pair = of(histogram, np.array([1.0, 2.0]), np.array([1.0, 4.0]), PureDP(1.0))
    assert pair.extent == "full"
    assert pair.findings[0].sentence.endswith("moves by 2; 1-DP needs scale 2")
    plain = histogram(np.array([1.0, 2.0]), 1, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(pair.first.output, plain)


def test_mechanisms_of_the_mutation_room_and_methods_are_traced():
    class Noisy:
        scale = 1.0

        def __call__(self, v, rng):
            return self._noisy(v, rng)

        def _noisy(self, v, rng):
            return v + int(rng.geometric(0.5)) - int(rng.geometric(0.5))

    assert of(Noisy(), 1, 2, PureDP(1.0)).extent == "full"


def test_the_search_has_one_number_for_every_pair():
    shares = [of(total, [0], [k], PureDP(2.0), outcomes=0).share for k in range(4)]
    assert shares == [pytest.approx(k / 2) for k in range(4)]
    around = of(lambda v, rng: [v, v + rng.laplace()], 0, 1, PureDP(1.0), outcomes=0)
    assert around.share == math.inf
    assert around.is_notable
    assert [
        of(total, [0], [k], PureDP(2.0), outcomes=0).is_notable for k in (0, 2, 3)
    ] == [False, False, True]
    assert of(
        lambda v, rng: max(0.0, *(rng.laplace() for _ in range(v))), 2, 3, outcomes=0
    ).is_notable


def test_an_input_that_is_changed_in_place_is_refused():
    from auditdp.errors import MechanismError

    def careless(rows, rng):
        rows.append(rng.laplace())
        return rows

    with pytest.raises(MechanismError, match="changes its input"):
        of(careless, [1.0], [2.0])


def zeros(v, rng):
    noise = np.zeros(2)
    for _ in range(4):
        noise += rng.normal(size=2)
    return np.array(v) + noise


def constants(v, rng):
    return np.array(v) + (5.0 + rng.normal(scale=2.0, size=2)) - 5.0


def in_place(v, rng):
    total = np.array(v)
    total += rng.normal(scale=2.0, size=2)
    return total


@pytest.mark.parametrize("function", [zeros, constants, in_place])
def test_noise_on_a_constant_is_noise_on_what_it_is_added_to(function):
    pair = of(function, [1.0, 2.0], [1.0, 3.0], GaussianDP(9.0))
    assert pair.is_bound
    assert pair.level == pytest.approx(0.5)


def test_noise_on_a_constant_that_is_used_otherwise_accuses_nobody():
    pair = of(lambda v, rng: v + np.abs(5 + rng.laplace()), 1.0, 2.0, PureDP(1.0))
    assert pair.differ
    assert not pair.proposes
    assert any("may hide it" in finding.sentence for finding in pair.findings)


@pytest.mark.parametrize("hidden", [False, True])
def test_noise_on_a_constant_that_is_overwritten_hides_nothing(hidden):
    def trained(v, rng):
        weights = 1 + rng.normal(size=2)
        if not hidden:
            weights[:] = 0.0
        return np.abs(weights) + v, v + rng.normal(size=2)

    pair = of(trained, np.array([1.0, 2.0]), np.array([1.0, 3.0]), GaussianDP(1.0))
    assert pair.differ
    assert pair.proposes != hidden


def test_what_that_noise_does_not_reach_is_asked_once():
    def trained(v, rng):
        weights = 1 + rng.normal(size=2)
        weights[:] = 0.0
        return np.abs(weights) + v, v + rng.normal(size=2)

    trace, made = Trace(trained), []
    for other in ([1.0, 3.0], [4.0, 5.0]):
        before = trace.runs
        two = compare(
            trace,
            np.array([1.0, 2.0]),
            np.array(other),
            np.random.default_rng(0),
            claim=GaussianDP(1.0),
            outcomes=0,
        )
        pair = in_full(trace, two, 1)
        assert pair.proposes
        made.append(trace.runs - before)
    assert (
        made == [6, 3]
    )  # a run in which it is another constant, on either input, and one with other noise


def test_noise_on_a_constant_that_a_decision_is_made_by_accuses_nobody():
    """Whatever the noise of this run, another one may decide otherwise."""
    for seed in range(8):
        pair = of(
            lambda v, rng: bool(v > np.abs(1 + rng.laplace())),
            1.0,
            1.2,
            PureDP(1.0),
            seed=seed,
        )
        best = of(
            lambda v, rng: int(np.argmax(v + np.abs(1 + rng.laplace(size=3)))),
            [0, 1, 1],
            [0, 1, 0],
            PureDP(1.0),
            seed=seed,
        )
        assert not pair.proposes
        assert not best.proposes


def test_a_threshold_with_noise_is_compared_as_noise():
    """The exact count is compared with it: P(T ≤ 3) and P(T ≤ 5) differ by what the output tells."""
    pair = of(lambda v, rng: bool(v >= 4 + rng.laplace(scale=2.0)), 3, 5, PureDP(0.4))
    assert pair.outcomes.complete
    assert pair.outcomes.epsilon == pytest.approx(
        -np.log(np.exp(-0.5) / 2 / (1 - np.exp(-0.5) / 2))
    )


@pytest.mark.parametrize(
    "counts", [([0, 3], [0, 2]), ([0, 0], [1, 0]), ([1, 0], [0, 0])]
)
def test_a_sampler_that_is_given_a_value_adds_noise_to_it_where_the_value_is_0(counts):
    def first(counts, rng):
        return next(
            (
                k
                for k, count in enumerate(counts)
                if rng.laplace(loc=count, scale=4.0) > 1.5
            ),
            None,
        )

    pair = of(first, *counts, PureDP(1.0), seed=3)
    assert pair.is_bound
    assert pair.level == pytest.approx(0.25)


@pytest.mark.parametrize(("norm", "found"), [(1.000001, 0), (1.001, 1)])
def test_what_single_precision_rounds_is_no_finding(norm, found):
    def clipped(vector, rng):
        return np.asarray(vector, np.float32) + rng.normal(size=2)

    pair = of(clipped, [norm, 0.0], [0.0, 0.0], GaussianDP(1.0))
    assert pair.share == pytest.approx(norm, rel=1e-6)
    assert len(pair.findings) == found


def test_a_curve_that_is_exceeded_where_it_is_not_quoted_is_no_rounding():
    quoted = GaussianCurve(1.0).delta_at(4.0)
    claim = AccountedDP([(0.0, 0.04), (1.0, 0.01), (4.0, quoted)], quoted=quoted)
    pair = of(lambda v, rng: v + rng.normal(), 0.0, 1.0, claim)
    assert pair.is_single
    assert pair.share == pytest.approx(1.0)
    assert pair.proposes


def test_another_order_of_releases_that_rounds_a_sum_otherwise_is_no_way_round_the_noise():
    def descent(values, rng):
        rng.normal(size=len(values))  # of another shape
        weight = 0.1
        for value in values[:4]:
            weight = weight - 0.3 * (value + rng.normal())
        return weight

    pair = of(
        descent,
        [0.1, 20.2, 3.3, 40.1, 1.0],
        [20.3, 3.4, 40.2, 0.2],
        GaussianDP(0.1),
        seed=4,
    )
    assert pair.second.parted
    assert pair.differ is None


@pytest.mark.parametrize(
    ("shown", "known"), [(lambda rows: rows.sum(), False), (lambda rows: rows, True)]
)
def test_noise_on_each_record_is_read_off_where_the_output_shows_it(shown, known):
    rows = np.arange(3.0)
    pair = of(
        lambda rows, rng: shown(rows + rng.normal(size=len(rows))),
        rows,
        rows[1:],
        GaussianDP(1.0),
    )
    assert [
        finding.is_read_off for finding in pair.findings if finding.kind == "loss"
    ] == [known]
