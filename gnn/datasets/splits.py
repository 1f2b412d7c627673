"""Splits of nodes or graphs into training, validation and test sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from auditdp.errors import ConfigurationError, did_you_mean
from gnn.validation import DataError

FRACTIONS = {
    "dpar": (0.8, 0.0, 0.2),
    "dprr-reddit": (0.75, 0.10, 0.15),
    "dprr-stargazers": (0.65, 0.15, 0.20),
    "graphpub": (0.1, 0.2, 0.7),
    "lpgnn": (0.5, 0.25, 0.25),
}
"""Fractions for training, validation and test; no paper stratifies.

Hidano & Murakami (2022), arXiv:2202.10209, Section V-A; Sajadmanesh & Gatica-Perez (2021), arXiv:2006.05535, Section 5.1;
Xu et al. (2024), arXiv:2403.00030, Section 4.1; Zhang et al. (2024), arXiv:2210.04442, Section 4: DPAR trains without
validation, and without the edges between training and test nodes.
"""


@dataclass(frozen=True, eq=False)
class Split:
    """Three disjoint sets of nodes or graphs.

    Args:
        training: Ids, int64, ascending, at least one.
        validation: Ids, int64, ascending; may be empty.
        test: Ids, int64, ascending; may be empty.

    Raises:
        DataError: If there is no training id, or an id is listed twice.
    """

    training: Tensor
    validation: Tensor
    test: Tensor

    def __post_init__(self) -> None:
        if not len(self.training):
            raise DataError(
                "Split: expected at least one training id, got none; use a larger training fraction"
            )
        ids = torch.cat([self.training, self.validation, self.test])
        if len(torch.unique(ids)) < len(ids):
            raise DataError(
                "Split: an id is listed twice; training, validation and test must be disjoint"
            )

    def __str__(self) -> str:
        return f"{len(self.training)}/{len(self.validation)}/{len(self.test)} for training/validation/test"


def random_split(
    labels: Tensor,
    fractions: Sequence[float],
    *,
    generator: torch.Generator,
    stratified: bool = False,
) -> Split:
    """Return a random split of everything that has a label.

    Sizes are those of the running sums of the fractions, rounded, so that each differs from its share by at most one.

    Args:
        labels: int64, shape (items,); items with -1 are in no part. Or zeros and ones, shape (items, classes).
        fractions: For training, validation and test, each in [0, 1], with sum at most 1; the rest is in no part.
        generator: On the CPU.
        stratified: Whether every class is split by these fractions on its own.

    Raises:
        ConfigurationError: If the fractions are no such numbers.
        DataError: If nothing has a label, or the training part is empty.
    """
    total = sum(fractions)
    if len(fractions) != 3 or min(fractions) < 0 or total > 1 + 1e-9:
        raise ConfigurationError(
            f"random_split: expected three fractions in [0, 1] with sum at most 1, got {tuple(fractions)!r}"
        )
    if labels.ndim > 1 and stratified:
        raise ConfigurationError(
            "random_split: stratified needs one class for each item, got labels of several classes"
        )
    labels = labels.cpu()
    labelled = (
        (labels >= 0).nonzero().squeeze(1)
        if labels.ndim == 1
        else torch.arange(len(labels))
    )
    if not len(labelled):
        raise DataError("random_split: nothing has a label (all are -1)")
    shuffled = labelled[torch.randperm(len(labelled), generator=generator)]
    groups = (
        [shuffled[labels[shuffled] == c] for c in torch.unique(labels[labelled])]
        if stratified
        else [shuffled]
    )
    parts: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
    for group in groups:
        start, share = 0, 0.0
        for part, fraction in zip(parts, fractions, strict=True):
            share += fraction
            end = min(round(share * len(group)), len(group))
            part.append(group[start:end])
            start = end
    return Split(*(torch.cat(part).sort().values for part in parts))


def paper_split(paper: str, labels: Tensor, *, generator: torch.Generator) -> Split:
    """Return a random split with the fractions of a paper, one of ``FRACTIONS``.

    Raises:
        ConfigurationError: If there is no such paper.
        DataError: If nothing has a label.
    """
    if paper not in FRACTIONS:
        raise ConfigurationError(
            f"no split {paper!r}; {did_you_mean(paper, FRACTIONS)}"
        )
    return random_split(labels, FRACTIONS[paper], generator=generator)


def community_split(
    data: Data, fraction: float, *, generator: torch.Generator
) -> Split:
    """Return a split without validation whose test nodes are whole communities.

    Communities are those of Louvain's method, drawn at random; the last one that is drawn is taken whole. Test nodes keep
    nearly all their edges, and their classes are not those of the graph.

    Args:
        data: One graph; nodes without a label are in no part.
        fraction: In (0, 1), the least share of the nodes in the test part.
        generator: On the CPU.

    Raises:
        DataError: If the communities that are drawn leave no node with a label for training.
    """
    import networkx  # torch depends on it, and nothing else here

    graph = networkx.Graph(data.edge_index.T.tolist())
    graph.add_nodes_from(range(int(data.num_nodes or 0)))
    seed = int(torch.randint(2**31, (), generator=generator))
    found = networkx.community.louvain_communities(graph, seed=seed)
    tested: set[int] = set()
    for number in torch.randperm(len(found), generator=generator).tolist():
        if len(tested) < fraction * len(graph):
            tested |= found[number]
    test = torch.zeros(len(graph), dtype=torch.bool)
    test[list(tested)] = True
    labelled = data.y.cpu() >= 0
    empty = torch.empty(0, dtype=torch.long)
    return Split(
        (labelled & ~test).nonzero().squeeze(1),
        empty,
        (labelled & test).nonzero().squeeze(1),
    )


def public_split(data: Data) -> Split:
    """Return the split that the source of the data ships as masks.

    Raises:
        DataError: If it ships none.
    """
    if "train_mask" not in data:
        raise DataError(
            "public_split: the data set ships no split; use random_split or paper_split"
        )
    return Split(
        *(
            data[f"{part}_mask"].cpu().nonzero().squeeze(1)
            for part in ("train", "val", "test")
        )
    )
