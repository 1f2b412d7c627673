"""The log-odds of shuffled or sampled records, against the known ones."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from auditdp import GaussianDP, Pair
from auditdp.betting.forecasters.traced import (
    SUBSAMPLED_RUN_SCHEDULE,
    ReplayedRatio,
    RunBudget,
)
from auditdp.tracing import Trace
from tests.unit.betting.toys import looked

BATCHES = 4
COUNTED = 12


def sampled(data, rng, *, rate=0.5, scale=0.5, steps=3):
    released = []
    for _ in range(steps):
        batch = data[rng.random(len(data)) < rate]
        released.append(batch.sum() + rng.normal(scale=scale))
    return released


def shuffled(data, rng):
    released = []
    for _ in range(2):
        order = rng.permutation(len(data))
        for part in np.array_split(order, BATCHES):
            released.append(data[part].sum() + rng.normal(scale=0.5))
    return released


def counted(data, rng):
    released = []
    for _ in range(3):
        batch = data[rng.random(len(data)) < 0.5]
        released += [batch.sum() + rng.normal(scale=0.5), len(batch)]
    return released


def of_one(sums):
    """Return the log-odds of a record of 1 in a sum, against none."""
    return norm.logpdf(sums, 1, 0.5) - norm.logpdf(sums, 0, 0.5)


def of_samples(outputs):
    return np.log(0.5 + 0.5 * np.exp(of_one(outputs))).sum(axis=1)


def of_counts(outputs):
    sums = outputs[:, ::2]
    sizes = outputs[:, 1::2]
    # The binomial laws of the size without the record and with it.
    taken = sizes / (COUNTED - sizes + 1e-300)
    return np.log(0.5 + 0.5 * np.exp(of_one(sums)) * taken).sum(axis=1)


def of_orders(outputs):
    odds = 0.0
    for epoch in np.split(of_one(outputs), 2, axis=1):
        odds = odds + logsumexp(epoch, axis=1) - np.log(BATCHES)
    return odds


def first_of(size):
    return np.eye(size)[0]


def forecaster_of(mechanism, mu=0.5, seed=1):
    budget = RunBudget(20_000, 20_000)
    return ReplayedRatio(Trace(mechanism), GaussianDP(mu), seed=seed, budget=budget)


@pytest.mark.parametrize(
    ("train", "known", "pair", "near"),
    [
        (sampled, of_samples, Pair(first_of(3), np.zeros(2)), 1e-9),
        (
            sampled,
            lambda outputs: -of_samples(outputs),
            Pair(np.zeros(2), np.array([0.0, 1.0, 0.0])),
            1e-9,
        ),
        (counted, of_counts, Pair(first_of(COUNTED), np.zeros(COUNTED - 1)), 0.3),
        (shuffled, of_orders, Pair(first_of(8), np.zeros(8)), 0.35),
        (shuffled, of_orders, Pair(first_of(8), np.zeros(7)), 0.35),
    ],
)
def test_log_odds_are_averaged_over_the_drawn_records_part_by_part(
    train, known, pair, near
):
    mechanism, calls = looked(train, pair)
    forecaster = forecaster_of(mechanism)
    with forecaster.trace:
        ratio, law = forecaster.by_parts(pair, calls.form, 48).read
    rows = calls(pair.data, 200, np.random.default_rng(2)).reshape(200, -1)
    odds = ratio(rows)
    truth = known(rows)
    assert np.corrcoef(odds, truth)[0, 1] > 0.95
    assert np.abs(odds - truth).mean() < near
    zeros, ones = np.split(law.log_odds, 2)
    assert zeros.mean() > 1 > -0.5 > ones.mean()


def test_code_that_draws_no_records_has_no_parts():
    pair = Pair(1.0, 0.0)
    mechanism, calls = looked(lambda x, rng: x + rng.normal(), pair)
    forecaster = forecaster_of(mechanism)
    with forecaster.trace:
        assert forecaster.by_parts(pair, calls.form, 16) is None


def looked_at_samples(**options):
    pair = Pair(np.array([1.0, 0.0]), np.zeros(1))
    mechanism, calls = looked(lambda data, rng: sampled(data, rng, **options), pair)
    return mechanism, calls, pair


@pytest.mark.parametrize(
    ("scale", "made"),
    [
        (0.3, SUBSAMPLED_RUN_SCHEDULE[:1]),
        (2.0, SUBSAMPLED_RUN_SCHEDULE),
    ],
)
def test_more_runs_are_made_for_a_small_loss(scale, made):
    mechanism, calls, pair = looked_at_samples(scale=scale)
    forecaster = forecaster_of(mechanism)
    with forecaster.trace:
        forecaster._by_parts(pair, calls.form)
        # Two runs show whether all is read from the output.
        assert forecaster.trace.runs == 2 * sum(made) + 2
        assert forecaster.best_subsampled_pair([pair], calls.form) is pair


@pytest.mark.parametrize("truth", [0.5, 1.0])
def test_few_runs_estimate_the_distance_of_many_parts(truth):
    """The log-odds of all parts together are too small to fit a law."""
    scale = 2.0
    steps = 100
    rate = truth / math.sqrt(steps * math.expm1(1 / scale**2))
    mechanism, calls, pair = looked_at_samples(rate=rate, scale=scale, steps=steps)
    for seed in range(2):
        forecaster = forecaster_of(mechanism, 2.0, seed)
        with forecaster.trace:
            distance = forecaster.by_parts(pair, calls.form, 16).distance
        assert 0.5 * truth < distance < 1.1 * truth
