"""Splits: sizes, disjointness, seeds and strata."""

import pytest
import torch
from torch_geometric.data import Data

from gnn.datasets import community_split, paper_split, random_split
from tests.unit.gnn.draws import generator

HALVES = (0.5, 0.25, 0.25)


def parts(split):
    return split.training, split.validation, split.test


def sizes(split):
    return [len(part) for part in parts(split)]


def drawn(labels, fractions=HALVES, *, seed=0, stratified=False):
    return random_split(
        labels, fractions, generator=generator(seed), stratified=stratified
    )


@pytest.mark.parametrize(
    ("paper", "expected"),
    [
        ("dprr-reddit", [750, 100, 150]),
        ("lpgnn", [500, 250, 250]),
        ("graphpub", [100, 200, 700]),
        ("dpar", [800, 0, 200]),
    ],
)
def test_the_fractions_of_the_papers(paper, expected):
    labels = torch.arange(1000) % 3
    split = paper_split(paper, labels, generator=generator())

    assert sizes(split) == expected
    assert torch.cat(parts(split)).sort().values.equal(torch.arange(1000))


def test_a_split_is_a_function_of_its_seed():
    labels = torch.arange(100) % 3
    first, same, other = (drawn(labels, seed=seed).training for seed in (0, 0, 1))

    assert first.equal(same)
    assert not first.equal(other)


@pytest.mark.parametrize(
    ("labels", "fractions", "expected"),
    [
        (torch.tensor([0, 1, -1, 1, 0, -1, 0, 1, 0, 1]), HALVES, [4, 2, 2]),
        (torch.zeros(10, 4), (0.5, 0.0, 0.5), [5, 0, 5]),
        (torch.zeros(100).long(), (0.1, 0.1, 0.1), [10, 10, 10]),
    ],
)
def test_items_without_a_label_are_in_no_part(labels, fractions, expected):
    split = drawn(labels, fractions)
    assert sizes(split) == expected
    assert (labels[torch.cat(parts(split))] >= 0).all()


def test_strata_are_split_alike():
    """Twenty items of class 0 and eighty of class 1."""
    labels = (torch.arange(100) >= 20).long()
    split = drawn(labels, (0.5, 0.2, 0.3), stratified=True)
    counts = [labels[part].bincount().tolist() for part in parts(split)]

    assert counts == [
        [10, 40],
        [4, 16],
        [6, 24],
    ]

    varied = set()
    for seed in range(9):
        training = drawn(labels, seed=seed).training
        varied.add(int(labels[training].sum()))

    assert len(varied) > 1


def test_test_nodes_are_whole_communities():
    """Two cliques of five with an edge between them; node 3 has no label."""
    clique = torch.ones(5, 5) - torch.eye(5)
    matrix = torch.block_diag(clique, clique)
    matrix[0, 5] = matrix[5, 0] = 1
    labels = torch.arange(10) % 2
    labels[3] = -1
    data = Data(edge_index=matrix.nonzero().t(), y=labels, num_nodes=10)
    split = community_split(data, 1 / 9, generator=generator())
    found = sorted([split.training.tolist(), split.test.tolist()])

    assert found == [
        [0, 1, 2, 4],
        [5, 6, 7, 8, 9],
    ]
