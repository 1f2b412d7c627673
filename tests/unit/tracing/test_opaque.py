"""What a trace does not understand is said to be opaque, with the line, and nothing is read off what rests on it."""

import inspect
import math
import threading
from decimal import Decimal

import numpy as np
import pytest

from auditdp.claims.statements import PureDP
from auditdp.tracing import Trace, compare
from tests.unit.tracing.ratios import log_ratio

STATE = {"calls": 0}


def clipped_noise(v, rng):
    return v + np.clip(rng.logistic(), -3, 3)


def truncated_noise(v, rng):
    noise = rng.laplace()
    while abs(noise) > 2:
        noise = rng.laplace()
    return v + noise


def one_sided_after_a_comparison(v, rng):
    noise = rng.laplace()
    if noise < 0:
        noise = rng.laplace() * 2
    return v + noise


def student_noise(v, rng):
    return v + rng.standard_t(3)


def single_precision(v, rng):
    return v + float(np.float32(rng.laplace()))


def product_of_draws(v, rng):
    return v + rng.normal() * rng.normal()


def mixed_sum(v, rng):
    return v + (rng.normal() + rng.laplace())


def noise_in_a_matrix(v, rng):
    return np.array([v, v]) + np.ones((2, 2)) @ rng.laplace(size=2)


def squared(v, rng):
    return v + rng.normal() ** 2


def draws_in_a_thread(v, rng):
    out = []
    thread = threading.Thread(target=lambda: out.append(v + np.random.laplace()))  # noqa: NPY002
    thread.start()
    thread.join()
    return out


def state_between_calls(v, rng):
    STATE["calls"] += 1
    return v + rng.laplace(scale=3.0) + STATE["calls"]


def several_names_by_a_table(v, rng):
    weights = np.array([v, 1.0, 2.0, 1.0])
    return rng.choice(4, size=2, replace=False, p=weights / weights.sum()).tolist()


OPAQUE = [
    several_names_by_a_table,
    clipped_noise,
    truncated_noise,
    one_sided_after_a_comparison,
    student_noise,
    single_precision,
    product_of_draws,
    mixed_sum,
    noise_in_a_matrix,
    squared,
]


@pytest.mark.parametrize("function", OPAQUE)
def test_it_is_said_with_the_line_and_proposes_nothing(function):
    trace = Trace(function)
    pairs = [
        compare(trace, 3.0, 5.0, np.random.default_rng(seed), claim=PureDP(1.0))
        for seed in range(12)
    ]
    partial = [pair for pair in pairs if pair.opaque]
    assert partial
    lines, start = inspect.getsourcelines(function)
    for pair in partial:
        assert pair.extent in ("part", "none")
        assert all(start < site.line < start + len(lines) for site, _ in pair.opaque)
        assert all(function.__name__ == site.function for site, _ in pair.opaque)
        assert not [
            finding
            for finding in pair.findings
            if finding.kind == "round" and finding.is_read_off
        ]
        assert any(finding.kind == "opaque" for finding in pair.findings)


@pytest.mark.parametrize("function", [draws_in_a_thread, state_between_calls])
def test_an_output_that_the_same_draws_do_not_repeat_is_opaque(function):
    pair = compare(
        Trace(function), 3.0, 5.0, np.random.default_rng(0), claim=PureDP(1.0)
    )
    assert pair.repeats is False
    assert any("depends on something else" in why for _, why in pair.opaque)
    assert not [
        finding
        for finding in pair.findings
        if finding.kind == "round" and finding.is_read_off
    ]


def test_code_that_does_not_run_on_watched_noise_returns_what_a_plain_run_returns():
    def picky(v, rng):
        noise = rng.laplace()
        if type(noise) is not float:
            raise TypeError("expected a float")
        return v + noise

    traced = Trace(picky).record(1.0, np.random.default_rng(7))
    assert traced.output == picky(1.0, np.random.default_rng(7))
    assert "does not run on watched noise" in traced.untraceable
    assert (
        compare(
            Trace(picky), 1.0, 2.0, np.random.default_rng(7), claim=PureDP(1.0)
        ).extent
        == "none"
    )


