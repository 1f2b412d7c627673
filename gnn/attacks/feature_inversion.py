"""Feature inversion: search for inputs with a given representation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from auditdp.errors import MechanismError
from mechanisms.validation import check_integer, check_positive


@dataclass(frozen=True)
class Inversion:
    """The features that were reconstructed, and how close they come.

    Attributes:
        features: X̂, shape (nodes, k).
        mismatch: ‖represent(X̂) − Z‖² / ‖Z‖²: how well the search ended.
        error: ‖X̂ − X‖² / ‖X − mean of X's columns‖²: 0 is a perfect reconstruction, 1 what the columns' means achieve.
        cosine: Mean cosine between the rows of X̂ and X, rows of zeros counted 0.
    """

    features: Tensor
    mismatch: float
    error: float
    cosine: float

    def metrics(self) -> dict[str, float]:
        """Return the three figures by name, as an experiment records them."""
        return {
            "mismatch": self.mismatch,
            "reconstruction error": self.error,
            "cosine": self.cosine,
        }


def feature_inversion(
    represent: Callable[[Tensor], Tensor],
    features: Tensor,
    *,
    generator: torch.Generator,
    observed: Tensor | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    steps: int = 500,
    learning_rate: float = 0.05,
    penalty: float = 0.0,
) -> Inversion:
    """Return features X̂ in the public bounds that minimise ‖represent(X̂) − Z‖²/‖Z‖² + penalty·‖X̂‖²/(nodes·k).

    By Adam from uniform random features; each step is projected to the bounds. To read off edges or bits of a graph's
    features, compare ``features`` of the result with the truth by ``gnn.attacks.outcome``.

    Source: the gradient-based inversion of Mahendran & Vedaldi (2015), arXiv:1412.0035v1, Equation 1, on the features of
    nodes; Tran et al. (2022), arXiv:2211.05766, Figure 8, ask the same question with a trained decoder on images.

    Args:
        represent: The model up to the representation that is seen, a differentiable function of the features.
        features: X, the truth to compare with, shape (nodes, k); the search reads nothing of it but shape and type.
        generator: The randomness of the start, on the CPU.
        observed: Z, what is seen; represent(X) by default. Give the noisy release of a mechanism here.
        bounds: The public range of a feature.
        steps: Steps of Adam.
        learning_rate: Adam's, in shares of the range.
        penalty: Weight of the norm.

    Raises:
        MechanismError: If an argument is out of range or the loss is not finite.
    """
    low, high = bounds
    check_integer("feature_inversion", "steps", steps, 1)
    check_positive("feature_inversion", "learning_rate", learning_rate)
    if not low < high:
        raise MechanismError(
            f"feature_inversion: expected bounds (low, high) with low < high, got {bounds}"
        )
    with torch.no_grad():
        target = (represent(features) if observed is None else observed).detach()
    size = float(target.square().sum()) or 1.0
    start = torch.rand(features.shape, generator=generator, dtype=features.dtype).to(
        features.device
    )
    guess = (low + (high - low) * start).requires_grad_()
    optimiser = torch.optim.Adam([guess], lr=learning_rate * (high - low))

    def mismatch() -> Tensor:
        return (represent(guess) - target).square().sum() / size

    for step in range(steps):
        optimiser.zero_grad()
        loss = mismatch() + penalty * guess.square().mean()
        if not bool(loss.isfinite()):
            raise MechanismError(
                f"feature_inversion: the loss is {loss.item()} at step {step}; use a smaller learning_rate, or look at Z"
            )
        (guess.grad,) = torch.autograd.grad(
            loss, guess
        )  # the weights of the model collect no gradient
        optimiser.step()
        with torch.no_grad():
            guess.clamp_(low, high)
    with torch.no_grad():
        found, truth = guess.detach(), features.detach()
        spread = float((truth - truth.mean(dim=0)).square().sum())
        if not spread:
            raise MechanismError(
                "feature_inversion: all nodes have the same features; there is nothing to tell apart"
            )
        return Inversion(
            features=found,
            mismatch=mismatch().item(),
            error=float((found - truth).square().sum()) / spread,
            cosine=float(
                torch.nn.functional.cosine_similarity(found, truth, dim=1).mean()
            ),
        )
