"""Splits: sizes, disjointness, seeds and strata."""

import pytest
import torch
from torch_geometric.data import Data

from auditdp.errors import ConfigurationError
from gnn.datasets import Split, community_split, paper_split, public_split, random_split
from gnn.validation import DataError
from tests.unit.gnn.draws import generator


def sizes(split):
    return [len(split.training), len(split.validation), len(split.test)]


@pytest.mark.parametrize(
    ("paper", "expected"),
    [
        ("dprr-reddit", [750, 100, 150]),
        ("dprr-stargazers", [650, 150, 200]),
        ("lpgnn", [500, 250, 250]),
        ("graphpub", [100, 200, 700]),
        ("dpar", [800, 0, 200]),
    ],
)
def test_the_fractions_of_the_papers(paper, expected):
    split = paper_split(paper, torch.arange(1000) % 3, generator=generator())
    assert sizes(split) == expected
    together = torch.cat([split.training, split.validation, split.test])
    assert together.sort().values.tolist() == list(range(1000))


def test_a_seed_is_a_split():
    labels = torch.arange(100) % 2
    first, same, other = (
        paper_split("lpgnn", labels, generator=generator(seed)) for seed in (0, 0, 1)
    )
    assert first.training.tolist() == same.training.tolist()
    assert first.training.tolist() != other.training.tolist()


def test_what_has_no_label_is_in_no_part():
    labels = torch.arange(10) % 2
    labels[[2, 5]] = -1
    split = random_split(labels, (0.5, 0.25, 0.25), generator=generator())
    assert sizes(split) == [4, 2, 2]
    assert {2, 5}.isdisjoint(
        torch.cat([split.training, split.validation, split.test]).tolist()
    )


def test_every_class_is_split_alike():
    labels = torch.tensor([0] * 20 + [1] * 80)
    split = random_split(
        labels, (0.5, 0.2, 0.3), generator=generator(), stratified=True
    )
    for part, fraction in (
        (split.training, 0.5),
        (split.validation, 0.2),
        (split.test, 0.3),
    ):
        assert torch.bincount(labels[part]).tolist() == [20 * fraction, 80 * fraction]


def test_a_split_without_strata_varies_in_its_classes():
    labels = torch.tensor([0] * 20 + [1] * 80)
    counts = {
        int(
            (
                labels[
                    random_split(
                        labels, (0.5, 0.2, 0.3), generator=generator(s)
                    ).training
                ]
                == 0
            ).sum()
        )
        for s in range(9)
    }
    assert len(counts) > 1


def test_several_classes_each():
    assert sizes(
        random_split(torch.zeros(10, 4), (0.5, 0.0, 0.5), generator=generator())
    ) == [5, 0, 5]


def test_the_rest_is_in_no_part():
    assert sizes(
        random_split(
            torch.zeros(100, dtype=torch.long), (0.1, 0.1, 0.1), generator=generator()
        )
    ) == [
        10,
        10,
        10,
    ]


def test_test_nodes_are_whole_communities():
    """Two cliques of five with an edge between them, and node 3 without a label: one clique is tested."""
    arcs = [
        (i, j)
        for k in (0, 5)
        for i in range(k, k + 5)
        for j in range(k, k + 5)
        if i != j
    ] + [(0, 5), (5, 0)]
    labels = torch.arange(10) % 2
    labels[3] = -1
    data = Data(edge_index=torch.tensor(arcs).T, y=labels, num_nodes=10)
    split = community_split(data, 1 / 9, generator=generator())
    assert sorted([split.training.tolist(), split.test.tolist()]) == [
        [0, 1, 2, 4],
        [5, 6, 7, 8, 9],
    ]


def test_public_split():
    masks = torch.eye(4, dtype=torch.bool)
    data = Data(train_mask=masks[0] | masks[3], val_mask=masks[1], test_mask=masks[2])
    split = public_split(data)
    assert (
        split.training.tolist(),
        split.validation.tolist(),
        split.test.tolist(),
    ) == ([0, 3], [1], [2])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: paper_split("lpgn", torch.zeros(9), generator=generator()),
            ConfigurationError,
            "did you mean 'lpgnn'",
        ),
        (
            lambda: random_split(
                torch.zeros(9), (0.5, 0.6, 0.1), generator=generator()
            ),
            ConfigurationError,
            "sum at most 1",
        ),
        (
            lambda: random_split(torch.zeros(9), (0.5, 0.5), generator=generator()),
            ConfigurationError,
            "three fractions",
        ),
        (
            lambda: random_split(
                torch.zeros(9), (-0.5, 0.5, 0.5), generator=generator()
            ),
            ConfigurationError,
            r"in \[0, 1\]",
        ),
        (
            lambda: random_split(
                -torch.ones(9), (0.5, 0.2, 0.3), generator=generator()
            ),
            DataError,
            "nothing has a label",
        ),
        (
            lambda: random_split(
                torch.zeros(9), (0.0, 0.5, 0.5), generator=generator()
            ),
            DataError,
            "at least one training",
        ),
        (
            lambda: random_split(
                torch.zeros(9, 2),
                (0.5, 0.2, 0.3),
                generator=generator(),
                stratified=True,
            ),
            ConfigurationError,
            "one class for each",
        ),
        (
            lambda: Split(torch.tensor([1]), torch.tensor([1]), torch.tensor([2])),
            DataError,
            "listed twice",
        ),
        (lambda: public_split(Data(num_nodes=3)), DataError, "ships no split"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()
