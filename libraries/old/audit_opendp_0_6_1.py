"""OpenDP 0.6.1: the conversion of zCDP, which gave a negative ε where δ is large."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from auditdp import ApproxDP, Audit, audit
from auditdp.accountants import GaussianCurve, GaussianNoise, Soundness
from libraries.old.versions import old

old("opendp", "0.6.1")
np.bool8 = np.bool_  # which numpy 2 no longer has

from opendp.combinators import make_zCDP_to_approxDP  # noqa: E402  # once it is known where from
from opendp.measurements import make_base_gaussian  # noqa: E402
from opendp.mod import enable_features  # noqa: E402

enable_features("contrib", "floating-point")


@dataclass(frozen=True)
class Converted(GaussianNoise):
    """The ε that OpenDP 0.6.1 states for Gaussian noise at some δ."""

    soundness: ClassVar[Soundness] = Soundness.UNPROVED
    source: ClassVar[str] = "OpenDP 0.6.1, make_zCDP_to_approxDP"

    def epsilon_at(self, delta):
        """Return OpenDP's ε."""
        return (
            make_zCDP_to_approxDP(make_base_gaussian(scale=self.sigma))
            .map(self.sensitivity)
            .epsilon(delta)
        )

    def delta_at(self, epsilon):
        """Return 1: only ε is queried."""
        return 1.0


@audit(
    row="opendp 0.6.1",
    reading="make_zCDP_to_approxDP at δ = .9",
    source="OpenDP issue 621, mended by pull request 622",
)
def negative_epsilon(sigma=5.0, delta=0.9):
    """Gaussian noise with σ = 5 at δ = .9: the claim is the tool's own, and OpenDP's ε, which is negative, a finding."""
    accountants = [GaussianCurve(sigma), Converted(sigma)]
    return Audit(None, ApproxDP(0.1, delta), accountants=accountants)
