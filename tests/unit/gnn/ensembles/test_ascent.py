"""Gradient ascent finds the worst neighbours of sums with a known worst case."""

import pytest
import torch
from numpy.testing import assert_array_equal

from audits.audit_trainers_graphs import pagerank_trainer
from gnn.ensembles import example
from gnn.ensembles.ascent import ascend, change_of, noiseless_sum
from gnn.ensembles.released import NoisedSums
from tests.unit.gnn.draws import generator, rng

ROWS = 3


def starts(count, size):
    given = {"dtype": torch.float64, "generator": generator()}
    return list(0.1 * torch.randn(count, size, **given))


def test_two_records_of_a_clipped_mean_are_opposite():
    """A mean of four records that are clipped to norm 1 changes by 2/4."""

    def clipped(row):
        return row / torch.linalg.vector_norm(row).clamp(min=1.0)

    def change(numbers):
        return torch.linalg.vector_norm(clipped(numbers[:3]) - clipped(numbers[3:])) / 4

    given = starts(2, 6)
    found = ascend(change, given)

    assert max(float(change(start)) for start in given) < 0.1
    assert found.change == pytest.approx(0.5, rel=1e-3)
    assert found.change == float(change(found.at))


@pytest.mark.parametrize(
    ("most_rows", "worst"),
    [
        (None, 6.0),
        (1, 2.0),
    ],
)
def test_a_node_changes_each_of_its_rows_by_2_c(most_rows, worst):
    """The numbers are two features of a node, those of three others, and weights."""
    trainer, worlds = pagerank_trainer(ROWS, most_rows, 1.0)

    def pair(numbers):
        others = numbers[2 : 2 + ROWS]
        nodes = [torch.cat([own, others])[:, None] for own in numbers[:2, None]]
        return tuple(worlds(each) for each in nodes)

    change = change_of(trainer, pair, lambda numbers: numbers[2 + ROWS :])
    listed = max(float(change(start)) for start in starts(5, 9))

    assert listed < 0.2 * worst

    found = ascend(change, starts(1, 9))
    assert 0.98 * worst < found.change <= worst * (1 + 1e-9)


def test_a_sum_is_that_of_the_mechanism():
    trainer = example.full_batch(1.0, 2)
    world = example.canary_pair(2).neighbour
    expected = NoisedSums(trainer).query(world, rng())

    assert_array_equal(noiseless_sum(trainer, world).numpy(), expected)
