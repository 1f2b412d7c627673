"""What holds for every record, label and graph: ranges, laws that sum to one, symmetries, group privacy, budgets."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from auditdp.errors import MechanismError
from auditdp.evidence.exact_losses import envelope_losses
from auditdp.evidence.loss_of_laws import pair_loss
from auditdp.mechanism.laws import precision
from mechanisms.backend import backend_of
from mechanisms.edges.graph_pub import GraphPub, counts
from mechanisms.edges.graph_pub_response import GraphPubResponse, publishing_rates
from mechanisms.features import (
    ExtractedFeatureRR,
    FeatureRR,
    LinearExtractor,
    MinMaxScaled,
    MultiBit,
    OneBit,
    PublicBounds,
    RecordFeatureRR,
    safe_budget,
    worst_loss,
)
from mechanisms.labels import FeaturesAndLabel, LabelRR

budgets = st.floats(1e-3, 8.0)
seeds = st.integers(0, 2**32 - 1)
units = st.floats(0.0, 1.0)


def rng_of(seed):
    return np.random.default_rng(seed)


def records(least=1, most=4):
    return st.lists(units, min_size=least, max_size=most).map(
        lambda values: np.array(values, np.float64)
    )


@st.composite
def encoders(draw):
    dimension = draw(st.integers(1, 4))
    low = draw(st.floats(-10, 10))
    return MultiBit(
        draw(budgets),
        dimension,
        low,
        low + draw(st.floats(0.1, 10)),
        draw(st.integers(1, dimension)),
    )


@st.composite
def encoders_and_records(draw, count=1):
    encoder = draw(encoders())
    places = [
        draw(st.lists(units, min_size=encoder.dimension, max_size=encoder.dimension))
        for _ in range(count)
    ]
    inside = [
        np.clip(
            encoder.low + np.array(p) * (encoder.high - encoder.low),
            encoder.low,
            encoder.high,
        )
        for p in places
    ]
    return encoder, *inside


@st.composite
def graphs(draw, nodes):
    upper = np.triu(
        np.array(
            draw(st.lists(st.booleans(), min_size=nodes**2, max_size=nodes**2))
        ).reshape(nodes, nodes),
        1,
    )
    return (upper | upper.T).astype(np.int8)


# Ranges.


@given(encoders_and_records(), st.integers(1, 5), seeds)
def test_encoded_records_have_m_bits(drawn, size, seed):
    encoder, record = drawn
    sent = encoder(record, size, rng=rng_of(seed))
    assert sent.dtype == np.int8
    assert sent.shape == (size, encoder.dimension)
    assert (np.abs(sent).sum(axis=1) == encoder.m).all()
    np.testing.assert_allclose(
        encoder.rectify(sent), encoder.step * sent + (encoder.low + encoder.high) / 2
    )


@given(budgets, st.integers(2, 50), seeds, st.data())
def test_noisy_labels_are_labels(epsilon, classes, seed, data):
    labels = data.draw(st.lists(st.integers(0, classes - 1), min_size=1, max_size=20))
    released = LabelRR(epsilon, classes).perturb(labels, rng=rng_of(seed))
    assert released.dtype == np.int16
    assert released.shape == (len(labels),)
    assert ((released >= 0) & (released < classes)).all()


@given(budgets, records(), st.integers(2, 9), st.booleans(), seeds)
def test_released_bins_are_bins(epsilon, record, bins, public, seed):
    extractor = LinearExtractor(tuple(map(tuple, np.eye(len(record)))))
    mechanism = RecordFeatureRR(epsilon, extractor, bins)
    if public:
        mechanism = ExtractedFeatureRR(
            extractor, FeatureRR(epsilon, (1.0,) * len(record), bins)
        )
    released = mechanism(record, 4, rng=rng_of(seed))
    assert released.shape == (4, len(record))
    assert ((released >= 1) & (released <= bins)).all()


@given(records(), st.floats(0, 1), seeds)
def test_shares_are_shares(record, gamma, seed):
    rng = rng_of(seed)
    extractor = LinearExtractor(tuple(map(tuple, rng.normal(size=(5, len(record))))))
    shares = extractor.shares(record[None], gamma, backend_of(rng))
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1)


@given(graphs(5), budgets, st.sampled_from(["round", "floor", "random"]), seeds)
def test_published_neighbours_are_as_many_as_counted(matrix, epsilon, rounding, seed):
    """Never more real ones than there are, nor more of both than the degree and one by rounding."""
    lists = GraphPub(epsilon, 5, np.ones((5, 5)), rounding)(
        matrix, 3, rng=rng_of(seed)
    ).reshape(3, 5, 4)
    true = matrix[~np.eye(5, dtype=bool)].reshape(5, 4)
    real = (lists & true).sum(axis=2)
    expected, _ = counts(epsilon, true.sum(axis=1), 5)
    assert (np.abs(real - expected) < 1).all()
    assert (lists.sum(axis=2) <= true.sum(axis=1) + 1).all()


# Laws.


@given(encoders_and_records())
def test_encoded_laws_sum_to_one_exactly(drawn):
    encoder, record = drawn
    law = encoder.distribution(record)
    assert sum(law.probabilities) == 1
    np.testing.assert_allclose(
        encoder.log_prob(law.outcomes, record), law.log_prob(law.outcomes), atol=1e-9
    )


@given(encoders_and_records())
def test_estimates_are_unbiased(drawn):
    """Exactly, from the law: the expectation is the record."""
    encoder, record = drawn
    law = encoder.distribution(record)
    estimates = encoder.rectify(law.outcomes)
    scale = encoder.step + abs(encoder.low) + abs(encoder.high)
    np.testing.assert_allclose(law.floats @ estimates, record, atol=1e-12 * scale)
    second = law.floats @ (estimates - record) ** 2
    np.testing.assert_allclose(
        second, encoder.variance(record), rtol=1e-9, atol=1e-12 * scale**2
    )


@given(encoders_and_records(2))
def test_any_two_records_are_within_the_budget(drawn):
    encoder, first, second = drawn
    loss = pair_loss(encoder.distribution(first), encoder.distribution(second))
    assert loss.upper <= encoder.epsilon
    assert max(each.upper for each in envelope_losses(encoder.envelope())) >= loss.lower


@given(budgets, budgets, st.integers(2, 5))
def test_budgets_of_features_and_label_add_up(features, label, classes):
    mechanism = FeaturesAndLabel(OneBit(features, 2), LabelRR(label, classes))
    ends = (np.array([0.0, 0.0, 0.0]), np.array([1.0, 1.0, classes - 1.0]))
    loss = pair_loss(*map(mechanism.distribution, ends))
    assert Fraction(loss.upper) <= (Fraction(features) + Fraction(label)) * (
        1 + Fraction(1, 2**50)
    )
    assert loss.lower == pytest.approx(features + label, rel=1e-8)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=4).filter(any), budgets)
def test_shared_budgets_sum_to_at_most_epsilon(shares, epsilon):
    assert sum(map(Fraction, FeatureRR(epsilon, tuple(shares), 2).budgets)) <= Fraction(
        epsilon
    )


# Monotone in ε.


@given(budgets, st.floats(1.01, 3))
def test_more_budget_means_likelier_truth_and_less_variance(epsilon, factor):
    more = factor * epsilon
    assert LabelRR(more, 3).true > LabelRR(epsilon, 3).true
    assert OneBit(more, 2).keep > OneBit(epsilon, 2).keep
    assert OneBit(more, 2).variance(0.5) < OneBit(epsilon, 2).variance(0.5)
    assert (
        FeatureRR(more, (1.0,), 3).steps[0, 0, 0]
        > FeatureRR(epsilon, (1.0,), 3).steps[0, 0, 0]
    )


@given(budgets, st.integers(2, 20), st.integers(2, 12))
def test_shares_of_the_record_cost_more_than_epsilon_and_the_safe_budget_does_not(
    epsilon, features, bins
):
    with precision():
        assert worst_loss(epsilon, features, bins) > arb(epsilon)
        assert worst_loss(safe_budget(epsilon, features, bins), features, bins) <= arb(
            epsilon
        )
    assert safe_budget(epsilon, features, bins) < epsilon


# Symmetries.


@given(budgets, st.permutations(range(4)), st.integers(0, 3))
def test_label_response_treats_all_classes_alike(epsilon, order, label):
    response = LabelRR(epsilon, 4)
    law, moved = response.distribution(label), response.distribution(order[label])
    assert [moved.probabilities[order[y]] for y in range(4)] == law.probabilities


@given(encoders_and_records(), st.randoms(use_true_random=False))
def test_encoder_treats_all_features_alike(drawn, random):
    encoder, record = drawn
    order = list(range(encoder.dimension))
    random.shuffle(order)
    law, moved = encoder.distribution(record), encoder.distribution(record[order])
    np.testing.assert_allclose(
        moved.log_prob(law.outcomes[:, order]), law.log_prob(law.outcomes), rtol=1e-12
    )


@given(budgets, st.integers(2, 8), st.integers(1, 8))
def test_bins_are_treated_alike_from_both_ends(epsilon, bins, place):
    steps = FeatureRR(epsilon, (1.0,), bins).steps[0]
    place = min(place, bins) - 1
    np.testing.assert_allclose(
        steps[place], steps[bins - 1 - place][::-1], rtol=1e-9, atol=2 * bins
    )


@given(
    st.lists(st.floats(-100, 100), min_size=2, max_size=3),
    st.floats(0.5, 4),
    st.floats(-50, 50),
)
def test_min_max_scaling_forgets_units(values, factor, shift):
    """Affine changes of a feature change nothing: up to rounding, it is scaled to the same numbers."""
    scaled = MinMaxScaled(OneBit(1.0, 1), len(values))
    column = np.array(values)[:, None]
    if np.ptp(column) > 1e-3:
        np.testing.assert_allclose(
            scaled.prepared(factor * column + shift, np),
            scaled.prepared(column, np),
            atol=1e-8,
        )


# Groups, post-processing, and what is out of the domain.


@given(st.integers(1, 3), budgets)
def test_groups_of_records_add_up(group, epsilon):
    """Replacing k records in public bounds costs kε; in one record of min–max scaling, the whole population's nε."""
    first, second = np.zeros((3, 1)), np.zeros((3, 1))
    second[:group] = 1
    public = PublicBounds(OneBit(epsilon, 1), 3)
    loss = pair_loss(public.distribution(first), public.distribution(second))
    assert loss.upper <= group * epsilon * (1 + 1e-12)
    assert loss.lower == pytest.approx(group * epsilon, rel=1e-8)


