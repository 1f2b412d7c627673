"""Accountants of libraries: each one's ε for the same noise, against proved bounds.

The claim is the library's number; it is CERTIFIED where a proved upper bound is no larger, VIOLATED where a proved lower
bound is larger, and NOT_REFUTED between the two. There is no mechanism, and nothing is drawn.
"""

import math
import warnings

import numpy as np
from diffprivlib import BudgetAccountant

from auditdp import ApproxDP, Audit
from auditdp.accountants import GaussianCurve, OptimalComposition, PLDLower, PLDUpper
from libraries.stated import of

DP_SGD = {"usual": (1.0, 0.01, 1000, 1e-5), "few steps": (0.8, 0.05, 20, 1e-6)}
"""Noise multiplier, rate, steps and δ."""
CLOSELY = 1e-6
"""Relative tolerance of an ε that is a root with a limited number of digits."""


def dp_sgd(ask, usual):
    """Return the audit of a library's ε for DP-SGD with Poisson batches."""
    noise, rate, steps, delta = DP_SGD[usual]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        epsilon = float(ask(noise, rate, steps, delta))
    return Audit(
        None,
        ApproxDP(epsilon * (1 + CLOSELY), delta),
        accountants=[PLDUpper(noise, rate, steps), PLDLower(noise, rate, steps)],
    )


def of_opacus(mechanism):
    """Return a function that queries one of Opacus' accountants."""

    def ask(noise, rate, steps, delta):
        from opacus.accountants import create_accountant

        accountant = create_accountant(mechanism)
        accountant.history = [(noise, rate, steps)]
        return accountant.get_epsilon(delta)

    return ask


def of_dp_accounting(kind):
    """Return a function that queries one of Google's accountants."""

    def ask(noise, rate, steps, delta):
        import dp_accounting as dp
        from dp_accounting.pld import PLDAccountant
        from dp_accounting.rdp import RdpAccountant

        step = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(noise))
        return (
            {"pld": PLDAccountant, "rdp": RdpAccountant}[kind]()
            .compose(step, steps)
            .get_epsilon(delta)
        )

    return ask


def of_prv_accountant(noise, rate, steps, delta):
    """Return the upper end of Microsoft's interval for ε."""
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import (
        PoissonSubsampledGaussianMechanism,
    )

    variable = PoissonSubsampledGaussianMechanism(
        noise_multiplier=noise, sampling_probability=rate
    )
    made = PRVAccountant(
        prvs=variable,
        max_self_compositions=steps,
        eps_error=0.01,
        delta_error=delta / 1000,
    )
    return made.compute_epsilon(delta=delta, num_self_compositions=steps)[2]


OPACUS, DP_ACCOUNTING, PRV = of("opacus"), of("dp-accounting"), of("prv-accountant")
DIFFPRIVLIB, OPENDP, PYDP, PIPELINE = (
    of("diffprivlib"),
    of("opendp"),
    of("python-dp"),
    of("pipeline-dp"),
)


@OPACUS(source="Opacus 1.6.0, PRVAccountant", reading="accountant: PRV, 1,000 steps")
def opacus_prv():
    """DP-SGD with σ = 1, q = .01 and 1,000 steps is (ε, 1e-5)-DP by Opacus' default accountant."""
    return dp_sgd(of_opacus("prv"), "usual")


@OPACUS(source="Opacus 1.6.0, PRVAccountant", reading="accountant: PRV, 20 steps")
def opacus_prv_few():
    """DP-SGD with σ = .8, q = .05 and 20 steps is (ε, 1e-6)-DP by Opacus' default accountant."""
    return dp_sgd(of_opacus("prv"), "few steps")


@OPACUS(source="Opacus 1.6.0, RDPAccountant", reading="accountant: RDP, 1,000 steps")
def opacus_rdp():
    """The same by its Rényi accountant."""
    return dp_sgd(of_opacus("rdp"), "usual")


@OPACUS(
    source="Opacus 1.6.0, GaussianAccountant, which warns that it may underestimate",
    reading="accountant: GDP, 1,000 steps",
    expect="violation",
)
def opacus_gdp():
    """The same by its central limit, which is no bound, as it says itself. False."""
    return dp_sgd(of_opacus("gdp"), "usual")


@OPACUS(
    source="Opacus 1.6.0, GaussianAccountant, which warns that it may underestimate",
    reading="accountant: GDP, 20 steps",
    expect="violation",
)
def opacus_gdp_few():
    """The same for few steps, where the limit is far away. False."""
    return dp_sgd(of_opacus("gdp"), "few steps")


