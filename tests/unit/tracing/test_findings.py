"""Ordinary code, with one fault each as in public bug reports, and correct code.

A broken function is proposed with its kind and, if a line is to blame, that line, which
ends with ``# here``. Nothing is proposed of a correct one. Functions are traced on the
pair with two seeds and in both orders.
"""

import inspect
import math
from collections import Counter

import numpy as np
import pytest

from auditdp import ApproxDP, PureDP
from tests.unit.tracing.toys import pair_of, two_sided

PURE = PureDP(1.0)
CASES = []


def broken(kind, first, second, claim=PURE):
    return lambda function: CASES.append((function, (first, second), claim, kind))


def correct(first, second, claim=PURE):
    return broken(None, first, second, claim)


# -- broken: the amount of noise
# ---------------------------------------------------------


@broken("loss", {"a": 3, "b": 4}, {"a": 4, "b": 5})
def budget_not_split(counts, rng):
    return {name: counts[name] + rng.laplace(scale=1.0) for name in ("a", "b")}  # here


@broken("scale", [1.0, 2.0], [1.0, 2.0, 3.0])
def scale_from_the_data(values, rng):
    return len(values) + rng.laplace(scale=1 / len(values))  # here


# The exponential mechanism is .31-DP if a vote is added; a change moves two scores.
@broken("loss", (1, 0, 0), (0, 0, 1), PureDP(0.31))
def utility_moves_twice(votes, rng):
    weights = np.exp(np.array(votes) * 0.5)
    return int(rng.choice(3, p=weights / weights.sum()))  # here


@broken("loss", 3, 4)
def noise_of_one_sign(count, rng):
    return count + rng.exponential(1.0)  # here


@broken("number", [0.5, 0.5], [0.5, math.nan])
def clamp_lets_nan_through(values, rng):
    return float(np.sum(np.clip(values, 0, 1))) + rng.laplace(scale=1.0)  # here


@broken("whole", [1, 2, 4], [1, 2, 5])
def whole_noise_on_a_mean(values, rng):
    return sum(values) / 3 + two_sided(1.0, rng)  # here


# -- broken: noise that is used twice or known
# -------------------------------------------


@broken("reuse", [(1, 9)], [(1, 9), (2, 3)])
def one_seed_for_two(rows, rng):
    seed = int(rng.integers(2**31))

    def noisy(column):
        return sum(column) + np.random.default_rng(seed).laplace(scale=20.0)  # here

    return [noisy([row[j] for row in rows]) for j in range(2)]


@broken("seed", [5], [6])
def seed_from_the_rows(rows, rng):
    source = np.random.default_rng(sum(rows))  # here
    return len(rows) + source.laplace(scale=1.0)


# -- broken: data beside the noise
# -------------------------------------------------------


@broken("round", ["x", "y"], ["x"])
def domain_from_the_data(rows, rng):
    return {key: n + rng.laplace(scale=1.0) for key, n in Counter(rows).items()}


@broken("round", (4.0, 0.0), (4.0, 1.0))
def empty_cells_stay_empty(cells, rng):
    cells = np.array(cells)
    return np.where(cells > 0, cells + rng.laplace(scale=1.0, size=2), 0.0)


# The δ of the claim allows a threshold of 5.
@broken("round", ["q", "q"], ["q", "q", "r"], ApproxDP(1.0, 0.01))
def threshold_met_by_equality(rows, rng):
    out = []
    for key, n in sorted(Counter(rows).items()):
        noisy = n + two_sided(1.0, rng)  # here
        if noisy >= 4:
            out.append((key, noisy))
    return out


@broken("round", [0], [1])
def one_sided_response(bits, rng):
    return [1 if bit and rng.random() < 0.5 else 0 for bit in bits]


# -- correct
# -----------------------------------------------------------------------------


@correct([1, 0, 1, 1, 0, 0], [0, 1, 1, 1, 0, 0], PureDP(2 * math.log(3)))
def response_bit_by_bit(bits, rng):
    keep = rng.random(len(bits)) < 0.75
    return np.where(keep, bits, 1 - np.array(bits)).tolist()


@correct((3, 1, 2), (2, 1, 2))
def ticket(votes, rng):
    weights = [2**v for v in votes]
    drawn = int(rng.integers(sum(weights)))
    for name, weight in enumerate(weights):
        if drawn < weight:
            return name
        drawn -= weight
    return None


@pytest.mark.parametrize(("function", "pair", "claim", "kind"), CASES)
def test_a_broken_function_is_proposed_and_a_correct_one_is_not(
    function, pair, claim, kind
):
    pairs = [
        pair_of(function, *inputs, claim, seed)
        for seed in range(2)
        for inputs in (pair, pair[::-1])
    ]
    # A number that is compared with a draw, and then subtracted from it, ends it.
    assert pairs[0].extent == ("part" if function.__name__ == "ticket" else "full")
    proposed = [one for found in pairs for one in found.findings if one.is_read_off]
    if kind is None:
        assert not proposed
        return
    found = [finding for finding in proposed if finding.kind == kind]
    assert found, proposed
    lines, start = inspect.getsourcelines(function)
    for number, line in enumerate(lines, start):
        if "# here" in line:
            assert any(finding.site.line == number for finding in found)
            assert any(f"line {number}" in finding.sentence for finding in found)