def test_an_exception_of_the_code_itself_is_an_output():
    def raising(v, rng):
        noisy = v + rng.laplace()
        raise KeyError(noisy)

    traced = Trace(raising).record(1.0, np.random.default_rng(0))
    assert str(traced.output) == "raised KeyError"
    assert not traced.untraceable
    assert traced.releases[0].location == 1.0


def test_noise_that_nobody_uses_is_not_opaque():
    def unused(v, rng):
        rng.laplace(size=3)
        return v + rng.laplace()

    assert compare(Trace(unused), 1.0, 2.0, np.random.default_rng(0)).extent == "full"


@pytest.mark.parametrize(
    "convert",
    [
        float,
        Decimal,
        lambda v: np.float64(v),
        lambda v: np.array(v),
        lambda v: [v, v],
        lambda v: np.float32(v),
        complex,
    ],
)
def test_a_value_of_any_numeric_type_is_understood(convert):
    def noisy(v, rng):
        value = convert(v)
        size = 2 if isinstance(value, list) else None
        if isinstance(value, Decimal):
            return value + int(rng.geometric(0.5)) - int(rng.geometric(0.5))
        return value + rng.laplace(size=size)

    pair = compare(Trace(noisy), 1.0, 3.0, np.random.default_rng(0), outcomes=0)
    assert pair.extent == "full"
    assert pair.moved[0].distance == pytest.approx(
        4.0 if isinstance(convert(1.0), list) else 2.0
    )


def test_an_imaginary_part_without_noise_gets_round_it():
    def half_noisy(v, rng):
        return complex(v, v) + rng.laplace()

    pair = compare(
        Trace(half_noisy), 1.0, 1.5, np.random.default_rng(0), claim=PureDP(1.0)
    )
    assert [finding.kind for finding in pair.findings] == ["round"]
    assert not math.isnan(log_ratio(pair))


def signed_in_place(v, rng):
    """Laplace noise made of exponential draws by their bits, which is not followed."""
    noise = rng.standard_exponential(2)
    noise.view(np.uint64)[...] ^= np.uint64(1 << 63) * rng.integers(
        0, 2, 2, dtype=np.uint64
    )
    return np.array([v, v]) + 8 * noise


def interval_around(v, rng):
    """A uniform draw that decides, and is then used: no reuse of noise, and not understood."""
    u = rng.random()
    return v / 10 + u / 0.3 if u < 0.3 else v / 10 - u


@pytest.mark.parametrize("function", [signed_in_place, interval_around])
def test_draws_that_are_used_in_two_ways_are_no_finding_where_one_of_them_is_not_understood(
    function,
):
    for seed in range(6):
        pair = compare(
            Trace(function), 1.0, 2.0, np.random.default_rng(seed), claim=PureDP(1.0)
        )
        assert pair.opaque
        assert not pair.proposes, pair.findings


def test_how_far_a_value_moves_is_said_where_the_law_is_not_known():
    line = student_noise.__code__.co_firstlineno + 1
    pair = compare(
        Trace(student_noise), 3.0, 5.0, np.random.default_rng(0), claim=PureDP(1.0)
    )
    said = f"line {line} adds standard_t, whose law the trace does not know, to a value that moves by 2"
    assert [finding.sentence for finding in pair.findings] == [said]


def test_code_that_does_not_run_on_watched_noise_on_the_neighbour_alone_is_not_accused():
    def picky(v, rng):
        noise = rng.laplace()
        if v > 1 and type(noise) is not float:
            raise TypeError("expected a float")
        return v + noise

    pair = compare(Trace(picky), 1.0, 2.0, np.random.default_rng(7), claim=PureDP(1.0))
    assert pair.extent == "none"
    assert not pair.proposes


@pytest.mark.parametrize("seed", range(4))
def test_what_chance_decides_is_not_read_off_where_the_same_noise_is_used_otherwise(
    seed,
):
    """The place where the interval is cut depends on the value, which the coin of the comparison does not hide alone."""

    def interval(v, rng):
        place = rng.random()
        outside = place if place < v else place + 0.25
        return v + place / 4 if rng.random() < 0.5 else outside

    pair = compare(
        Trace(interval), 0.3, 0.6, np.random.default_rng(seed), claim=PureDP(0.5)
    )
    assert pair.opaque
    assert [finding.kind for finding in pair.findings if finding.kind != "opaque"] == [
        "loss"
    ]
    assert not pair.proposes