@DP_ACCOUNTING(
    source="dp-accounting 0.6.0, PLDAccountant", reading="accountant: PLD, 1,000 steps"
)
def google_pld():
    """The same by Google's privacy loss distributions."""
    return dp_sgd(of_dp_accounting("pld"), "usual")


@DP_ACCOUNTING(
    source="dp-accounting 0.6.0, PLDAccountant", reading="accountant: PLD, 20 steps"
)
def google_pld_few():
    """The same for few steps."""
    return dp_sgd(of_dp_accounting("pld"), "few steps")


@DP_ACCOUNTING(
    source="dp-accounting 0.6.0, RdpAccountant", reading="accountant: RDP, 1,000 steps"
)
def google_rdp():
    """The same by Google's Rényi accountant."""
    return dp_sgd(of_dp_accounting("rdp"), "usual")


@PRV(
    source="prv-accountant 0.2.0, compute_epsilon, upper end",
    reading="accountant: PRV, 1,000 steps",
)
def microsoft_prv():
    """The same by Microsoft's accountant."""
    return dp_sgd(of_prv_accountant, "usual")


@DIFFPRIVLIB(
    source="diffprivlib 0.6.6, BudgetAccountant with slack",
    reading="accountant: BudgetAccountant, 50 of .1",
)
def budget(epsilon=0.1, count=50, slack=1e-5):
    """50 releases at ε = .1 are (ε, 1e-5)-DP by diffprivlib's accountant with that slack."""
    total = BudgetAccountant(slack=slack, spent_budget=[(epsilon, 0)] * count).total()
    return Audit(
        None,
        ApproxDP(*map(float, total)),
        accountants=[OptimalComposition(epsilon, 0.0, count)],
    )


@DIFFPRIVLIB(
    source="diffprivlib 0.6.6, BudgetAccountant with slack",
    reading="accountant: BudgetAccountant, 20 of (.5, 1e-6)",
)
def budget_approximate(epsilon=0.5, delta=1e-6, count=20, slack=1e-4):
    """20 releases at (.5, 1e-6) by diffprivlib's accountant with a slack of 1e-4."""
    total = BudgetAccountant(
        slack=slack, spent_budget=[(epsilon, delta)] * count
    ).total()
    return Audit(
        None,
        ApproxDP(*map(float, total)),
        accountants=[OptimalComposition(epsilon, delta, count)],
    )


@DIFFPRIVLIB(
    source="diffprivlib 0.6.6, mechanisms.GaussianAnalytic",
    reading="noise: GaussianAnalytic",
)
def analytic_scale(epsilon=2.0, delta=1e-5):
    """The σ of GaussianAnalytic for (2, 1e-5)."""
    from diffprivlib.mechanisms import GaussianAnalytic

    sigma = math.sqrt(
        GaussianAnalytic(epsilon=epsilon, delta=delta, sensitivity=1).variance(0)
    )
    return Audit(
        None,
        ApproxDP(epsilon * (1 + CLOSELY), delta),
        accountants=[GaussianCurve(sigma)],
    )


@PYDP(source="PyDP 1.1.5, GaussianMechanism.std", reading="noise: GaussianMechanism")
def google_scale(epsilon=2.0, delta=1e-5):
    """The σ of Google's Gaussian mechanism for (2, 1e-5)."""
    from pydp.algorithms.numerical_mechanisms import GaussianMechanism

    sigma = GaussianMechanism(epsilon, delta, 1.0).std
    return Audit(None, ApproxDP(epsilon, delta), accountants=[GaussianCurve(sigma)])


@OPENDP(
    source="OpenDP 0.16.0, combinators.make_zCDP_to_approxDP",
    reading="accountant: zCDP to (ε, δ)",
)
def opendp_conversion(scale=2.0, delta=1e-5):
    """The ε that OpenDP gives for Gaussian noise with σ = 2 at δ = 1e-5."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    made = dp.m.make_gaussian(
        dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale
    )
    epsilon = dp.c.make_zCDP_to_approxDP(made).map(1.0).epsilon(delta)
    return Audit(None, ApproxDP(epsilon, delta), accountants=[GaussianCurve(scale)])


@PIPELINE(
    source="PipelineDP 0.3.1, dp_computations.gaussian_epsilon",
    reading="accountant: gaussian_epsilon",
)
def pipeline_epsilon(sigma=2.0, delta=1e-5):
    """The ε that PipelineDP gives for Gaussian noise with σ = 2 at δ = 1e-5."""
    from pipeline_dp.dp_computations import gaussian_epsilon

    epsilon = float(np.float64(gaussian_epsilon(sigma, delta)))
    return Audit(
        None,
        ApproxDP(epsilon * (1 + CLOSELY), delta),
        accountants=[GaussianCurve(sigma)],
    )
