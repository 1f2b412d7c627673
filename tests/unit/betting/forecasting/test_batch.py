"""A batch in an order that says nothing of its coins."""

from collections import Counter

import numpy as np

from auditdp.betting.forecasters.batches import Batch


def test_outputs_are_mixed_with_their_coins_and_sorted_back():
    ones, zeros = np.arange(5.0) + 100, np.arange(3.0)
    batch = Batch(ones, zeros, np.random.default_rng(0))
    assert len(batch) == 8
    assert sorted(batch.mixed.tolist()) == [0, 1, 2, 100, 101, 102, 103, 104]
    assert (batch.mixed >= 100).tolist() == (batch.labels == 1).tolist()
    back = batch.by_coin(batch.mixed)
    assert [sorted(side.tolist()) for side in back] == [ones.tolist(), zeros.tolist()]


def test_every_order_of_the_coins_is_as_likely():
    """24 orders of two and two coins are 6 patterns; chi-square 99.9999 % quantile of 5 degrees of freedom is 35.9."""
    seen = Counter(
        tuple(
            Batch(np.ones(2), np.zeros(2), np.random.default_rng(seed)).labels.tolist()
        )
        for seed in range(3_000)
    )
    assert len(seen) == 6
    assert sum((count - 500) ** 2 / 500 for count in seen.values()) < 35.9


def test_who_changes_what_it_is_shown_changes_nobody_elses():
    ones = np.ones(3)
    batch = Batch(ones, np.zeros(3), np.random.default_rng(0))
    batch.mixed[:] = 7
    assert ones.tolist() == [1, 1, 1]
    assert set(batch.mixed.tolist()) == {0, 1}
