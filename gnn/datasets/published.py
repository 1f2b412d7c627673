"""torch-geometric's own data sets, which it downloads, for users with a network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch_geometric import datasets

from auditdp.errors import ConfigurationError, did_you_mean

PUBLISHED: dict[str, Callable[[str], Any]] = {
    "citeseer": lambda root: datasets.Planetoid(root, "CiteSeer"),
    "coauthor_cs": lambda root: datasets.Coauthor(root, "CS"),
    "coauthor_physics": lambda root: datasets.Coauthor(root, "Physics"),
    "cora": lambda root: datasets.Planetoid(root, "Cora"),
    "cora_ml": lambda root: datasets.CitationFull(root, "Cora_ML"),
    "facebook": lambda root: datasets.FacebookPagePage(root),
    "github_stargazers": lambda root: datasets.TUDataset(root, "github_stargazers"),
    "lastfm_asia": lambda root: datasets.LastFMAsia(root),
    "polblogs": lambda root: datasets.PolBlogs(root),
    "ppi": lambda root: datasets.PPI(root),
    "pubmed": lambda root: datasets.Planetoid(root, "PubMed"),
    "reddit": lambda root: datasets.Reddit(root),
    "reddit_binary": lambda root: datasets.TUDataset(root, "REDDIT-BINARY"),
    "reddit_multi_5k": lambda root: datasets.TUDataset(root, "REDDIT-MULTI-5K"),
}
"""Functions that load each data set of torch-geometric from a folder; ``ppi`` is its
training part."""


def published(name: str, folder: str | Path) -> Any:
    """Return a data set of torch-geometric, downloaded into ``folder`` unless it is there: a sequence of its graphs.

    Args:
        name: One of ``PUBLISHED``.
        folder: Where downloads are kept; each data set has a folder of its own.

    Raises:
        ConfigurationError: If there is no such data set.
    """
    if name not in PUBLISHED:
        raise ConfigurationError(
            f"torch-geometric has no data set {name!r} here; {did_you_mean(name, PUBLISHED)}"
        )
    return PUBLISHED[name](str(Path(folder) / name))
