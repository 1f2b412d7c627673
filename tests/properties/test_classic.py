"""What holds for every input of the classic mechanisms: shapes and codes, invariances, and the bounds of their proofs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp import QueryAnswers
from auditdp.evidence.loss_of_laws import laplace_loss, pair_loss
from auditdp.mechanism.capabilities import capabilities
from mechanisms.classic import (
    SVT1,
    SVT2,
    SVT3,
    SVT4,
    SVT5,
    SVT6,
    ExponentialMechanism,
    Gaussian,
    LaplaceSum,
    NaiveLaplace,
    NoisyHistogram1,
    NoisyHistogram2,
    NoisyMax1,
    NoisyMax2,
    NoisyMax3,
    NoisyMax4,
    NumericSVT,
    PrefixSum,
)

vectors = st.lists(st.integers(-4, 4), min_size=1, max_size=5).map(
    lambda x: np.array(x, float)
)
seeds = st.integers(0, 2**32 - 1)
SPARSE = [SVT1(1.0, 2), SVT2(1.0, 2), SVT4(1.0), SVT5(1.0), SVT6(1.0)]
BOUNDED = [
    (SVT1(0.7, 1, 0.5), 0.7),
    (SVT1(0.7, 2, 1.0), 0.7),
    (SVT2(0.7, 2, 1.0), 0.7),
    (SVT4(0.7, 1), 7 / 4 * 0.7),
    (SVT4(0.7, 2), 13 / 4 * 0.7),
    (SVT6(0.7), 4 * 0.7 / 2),
    (NoisyMax1(0.7), 0.7),
    (NoisyMax2(0.7), 0.7),
    (ExponentialMechanism(0.7), 0.7),
    (ExponentialMechanism(0.7, 0.5), 1.4),
]
MONOTONE = [(SVT4(0.7, 1), 0.7), (NoisyMax1(1.4), 0.7), (NoisyMax2(1.4), 0.7)]


@given(vectors, st.integers(0, 20), seeds)
def test_what_sparse_vectors_say(data, size, seed):
    """One code a query; after the last allowed positive nothing but -1, and before it no -1."""
    rng = np.random.default_rng(seed)
    for mechanism in SPARSE:
        message = mechanism(data, size, rng=rng)
        assert message.dtype == np.int8
        assert message.shape == (size, len(data))
        stop = mechanism.stop if mechanism.stops else len(data) + 1
        before = np.cumsum(message == 1, axis=1) - (message == 1)
        assert ((message == -1) == (before >= stop)).all()


@given(vectors, seeds)
def test_numbers_are_released_exactly_where_an_answer_was_above(data, seed):
    rng = np.random.default_rng(seed)
    for mechanism in (SVT3(1.0, 2), NumericSVT(1.0, 2)):
        message, numbers = np.split(mechanism(data, 20, rng=rng), 2, axis=1)
        assert (np.isnan(numbers) == (message != 1)).all()
        assert np.isin(message, (-1, 0, 1)).all()
        assert np.isfinite(
            mechanism.log_prob(np.hstack([message, numbers]), data)
        ).all()


@given(vectors, st.integers(-3, 3), seeds)
def test_noise_that_is_added_moves_with_the_answers(data, shift, seed):
    for mechanism in (
        NoisyHistogram1(0.5),
        NoisyHistogram2(0.5),
        Gaussian(1.0, 1e-3),
        NoisyMax3(0.5),
        NoisyMax4(0.5),
    ):
        here = mechanism(data, 5, rng=np.random.default_rng(seed))
        there = mechanism(data + shift, 5, rng=np.random.default_rng(seed))
        assert there == pytest.approx(here + shift, abs=1e-9)
        assert mechanism.log_prob(there, data + shift) == pytest.approx(
            mechanism.log_prob(here, data), abs=1e-8
        )


@given(vectors, st.integers(-3, 3))
def test_selections_do_not_see_a_common_shift(data, shift):
    for mechanism in (NoisyMax1(0.5), NoisyMax2(0.5), ExponentialMechanism(0.5)):
        here, there = (
            mechanism.distribution(data).floats,
            mechanism.distribution(data + shift).floats,
        )
        assert there == pytest.approx(here, rel=1e-12)


@given(vectors.filter(lambda x: len(x) <= 4), st.integers(-3, 3))
def test_sparse_vectors_see_answers_relative_to_the_threshold(data, shift):
    for variant in (SVT1, SVT4, SVT6):
        here = variant(0.5, threshold=1.0).distribution(data)
        there = variant(0.5, threshold=1.0 + shift).distribution(data + shift)
        assert there.floats == pytest.approx(here.floats, rel=1e-12)


@given(vectors, seeds)
def test_prefix_sums_are_sums(data, seed):
    sums = PrefixSum(0.5)(data, 4, rng=np.random.default_rng(seed))
    counts = NoisyHistogram1(0.5)(data, 4, rng=np.random.default_rng(seed))
    assert sums == pytest.approx(np.cumsum(counts, axis=1), abs=1e-9)
    assert PrefixSum(0.5).log_prob(sums, data) == pytest.approx(
        NoisyHistogram1(0.5).log_prob(counts, data), abs=1e-9
    )


@pytest.mark.parametrize(
    ("mechanism", "bound", "change"),
    [*((*each, "all") for each in BOUNDED), *((*each, "one") for each in MONOTONE)],
    ids=lambda value: getattr(value, "name", ""),
)
def test_proved_bounds_hold(mechanism, bound, change):
    @given(QueryAnswers(4, change, shortest=1).strategy())
    def holds(pair):
        loss = pair_loss(
            mechanism.distribution(pair.data), mechanism.distribution(pair.neighbour)
        )
        assert loss.upper <= bound * (1 + 1e-12)

    holds()


@given(QueryAnswers(5, "all", shortest=1).strategy())
def test_additive_noise_costs_the_change_of_the_query(pair):
    for mechanism in (NoisyHistogram1(0.5), PrefixSum(0.5), LaplaceSum(0.5)):
        change = np.abs(
            mechanism.query(pair.data) - mechanism.query(pair.neighbour)
        ).sum()
        loss = laplace_loss(
            *map(capabilities(mechanism).law, (pair.data, pair.neighbour))
        )
        assert loss.upper == pytest.approx(change / 2.0, rel=1e-12)


@given(
    st.floats(-1e4, 1e4),
    st.floats(0.01, 100),
    st.sampled_from(["float32", "float64"]),
    seeds,
    st.integers(-40, 40),
)
def test_own_outputs_are_always_possible(answer, epsilon, precision, seed, magnitude):
    mechanism, data = (
        NaiveLaplace(epsilon, precision),
        np.array([answer * 2.0**magnitude]),
    )
    outputs = mechanism(data, 300, rng=np.random.default_rng(seed))
    assert outputs.dtype == precision
    assert mechanism.possible(outputs, data).all()


@given(st.floats(0.05, 20), st.sampled_from(["float32", "float64"]))
def test_the_ends_of_the_lattice_are_possible(epsilon, precision):
    """The smallest and the largest uniform numbers, where the windows of ``possible`` are cut off."""
    mechanism = NaiveLaplace(epsilon, precision)
    kind = np.dtype(precision).type
    v = (
        np.concatenate([np.arange(1, 40), 2.0**mechanism.bits - np.arange(40)])
        / 2.0**mechanism.bits
    )
    noise = (kind(1) / kind(epsilon)) * -np.log(v.astype(kind))
    for answer in (0.0, 1.0, -0.3):
        outputs = np.concatenate([kind(answer) + noise, kind(answer) - noise])
        assert mechanism.possible(outputs, np.array([answer])).all()