@given(records(2, 3), records(2, 3), budgets)
def test_a_part_of_the_release_loses_no_more_than_all_of_it(first, second, epsilon):
    size = min(len(first), len(second))
    mechanism = FeatureRR(epsilon, (1.0,) * size, 3)
    laws = [mechanism.distribution(z[:size]) for z in (first, second)]
    whole = pair_loss(*laws)
    parts = [
        [
            sum(
                p
                for y, p in zip(law.outcomes, law.probabilities, strict=True)
                if y[0] == u
            )
            for u in (1, 2, 3)
        ]
        for law in laws
    ]
    assert max(max(p / q, q / p) for p, q in zip(*parts, strict=True)) <= np.exp(
        whole.upper
    ) * (1 + 1e-12)


@given(encoders(), st.floats(1e-6, 1e6), st.booleans(), seeds)
def test_what_is_out_of_bounds_is_an_error(encoder, beyond, above, seed):
    record = np.full(encoder.dimension, encoder.low)
    record[-1] = encoder.high + beyond if above else encoder.low - beyond
    with pytest.raises(MechanismError, match="expected features in"):
        encoder(record, 1, rng=rng_of(seed))


@given(graphs(4), budgets, st.floats(0.1, 2.0))
def test_published_pairs_have_a_law_that_sums_to_one(matrix, epsilon, degree):
    assert (
        sum(
            GraphPubResponse(epsilon, 4, np.ones((4, 4)), degree)
            .distribution(matrix)
            .probabilities
        )
        == 1
    )


@given(st.floats(1e-4, 20), st.floats(1e-3, 10), st.integers(20, 10_000))
def test_rates_are_probabilities_in_order(epsilon, degree, nodes):
    others, real = publishing_rates(epsilon, degree, nodes, np.array([1.0, 3.0, 0.01]))
    assert ((others > 0) & (others <= real) & (real < 1)).all()
