"""The five papers, each with all that it prints as a table or a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gnn.experiments.published import (
    Printed,
    dpar,
    dprr,
    graph_pub,
    hetero_rr,
    lpgnn,
)


@dataclass(frozen=True)
class Paper:
    """A paper.

    Attributes:
        name: The name of its system.
        source: Authors, year and number.
        printed: Its tables and figures.
    """

    name: str
    source: str
    printed: Sequence[Printed]


PAPERS = tuple(
    Paper(name, module.SOURCE, module.PRINTED)
    for name, module in (
        ("DPRR", dprr),
        ("LPGNN", lpgnn),
        ("GraphPub", graph_pub),
        ("HeteroRR", hetero_rr),
        ("DPAR", dpar),
    )
)
