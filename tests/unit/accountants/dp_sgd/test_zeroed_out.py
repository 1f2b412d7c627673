"""Batches of a fixed size while one record is zeroed out: beside all batches of a few records, and at the ends."""

import math
from itertools import combinations

import numpy as np
import pytest

from auditdp.accountants.description import within
from auditdp.accountants.dp_sgd.fixed_size import FixedSize, FixedSizeLower, FixedSizeUpper
from auditdp.accountants.dp_sgd.poisson import PLDUpper
from auditdp.accountants.dp_sgd.zeroed_out import ZeroedOut, ZeroedOutLower, ZeroedOutUpper
from auditdp.accountants.gaussian import GaussianNoise
from auditdp.claims.statements import GaussianDP

NOISE, RECORDS, BATCH = 0.8, 4, 2
GRID = np.linspace(-9, 9, 3_601)
EPSILONS = (0.0, 0.2, 1.0, 2.5)


def law(gradients):
    """Probabilities of the cells of a noisy sum, by the batches there are."""
    sums = [sum(gradients[k] for k in batch) for batch in combinations(range(RECORDS), BATCH)]
    masses = np.mean([np.exp(-(((GRID - each) / NOISE) ** 2) / 2) for each in sums], axis=0)
    return masses * (GRID[1] - GRID[0]) / (NOISE * math.sqrt(2 * math.pi))


def deltas(p, q):
    """δ in both orders."""
    return [max(np.maximum(a - math.exp(e) * b, 0).sum() for a, b in ((p, q), (q, p))) for e in EPSILONS]


def both(gradients):
    return law(gradients), law([0.0, *gradients[1:]])


def test_no_data_lose_more_in_one_step_or_two_and_the_worst_lose_as_much():
    rng = np.random.default_rng(0)
    most, least = (kind(NOISE, RECORDS, BATCH, 1) for kind in (ZeroedOutUpper, ZeroedOutLower))
    far, near = both([1.0, -1.0, -1.0, -1.0]), both([1.0, 1.0, 1.0, 1.0])
    for gradients in [*rng.uniform(-1, 1, (20, 4)), *rng.choice([-1.0, 0.0, 1.0], (20, 4))]:
        found = deltas(*both(gradients))
        assert all(delta <= most.delta_at(e) + 1e-5 for e, delta in zip(EPSILONS, found, strict=True))
    for epsilon, delta in zip(EPSILONS, deltas(*far), strict=True):
        assert least.delta_at(epsilon) <= delta + 1e-5
        assert most.delta_at(epsilon) == pytest.approx(delta, rel=1e-4)
        assert least.delta_at(epsilon) == pytest.approx(delta, rel=1e-4)
    assert deltas(*near)[2] < 0.7 * deltas(*far)[2]
    twice = ZeroedOutUpper(NOISE, RECORDS, BATCH, 2)
    (p, q), (r, s) = ([each[::12] * 12 for each in pair] for pair in (far, near))
    for one, other in (((p, q), (p, q)), ((p, q), (r, s)), ((r, s), (r, s))):
        found = deltas(np.outer(one[0], other[0]), np.outer(one[1], other[1]))
        assert all(delta <= twice.delta_at(e) + 1e-5 for e, delta in zip(EPSILONS, found, strict=True))


def test_the_record_comes_back_as_the_near_pair_has_it():
    """The curve in the other order is Poisson's removal: that of Q against P, on the grid of the upper bound."""
    mechanism = ZeroedOutUpper(NOISE, RECORDS, BATCH, 1)
    removed, back = mechanism.losses(1e-9, 1e-3)
    (p, q), (r, s) = both([1.0, -1.0, -1.0, -1.0]), both([1.0, 1.0, 1.0, 1.0])
    for epsilon in EPSILONS:
        for loss, exact in ((removed, (p, q)), (back, (s, r))):
            points = (loss.lowest + np.arange(len(loss.masses))) * loss.interval
            delta = (loss.masses * -np.expm1(np.minimum(epsilon - points, 0.0))).sum() + loss.unbounded
            assert delta == pytest.approx(np.maximum(exact[0] - math.exp(epsilon) * exact[1], 0).sum(), rel=1e-3)


@pytest.mark.parametrize("steps", [1, 100])
def test_a_batch_of_all_records_is_the_gaussian(steps):
    noise = 2 * math.sqrt(steps)
    lower, upper = (kind(noise, 50, 50, steps) for kind in (ZeroedOutLower, ZeroedOutUpper))
    for epsilon in (0.0, 0.5, 2.0):
        exact = GaussianDP(0.5).delta_at(epsilon)
        assert lower.delta_at(epsilon) <= exact <= upper.delta_at(epsilon)
        assert upper.delta_at(epsilon) == pytest.approx(lower.delta_at(epsilon), rel=1e-3)


def test_it_lies_between_poisson_batches_and_records_that_are_replaced():
    lower, upper = (kind(1.0, 10_000, 100, 1000).epsilon_at(1e-5) for kind in (ZeroedOutLower, ZeroedOutUpper))
    assert PLDUpper(1.0, 0.01, 1000).epsilon_at(1e-5) < 1.83
    assert (lower, upper) == (pytest.approx(10.368, abs=1e-3), pytest.approx(10.499, abs=1e-3))
    assert upper < FixedSizeLower(1.0, 10_000, 100, 1000).epsilon_at(1e-5)


def test_the_class_is_its_own():
    """Who replaces a record may zero it out, and no more than that is said the other way round."""
    about = ZeroedOutUpper(1.0, 10, 2, 3).describes
    assert about == ZeroedOut(1.0, 10, 2, 3)
    assert about.adjacency == "zero one record out"
    assert within(about, FixedSizeUpper(1.0, 10, 2, 3).describes)
    assert within(about, GaussianNoise(1.0, 1.0, 3))
    assert not within(FixedSize(1.0, 10, 2, 3), about)
