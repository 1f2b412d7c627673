"""The parameters of DP-SGD with Poisson batches, which its accountants share, and the names of adjacencies of records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from auditdp.accountants.base import AccountantError, check_count, check_positive
from auditdp.accountants.description import Description
from auditdp.accountants.gaussian import GaussianNoise

ADD_OR_REMOVE = "add or remove one record"
REPLACE = "replace one record"


def check_rate(kind: str, rate: float) -> None:
    """Raise unless ``rate`` is in (0, 1]."""
    if not 0 < rate <= 1:
        raise AccountantError(f"{kind}: expected rate in (0, 1], got rate={rate!r}")


@dataclass(frozen=True)
class Poisson(Description):
    """Batches into which each record comes by a coin of its own.

    Args:
        noise_multiplier: σ: standard deviation of the noise on the sum of clipped gradients, over the clipping norm.
        rate: q: probability of each record to be in a batch.
        steps: How many batches.

    Raises:
        AccountantError: If a parameter is outside its range.
    """

    noise_multiplier: float
    rate: float
    steps: int
    adjacency: ClassVar[str] = ADD_OR_REMOVE
    sampling: ClassVar[str] = "Poisson"

    def __post_init__(self) -> None:
        kind = type(self).__name__
        check_positive(kind, noise_multiplier=self.noise_multiplier)
        check_rate(kind, self.rate)
        check_count(kind, steps=self.steps)

    @property
    def describes(self) -> Poisson:
        """DP-SGD with these batches."""
        return self.parameters_as(Poisson)

    @property
    def text(self) -> str:
        """The class in a few words."""
        return (
            f"DP-SGD in {self.steps:,} Poisson batches at rate {self.rate:.6g} with noise multiplier "
            f"{self.noise_multiplier:.6g}"
        )

    def wider(self) -> tuple[GaussianNoise]:
        """Return the steps without sampling: a mixture over samples is no worse than the worst of them."""
        return (GaussianNoise(self.noise_multiplier, 1.0, self.steps),)

    @property
    def uses(self) -> int:
        """One for each step."""
        return self.steps
