"""Parameters of an LPGNN, and the settings that its authors publish."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from auditdp.errors import ConfigurationError
from gnn.validation import check_choice, check_count, check_number, check_positive

FEATURES = ("MBM", "Ones", "OHD", "RND")
LEARNING = ("cross-entropy", "forward correction", "Drop")
MODELS = ("GraphSAGE", "GCN", "GAT")
SCALING = ("none", "clip", "population")


@dataclass(frozen=True)
class Parameters:
    """The parameters of LPGNN.

    Args:
        epsilon_features: ε_x of the multi-bit mechanism on a node's features, in nats; infinite: features as they are.
        epsilon_labels: ε_y of randomised response on a node's label, in nats; infinite: labels as they are.
        features: "MBM", the multi-bit mechanism; or features that need nothing of a user: "Ones", "OHD" (one-hot degree),
            "RND" (uniform in [0, 1)), for which ``epsilon_features`` is not read.
        learning: "cross-entropy" on noisy labels; "forward correction", which multiplies predictions with the law of the
            noisy label; or "Drop", which also propagates labels and predictions.
        model: "GraphSAGE", "GCN" or "GAT", of two layers.
        steps_features: K_x of KProp.
        steps_labels: K_y of KProp, for "Drop" alone.
        low: The bound α of every feature, public.
        high: The bound β of every feature, public, > low.
        scaling: "none": features outside the bounds are refused; "clip": they are clipped; "population": every feature is
            stretched to [0, 1] by its least and greatest value and dropped where these are equal, as the published code
            does; that is not private (see ``mechanisms.features.MinMaxScaled``).
        width: Number of ad-hoc features, by default as many as the data has.
        hidden: Units of the hidden layer, of each head for GAT.
        heads: Heads of GAT's hidden layer.
        dropout: Of the hidden layer, and of GAT's attention.
        learning_rate: Of Adam.
        weight_decay: λ of the L2 penalty on all weights.
        epochs: Number of epochs.

    Raises:
        ConfigurationError: If a parameter is outside its range.
    """

    epsilon_features: float = 1.0
    epsilon_labels: float = 1.0
    features: Literal["MBM", "Ones", "OHD", "RND"] = "MBM"
    learning: Literal["cross-entropy", "forward correction", "Drop"] = "Drop"
    model: Literal["GraphSAGE", "GCN", "GAT"] = "GraphSAGE"
    steps_features: int = 2
    steps_labels: int = 4
    low: float = 0.0
    high: float = 1.0
    scaling: Literal["none", "clip", "population"] = "none"
    width: int | None = None
    hidden: int = 16
    heads: int = 4
    dropout: float = 0.5
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    epochs: int = 500

    def __post_init__(self) -> None:
        for name in ("epsilon_features", "epsilon_labels"):
            if not getattr(self, name) > 0:
                raise ConfigurationError(
                    f"LPGNN: expected {name} > 0, perhaps infinite, got {getattr(self, name)!r}"
                )
        for name, known in (
            ("features", FEATURES),
            ("learning", LEARNING),
            ("model", MODELS),
            ("scaling", SCALING),
        ):
            check_choice("LPGNN", name, getattr(self, name), known)
        for name in ("steps_features", "steps_labels"):
            check_count("LPGNN", name, getattr(self, name), least=0)
        for name in ("hidden", "heads", "epochs"):
            check_count("LPGNN", name, getattr(self, name))
        if self.width is not None:
            check_count("LPGNN", "width", self.width)
        check_number("LPGNN", "dropout", self.dropout, below=1)
        check_number("LPGNN", "weight_decay", self.weight_decay)
        check_positive("LPGNN", "learning_rate", self.learning_rate)
        if not (math.isfinite(self.high - self.low) and self.low < self.high):
            raise ConfigurationError(
                f"LPGNN: expected finite bounds low < high, got {self.low!r} and {self.high!r}"
            )
