"""A trace states a bound, or confirms a loss, only if runs with other draws agree."""

import copy
import math
import random
from decimal import Decimal

import numpy as np
import pytest

from auditdp import GaussianDP, PureDP, ZeroConcentratedDP
from auditdp.mechanism.calls.allowance import allowing
from auditdp.tracing import Trace, checked, compare
from auditdp.tracing.composed_loss import ComposedLoss
from auditdp.tracing.noise_families import NoiseLaw, location_loss
from tests.unit.tracing.toys import pair_of

NUMBERS = (0.0, 1.0)
BITS = ([1, 1, 0, 1], [0, 1, 0, 1])
PURE = PureDP(1.0)
LOSES_MORE = []
CORRECT = []


def loses_more(pair=NUMBERS, claim=PURE, truth=math.inf):
    """Return a decorator of code of which no bound below the truth may be stated."""
    return lambda function: LOSES_MORE.append((function, pair, claim, truth))


def correct(pair=NUMBERS, claim=PURE):
    """Return a decorator of code that satisfies the claim."""
    return lambda function: CORRECT.append((function, pair, claim))


@loses_more()
def used_again_in_an_event(x, rng):
    z = rng.laplace()
    return x + z, bool(z > 0)


@loses_more()
def by_a_copied_generator(x, rng):
    twin = copy.deepcopy(rng)
    return x + rng.laplace(), twin.laplace()


@loses_more()
def by_bits(x, rng):
    return x + rng.laplace(), x * int(rng.bit_generator.random_raw() % 2)


@loses_more()
def scale_by_chance(x, rng):
    return x + rng.laplace(scale=0.25 if rng.random() < 0.5 else 4.0)


@loses_more()
def exact_once_in_fifty(x, rng):
    return x if rng.integers(50) == 3 else x + rng.laplace()


@loses_more(BITS)
def sampled(bits, rng):
    return sum(bit * (rng.random() < 0.1) for bit in bits) + rng.laplace()


@loses_more()
def with_its_seed(x, rng):
    seed = int(rng.integers(2**40))
    return x + np.random.default_rng(seed).laplace(), seed


@loses_more()
def seeded_by_a_result(x, rng):
    noisy = x + rng.normal()
    return noisy, x + np.random.default_rng(int(abs(noisy) * 1e6)).normal()


@loses_more()
def by_an_error(x, rng):
    noisy = x + rng.laplace()
    if noisy < 2:
        raise ValueError(f"{noisy} of {x}")
    return noisy


@loses_more()
def with_another_type(x, rng):
    return x + rng.laplace(), 1 if x else 1.0


@loses_more((0, 1), GaussianDP(1.0))
def discrete_gaussian(x, rng):
    table = np.exp(-np.square(np.arange(-30, 31)) / 2)
    return x + int(rng.choice(np.arange(-30, 31), p=table / table.sum()))


@loses_more(claim=PureDP(5.0))
def one_uniform_draw_twice(x, rng):
    u = rng.random()
    return x - math.log(u) + math.log(u)


@loses_more(([0.0] * 10, [1.0] * 5 + [-1.0] * 5), PureDP(5.0), truth=2.6)
def above_without_a_limit(queries, rng):
    threshold = rng.laplace(scale=4.0)
    return [bool(query + rng.laplace(scale=4.0) >= threshold) for query in queries]


@loses_more(claim=GaussianDP(5.0))
def by_short_seeds(x, rng):
    return x + random.Random(int(rng.integers(2**25))).gauss(0, 1)


@loses_more((0.0, 1 / 3), PureDP(5.0))
def by_short_digits(x, rng):
    return (np.array([x]) + rng.laplace(size=1).astype(np.float32)).tolist()


@loses_more((2**60, 2**60 + 1), PureDP(5.0))
def on_large_integers(x, rng):
    return x + int(rng.geometric(0.6)) - int(rng.geometric(0.6))


@pytest.mark.parametrize(("function", "pair", "claim", "truth"), LOSES_MORE)
def test_no_bound_is_stated_below_the_loss(function, pair, claim, truth):
    for seed in range(4):
        found = pair_of(function, *pair, claim, seed)
        assert not found.is_bound or found.level >= truth


