"""Parameters of DPAR: budget, PageRank, training, and the reading that is run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from auditdp.errors import ConfigurationError
from gnn.pipelines.parts import steps_of
from gnn.validation import check_choice, check_count, check_number, check_positive


@dataclass(frozen=True)
class DPARParameters:
    """The parameters of DPAR, by default those of its experiments.

    Source: Zhang et al. (2024), arXiv:2210.04442, Sections 3 and 4.

    Args:
        epsilon: ε of the whole in nats; infinite for DPAR without noise and clipping.
        delta: δ of the whole, in (0, 1).
        method: How rows are released: EM0 and EM1 are DP-APPR-EM with options I and II, GM is DP-APPR-GM.
        accounting: "published" for the noise of Theorems 1 to 3; "repaired" for noise with a proof of (epsilon,
            delta)-DP for a replaced node, as ``budget_of`` says.
        share: Share of ε that DP-APPR has, in (0, 1).
        rate: q, the share of the training nodes that is drawn first, in (0, 1].
        pagerank_rows: M, how many of them have a private row.
        k: K, entries of a row.
        entry_clip: C₂, what entries are clipped to (EM).
        row_clip: C₁, what the Euclidean norm of a row is clipped to (GM).
        tau: τ, what the ℓ₁ norm of a column is clipped to.
        columns: "clipped" to τ at most, as the paper says; "scaled" to exactly τ, as its published code does.
        others: What the drawn nodes without a private row are trained with: "identity", themselves alone, as in the
            published code, or "none", so that only M rows are trained on, which is how the paper's Algorithm 2 can be
            read.
        most_rows: R, in how many rows a node may be, its own among them, where the accounting is repaired.
        clipping_norm: C of gradients.
        batch: B, rows in a batch, drawn without replacement for each step.
        epochs: Epochs of ⌈rows/B⌉ steps.
        learning_rate: Of Adam.
        hidden: Units of the hidden layer.
        layers: Layers of the network.
        alpha: α of ISTA's lazy walk and of the inference.
        rho: ρ of ISTA.
        inference_steps: P of the power iteration.

    Raises:
        ConfigurationError: If a parameter is outside its range.
    """

    epsilon: float = 8.0
    delta: float = 2e-3
    method: Literal["EM0", "EM1", "GM"] = "EM0"
    accounting: Literal["published", "repaired"] = "published"
    share: float = 0.5
    rate: float = 0.09
    pagerank_rows: int = 70
    k: int = 2
    entry_clip: float = 0.001
    row_clip: float = 0.01
    tau: float = 1.0
    columns: Literal["clipped", "scaled"] = "clipped"
    others: Literal["identity", "none"] = "identity"
    most_rows: int = 2
    clipping_norm: float = 1.0
    batch: int = 60
    epochs: int = 200
    learning_rate: float = 0.005
    hidden: int = 32
    layers: int = 2
    alpha: float = 0.25
    rho: float = 1e-4
    inference_steps: int = 2

    def __post_init__(self) -> None:
        owner = "DPARParameters"
        if not self.epsilon > 0:
            raise ConfigurationError(
                f"{owner}: expected epsilon > 0, in nats, got {self.epsilon!r}"
            )
        for name in ("delta", "share"):
            value = getattr(self, name)
            check_positive(owner, name, value)
            check_number(owner, name, value, below=1.0)
        if not 0 < self.rate <= 1:
            raise ConfigurationError(
                f"{owner}: expected rate, a share in (0, 1], got {self.rate!r}"
            )
        for name in (
            "pagerank_rows",
            "k",
            "most_rows",
            "batch",
            "epochs",
            "hidden",
            "layers",
            "inference_steps",
        ):
            check_count(owner, name, getattr(self, name))
        for name in (
            "entry_clip",
            "row_clip",
            "tau",
            "clipping_norm",
            "learning_rate",
            "rho",
        ):
            check_positive(owner, name, getattr(self, name))
        check_choice(owner, "method", self.method, ("EM0", "EM1", "GM"))
        check_choice(owner, "accounting", self.accounting, ("published", "repaired"))
        check_choice(owner, "columns", self.columns, ("clipped", "scaled"))
        check_choice(owner, "others", self.others, ("identity", "none"))

    @property
    def private(self) -> bool:
        """True if there is noise."""
        return not math.isinf(self.epsilon)

    def sizes(self, nodes: int) -> Sizes:
        """Return the parameters that follow from the number of training nodes."""
        drawn = max(1, round(self.rate * nodes))
        private_rows = min(self.pagerank_rows, drawn)
        rows = drawn if self.others == "identity" else private_rows
        batch = min(self.batch, rows)
        return Sizes(
            drawn,
            private_rows,
            rows,
            batch,
            steps_of(rows, batch=batch, epochs=self.epochs),
        )


@dataclass(frozen=True)
class Sizes:
    """Numbers of a run.

    Attributes:
        drawn: Nodes of the subgraph.
        private_rows: M, or all nodes if they are fewer.
        rows: Rows that are trained on.
        batch: B, or all rows if they are fewer.
        steps: T.
    """

    drawn: int
    private_rows: int
    rows: int
    batch: int
    steps: int
