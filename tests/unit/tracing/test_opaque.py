"""Code that a trace does not understand is opaque: with its line, and no proposal."""

import inspect
import math
import threading
from decimal import Decimal

import numpy as np
import pytest

from auditdp import PureDP
from tests.unit.tracing.toys import certain_kinds, kinds, log_ratio, pair_of, record

PURE = PureDP(1.0)


def clipped_noise(v, rng):
    return v + np.clip(rng.logistic(), -3, 3)


def truncated_noise(v, rng):
    noise = rng.laplace()
    while abs(noise) > 2:
        noise = rng.laplace()
    return v + noise


def student_noise(v, rng):
    return v + rng.standard_t(3)


def single_precision(v, rng):
    return v + float(np.float32(rng.laplace()))


def noise_in_a_matrix(v, rng):
    return np.array([v, v]) + np.ones((2, 2)) @ rng.laplace(size=2)


def several_names_by_a_table(v, rng):
    weights = np.array([v, 1.0, 2.0, 1.0])
    return rng.choice(4, size=2, replace=False, p=weights / weights.sum()).tolist()


@pytest.mark.parametrize(
    "function",
    [
        clipped_noise,
        truncated_noise,
        student_noise,
        single_precision,
        noise_in_a_matrix,
        several_names_by_a_table,
    ],
)
def test_opaque_code_is_named_with_its_line_and_proposes_nothing(function):
    lines, start = inspect.getsourcelines(function)
    pairs = [pair_of(function, 3.0, 5.0, PURE, seed) for seed in range(8)]
    partial = [pair for pair in pairs if pair.opaque]
    assert partial
    for pair in partial:
        assert pair.extent in ("part", "none")
        for site, _ in pair.opaque:
            assert start < site.line < start + len(lines)
            assert site.function == function.__name__
        assert "round" not in certain_kinds(pair)
        assert "opaque" in kinds(pair)


CALLS = []


def draws_in_a_thread(v, rng):
    out = []
    thread = threading.Thread(target=lambda: out.append(v + np.random.laplace()))  # noqa: NPY002
    thread.start()
    thread.join()
    return out


def state_between_calls(v, rng):
    CALLS.append(v)
    return v + rng.laplace(scale=3.0) + len(CALLS)


@pytest.mark.parametrize("function", [draws_in_a_thread, state_between_calls])
def test_an_output_that_the_same_draws_do_not_repeat_is_opaque(function):
    pair = pair_of(function, 3.0, 5.0, PURE)
    assert pair.repeats is False
    assert any("depends on something else" in why for _, why in pair.opaque)
    assert "round" not in certain_kinds(pair)


@pytest.mark.parametrize("limit", [-1, 1])
def test_code_that_refuses_watched_noise_returns_the_output_of_a_plain_run(limit):
    """Also if it refuses the noise on the neighbour alone."""

    def picky(v, rng):
        noise = rng.laplace()
        if v > limit and type(noise) is not float:
            raise TypeError("expected a float")
        return v + noise

    traced = record(picky, 2.0, seed=7)
    assert traced.output == picky(2.0, np.random.default_rng(7))
    assert "does not run on watched noise" in traced.untraceable
    pair = pair_of(picky, 1.0, 2.0, PURE, seed=7)
    assert pair.extent == "none"
    assert not pair.proposes


def test_an_exception_of_the_code_itself_is_an_output():
    def raising(v, rng):
        raise KeyError(v + rng.laplace())

    traced = record(raising, 1.0)
    assert str(traced.output) == "raised KeyError"
    assert traced.untraceable == ""
    assert traced.releases[0].location == 1.0


def test_noise_that_is_not_used_is_not_opaque():
    def unused(v, rng):
        rng.laplace(size=3)
        return v + rng.laplace()

    assert pair_of(unused).extent == "full"


@pytest.mark.parametrize(
    "convert", [Decimal, np.float64, np.array, np.float32, complex]
)
def test_numbers_of_any_type_are_moved(convert):
    def noisy(v, rng):
        if convert is Decimal:
            return convert(v) + int(rng.geometric(0.5)) - int(rng.geometric(0.5))
        return convert(v) + rng.laplace()

    pair = pair_of(noisy, 1.0, 3.0, outcomes=0)
    assert pair.extent == "full"
    assert pair.moved[0].distance == pytest.approx(2.0)


def test_an_imaginary_part_has_no_noise():
    pair = pair_of(lambda v, rng: complex(v, v) + rng.laplace(), 1.0, 1.5, PURE)
    assert kinds(pair) == ["round"]
    assert not math.isnan(log_ratio(pair))


def signed_by_bits(v, rng):
    noise = rng.standard_exponential(2)
    signs = rng.integers(0, 2, 2, dtype=np.uint64)
    noise.view(np.uint64)[...] ^= np.uint64(1 << 63) * signs
    return np.array([v, v]) + 8 * noise


def interval_around(v, rng):
    u = rng.random()
    return v / 10 + u / 0.3 if u < 0.3 else v / 10 - u


# The place of the cut depends on the value, which the coin alone does not hide.
def interval_by_a_coin(v, rng):
    place = rng.random()
    outside = place if place < v else place + 0.25
    return v + place / 4 if rng.random() < 0.5 else outside


@pytest.mark.parametrize(
    "function", [signed_by_bits, interval_around, interval_by_a_coin]
)
def test_draws_of_two_uses_propose_nothing_if_one_is_opaque(function):
    for seed in range(6):
        pair = pair_of(function, 0.3, 0.6, PureDP(0.5), seed)
        assert pair.opaque
        assert not pair.proposes, pair.findings


def test_the_move_under_noise_of_an_unknown_law_is_stated():
    line = student_noise.__code__.co_firstlineno + 1
    (finding,) = pair_of(student_noise, 3.0, 5.0, PURE).findings
    assert finding.sentence == (
        f"line {line} adds standard_t, whose law the trace does not know, "
        "to a value that differs by 2 between the inputs"
    )