@pytest.mark.parametrize(
    ("function", "pair", "level"),
    [
        (lambda x, rng: x + rng.laplace(size=8), NUMBERS, 8.0),
        (lambda x, rng: x if rng.random() < 0.75 else 1 - x, (0, 1), math.log(3)),
        (
            lambda v, rng: np.sort(v) + rng.laplace(size=3),
            ([3.0, 1.0, 2.0], [3.0, 1.5, 2.0]),
            0.5,
        ),
        # A symmetric law has no sign.
        (lambda x, rng: x - (1 if x > 0 else -1) * rng.laplace(), (-1.0, 1.0), 2.0),
    ],
)
def test_a_bound_is_stated_of_ordinary_code(function, pair, level):
    found = pair_of(function, *pair, PURE, seed=1)
    assert found.is_bound
    assert found.level == pytest.approx(level)


@correct(([0.0] * 4, [1.0, 0.0, 0.0, 0.0]), GaussianDP(1.0))
def shares(values, rng):
    return sum(value + rng.normal(scale=0.5) for value in values)


@correct()
def exponential_with_a_sign(x, rng):
    return x + rng.exponential() * (1 if rng.random() < 0.5 else -1)


@correct()
def control_variate(x, rng):
    z = rng.normal(scale=3.0)
    return (x + z) - z + rng.laplace()


# The law of the sorted values is the same on both inputs.
@correct(([3.0, 4.0], [4.0, 3.0]), PureDP(1.9))
def in_order(values, rng):
    return sorted(value + rng.laplace() for value in values)


@correct((np.ones(20), np.ones(20) - np.eye(20)[0]), PureDP(0.967))
def without_one(rows, rng):
    return np.delete(rows, int(rng.integers(len(rows)))).sum() + rng.laplace()


@correct((0, 1), PureDP(math.log(3)))
def by_a_raw_bit(x, rng):
    return x ^ int(rng.bit_generator.random_raw() >> 62 == 0)


@correct(claim=ZeroConcentratedDP(math.exp(-1)))
def laplace_by_its_rho(x, rng):
    return x + rng.laplace()


@correct(([1, 2], [1, 4]))
def noisy_decimals(prices, rng):
    mean = Decimal(sum(prices)) / len(prices)
    return mean + int(rng.integers(-9, 10)) + Decimal(rng.laplace())


@pytest.mark.parametrize(("function", "pair", "claim"), CORRECT)
def test_nothing_is_confirmed_against_correct_code(function, pair, claim):
    for seed in range(3):
        findings = pair_of(function, *pair, claim, seed).findings
        assert not any(finding.is_confirmed for finding in findings)


@pytest.mark.parametrize(
    ("function", "pair", "claim", "kind"),
    [
        (
            lambda x, rng: x + rng.laplace(scale=0.9),
            NUMBERS,
            ZeroConcentratedDP(math.exp(-1)),
            "loss",
        ),
        (lambda x, rng: [x, x + rng.laplace()], NUMBERS, PURE, "round"),
        (lambda x, rng: x + np.random.default_rng(7).laplace(), NUMBERS, PURE, "seed"),
    ],
    ids=["Laplace by ρ", "exact", "seed"],
)
def test_planted_leaks_are_confirmed(function, pair, claim, kind):
    found = pair_of(function, *pair, claim, seed=1)
    assert kind in [each.kind for each in found.findings if each.is_confirmed]
    assert not found.is_bound or found.level > claim.level


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
def test_the_rho_of_laplace_noise_bounds_every_divergence(epsilon):
    """Proposition 6 of Mironov (2017); ρ is the divergence of order 1."""
    law = NoiseLaw("Laplace")
    rho = ComposedLoss.of([location_loss(law, law, epsilon)]).rho
    orders = 1 + np.geomspace(1e-4, 1e4, 400)
    up = np.log(orders / (2 * orders - 1)) + (orders - 1) * epsilon
    down = np.log((orders - 1) / (2 * orders - 1)) - orders * epsilon
    divergences = np.logaddexp(up, down) / (orders - 1) / orders
    assert divergences.max() <= rho * (1 + 1e-7)
    assert divergences[0] == pytest.approx(rho, rel=1e-3)


@pytest.mark.parametrize(
    ("runs", "confirmed", "is_bound"),
    [(2, False, False), (40, True, False), (200, True, True)],
)
def test_nothing_is_confirmed_or_bounded_without_runs(runs, confirmed, is_bound):
    trace, rng = (
        Trace(lambda x, rng: x + rng.laplace(scale=0.5)),
        np.random.default_rng(1),
    )
    with allowing(runs):
        pair = checked(trace, compare(trace, 0.0, 1.0, rng, claim=PURE, outcomes=0))
    assert [finding.is_confirmed for finding in pair.findings] == [confirmed]
    assert pair.is_bound == is_bound
