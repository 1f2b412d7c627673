"""The log-odds where records are shuffled or sampled, against the known ones."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.traced import (
    SUBSAMPLED_RUN_SCHEDULE,
    ReplayedRatio,
    RunBudget,
)
from auditdp.claims.statements import GaussianDP
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.protocol import as_mechanism
from auditdp.tracing import Trace

RATE, STEPS, BATCHES, COUNTED = 0.5, 3, 4, 12


def sampled(data, rng):
    return [
        data[rng.random(len(data)) < RATE].sum() + rng.normal(scale=0.5)
        for _ in range(STEPS)
    ]


def shuffled(data, rng):
    released = []
    for _ in range(2):
        order = rng.permutation(len(data))
        released += [
            data[part].sum() + rng.normal(scale=0.5)
            for part in np.array_split(order, BATCHES)
        ]
    return released


def counted(data, rng):
    released = []
    for _ in range(STEPS):
        batch = data[rng.random(len(data)) < RATE]
        released += [batch.sum() + rng.normal(scale=0.5), len(batch)]
    return released


def of_counts(outputs):
    sums, sizes = outputs[:, ::2], outputs[:, 1::2]
    ratio = np.exp(norm.logpdf(sums, 1, 0.5) - norm.logpdf(sums, 0, 0.5))
    taken = (
        sizes / (COUNTED - sizes + 1e-300) * (1 - RATE) / RATE
    )  # of binomial laws, without it and with it
    return np.log(1 - RATE + RATE * ratio * taken).sum(axis=1)


def of_samples(outputs):
    with_one = np.logaddexp(
        np.log(RATE) + norm.logpdf(outputs, 1, 0.5),
        np.log(1 - RATE) + norm.logpdf(outputs, 0, 0.5),
    )
    return (with_one - norm.logpdf(outputs, 0, 0.5)).sum(axis=1)


def of_orders(outputs):
    ratios = norm.logpdf(outputs, 1, 0.5) - norm.logpdf(outputs, 0, 0.5)
    return sum(
        logsumexp(epoch, axis=1) - np.log(BATCHES)
        for epoch in np.split(ratios, 2, axis=1)
    )


@pytest.mark.parametrize(
    ("train", "known", "pair", "near"),
    [
        (sampled, of_samples, Pair(np.array([1.0, 0.0, 0.0]), np.zeros(2)), 1e-9),
        (
            sampled,
            lambda outputs: -of_samples(outputs),
            Pair(np.zeros(2), np.array([0.0, 1.0, 0.0])),
            1e-9,
        ),
        (sampled, of_samples, Pair(np.array([0.0, 1.0]), np.zeros(2)), 1e-9),
        (
            counted,
            of_counts,
            Pair(np.array([1.0] + [0.0] * (COUNTED - 1)), np.zeros(COUNTED - 1)),
            0.3,
        ),
        (shuffled, of_orders, Pair(np.array([1.0] + [0.0] * 7), np.zeros(8)), 0.35),
        (shuffled, of_orders, Pair(np.array([1.0] + [0.0] * 7), np.zeros(7)), 0.35),
    ],
)
def test_log_odds_are_averaged_over_the_drawn_records_part_by_part(
    train, known, pair, near
):
    mechanism = as_mechanism(train)
    calls = Calls(mechanism)
    calls.look((pair.data, pair.neighbour), np.random.default_rng(0))
    forecaster = ReplayedRatio(Trace(mechanism), GaussianDP(0.5), seed=1)
    with forecaster.trace:
        ratio, law = forecaster.by_parts(pair, calls.form, 48).read
    rows = calls(pair.data, 200, np.random.default_rng(2)).reshape(200, -1)
    assert np.corrcoef(ratio(rows), known(rows))[0, 1] > 0.95
    assert np.abs(ratio(rows) - known(rows)).mean() < near
    half = len(law.log_odds) // 2
    assert law.log_odds[:half].mean() > 1 > -0.5 > law.log_odds[half:].mean()


def test_code_that_draws_no_records_has_no_parts():
    mechanism = as_mechanism(lambda x, rng: x + rng.normal())
    calls = Calls(mechanism)
    calls.look((1.0, 0.0), np.random.default_rng(0))
    with (forecaster := ReplayedRatio(Trace(mechanism), GaussianDP(0.5), seed=1)).trace:
        assert forecaster.by_parts(Pair(1.0, 0.0), calls.form, 16) is None


@pytest.mark.parametrize(
    ("scale", "made"),
    [(0.3, SUBSAMPLED_RUN_SCHEDULE[:1]), (2.0, SUBSAMPLED_RUN_SCHEDULE)],
)
def test_more_runs_are_made_for_a_small_loss(scale, made):
    def train(data, rng):
        return [
            data[rng.random(len(data)) < RATE].sum() + rng.normal(scale=scale)
            for _ in range(STEPS)
        ]

    mechanism, pair = as_mechanism(train), Pair(np.array([1.0, 0.0]), np.zeros(1))
    calls = Calls(mechanism)
    calls.look((pair.data, pair.neighbour), np.random.default_rng(0))
    with (
        forecaster := ReplayedRatio(
            Trace(mechanism), GaussianDP(0.5), seed=1, budget=RunBudget(20_000, 20_000)
        )
    ).trace:
        forecaster._by_parts(pair, calls.form)
        assert (
            forecaster.trace.runs == 2 * sum(made) + 2
        )  # and two that show whether all is read from the output
        assert forecaster.best_subsampled_pair([pair], calls.form) is pair


@pytest.mark.parametrize("truth", [0.5, 1.0])
def test_few_runs_estimate_the_distance_of_many_parts(truth):
    """The log-odds of each part are small, and all together too small to fit a law."""
    scale, steps = 2.0, 100
    rate = truth / math.sqrt(steps * math.expm1(1 / scale**2))

    def train(data, rng):
        return [
            data[rng.random(len(data)) < rate].sum() + rng.normal(scale=scale)
            for _ in range(steps)
        ]

    mechanism, pair = as_mechanism(train), Pair(np.array([1.0, 0.0]), np.zeros(1))
    calls = Calls(mechanism)
    calls.look((pair.data, pair.neighbour), np.random.default_rng(0))
    for seed in range(3):
        with (
            forecaster := ReplayedRatio(
                Trace(mechanism),
                GaussianDP(2.0),
                seed=seed,
                budget=RunBudget(20_000, 20_000),
            )
        ).trace:
            assert (
                0.5 * truth
                < forecaster.by_parts(pair, calls.form, 16).distance
                < 1.1 * truth
            )
