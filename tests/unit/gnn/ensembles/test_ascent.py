"""Gradient ascent finds the worst neighbours of sums whose worst case is known, where other pairs are far from it."""

import numpy as np
import pytest
import torch

from auditdp.errors import ConfigurationError
from audits.audit_trainers_graphs import pagerank_trainer
from gnn.ensembles import example
from gnn.ensembles.ascent import ascend, change_of, noiseless_sum
from gnn.ensembles.released import NoisedSums

ROWS = 3


def starts(count, size):
    generator = torch.Generator().manual_seed(0)
    return [
        0.1 * torch.randn(size, dtype=torch.float64, generator=generator)
        for _ in range(count)
    ]


def of_dpar(most_rows):
    """The change of DPAR's sum of numbers: a node's two features, those of three others, and the model's four weights."""
    trainer, worlds = pagerank_trainer(ROWS, most_rows, 1.0)

    def pair(numbers):
        others = numbers[2 : 2 + ROWS]
        return tuple(
            worlds(torch.cat([numbers[k : k + 1], others])[:, None]) for k in (0, 1)
        )

    return change_of(trainer, pair, lambda numbers: numbers[2 + ROWS :])


def test_two_records_of_a_clipped_mean_are_opposite():
    """A mean of four records that are clipped to norm 1 changes by 2/4 where one is replaced, and these by a tenth of it."""

    def clipped(row):
        return row / torch.linalg.vector_norm(row).clamp(min=1.0)

    def change(numbers):
        return torch.linalg.vector_norm(clipped(numbers[:3]) - clipped(numbers[3:])) / 4

    found = ascend(change, starts(2, 6))
    assert max(float(change(start)) for start in starts(2, 6)) < 0.1
    assert found.change == pytest.approx(0.5, rel=1e-3)
    assert found.change == float(change(found.at))


@pytest.mark.parametrize(("most_rows", "worst"), [(None, 6.0), (1, 2.0)])
def test_a_node_of_all_rows_turns_them_all(most_rows, worst):
    """By 2C in each row that the node is in, which is what nobody's features do that are drawn at random."""
    change = of_dpar(most_rows)
    listed = max(float(change(start)) for start in starts(5, 9))
    found = ascend(change, starts(1, 9))
    assert listed < 0.2 * worst
    assert 0.98 * worst < found.change <= worst * (1 + 1e-9)


def test_a_sum_is_that_of_the_mechanism():
    trainer = example.full_batch(1.0, 2)
    world = example.canary_pair(2).neighbour
    expected = NoisedSums(trainer).query(world, np.random.default_rng(0))
    np.testing.assert_array_equal(noiseless_sum(trainer, world).numpy(), expected)


def test_what_cannot_be_searched_is_refused():
    with pytest.raises(ConfigurationError, match="functorch"):
        change_of(example.full_batch(1.0, 2), lambda numbers: numbers)
    with pytest.raises(ConfigurationError, match="at least one start"):
        ascend(torch.sum, [])
