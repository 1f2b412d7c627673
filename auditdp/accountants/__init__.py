"""Accountants: privacy curves from a mechanism's parameters, with their proofs.

Each accountant states whether its numbers are proofs (``Soundness``). Read
``accountant`` first: it has the interface, and the classes of mechanisms that the
curves are about. Each family of mechanisms has a file of its own. ``cross_checks``
compares a claim with all accountants that apply, and ``calibration`` computes the noise
for a target. Every public name can be imported from this package. The file of a name is
loaded when the name is first used, so that a command which needs one accountant does
not load the others.

>>> from auditdp.accountants import GaussianCurve
>>> round(GaussianCurve(2.0).epsilon_at(1e-5), 2)
1.99
"""
# ruff: noqa: F403

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auditdp.accountants.accountant import *
    from auditdp.accountants.additive_noise import *
    from auditdp.accountants.calibration import *
    from auditdp.accountants.composition import *
    from auditdp.accountants.concentrated import *
    from auditdp.accountants.cross_checks import *
    from auditdp.accountants.dp_sgd_batches import *
    from auditdp.accountants.dp_sgd_node_level import *
    from auditdp.accountants.dp_sgd_parameters import *
    from auditdp.accountants.dp_sgd_poisson import *
    from auditdp.accountants.parameter_checks import *
    from auditdp.accountants.selection import *
    from auditdp.accountants.subsampling import *
    from auditdp.accountants.unequal_composition import *

_NAMES = {
    "accountant": "Accountant Description Soundness narrowest within",
    "additive_noise": (
        "ClassicGaussian GaussianCurve GaussianNoise LaplaceLower LaplaceNoise "
        "LaplaceUpper"
    ),
    "calibration": "Solution solve",
    "composition": (
        "AdvancedComposition BasicComposition Composition KairouzCorollary "
        "OptimalComposition corollary_budget"
    ),
    "concentrated": "ZCDP",
    "cross_checks": "AccountantReply CrossCheck cross_check",
    "dp_sgd_batches": (
        "FixedSize FixedSizeLower FixedSizeRDP FixedSizeUpper Shuffled ShuffledLower "
        "ShuffledUpper fixed_size_accountants shuffled_accountants"
    ),
    "dp_sgd_node_level": (
        "NodeLevel NodeLevelLower NodeLevelRDP NodeLevelUpper node_level_accountants "
        "reached_nodes"
    ),
    "dp_sgd_parameters": "Poisson",
    "dp_sgd_poisson": (
        "Opacus OpacusGDP OpacusPRV OpacusRDP PLDLower PLDUpper RDP poisson_accountants"
    ),
    "parameter_checks": "AccountantError",
    "selection": (
        "TopK TopKAdvanced TopKBoundedRange TopKDurfeeRogers TopKNonAdaptive "
        "TopKOptimalComposition TopKPure TopKZCDP bounded_range"
    ),
    "subsampling": (
        "FixedSizeSubsampled PoissonSubsampled Subsampled WithReplacementSubsampled "
        "amplified unamplified"
    ),
    "unequal_composition": "HeterogeneousComposition",
}
"""The public names of each file of this package, separated by spaces."""
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"{__name__}.{_HOMES[name]}")
    value = globals()[name] = getattr(home, name)
    return value
