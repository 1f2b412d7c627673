"""Training with node-level privacy as published code has it: noise, thresholds, batches, and how many rows a node changes.

Of the papers only abstracts and published code were read (see ``audits.papers.heterpoisson``, ``daigavane``, ``decoupled``
and ``privdpr``). Lines of accounting are about any clipped gradients; each violated one stands beside one that is certified.
"""

import math

from auditdp import AnyValues, ApproxDP, Audit, GaussianDP, Pair, PureDP, audit
from auditdp.accountants import (
    FixedSizeUpper,
    GaussianCurve,
    NodeLevelLower,
    NodeLevelRDP,
    NodeLevelUpper,
)
from mechanisms.node_level import (
    Beyond,
    ClippedAtPercentile,
    DrawnWithReplacementLower,
    SymmetricLaplace,
    WithinBall,
)
from mechanisms.node_level.symmetric_laplace import SymmetricLaplaceNumber
from mechanisms.node_level.thresholds import ClippedAtConstant

HETER_CODE = "HeterPoisson's first code, zihangxiang/PNPiGNNs at 805abe43"
SAGE_CODE = "code of Daigavane et al. 2021, google-research differentially_private_gnns at 076b2cc7"
DPDGC_CODE = "DPDGC's code, thupchnsky/dp-gnn at 6ea28473"
PRIVDPR_CODE = "PrivDPR's code, sunnerzs/PrivDPR at 5ee37165"
SIGMA = math.sqrt(2)
"""Scale at which the noise on one number is Laplace noise of scale 1."""


@audit(
    source=f"{HETER_CODE}, from_rdp_to_dp() in mix.py",
    expect="violation",
    row="HeterPoisson",
    reading="published code of v1: noise in three coordinates",
)
def symmetric_laplace(sigma=SIGMA, radius=0.2):
    """Symmetric multivariate Laplace noise of standard deviation σ on a vector that changes by 1 is √2/σ-DP."""
    return Audit(
        mechanism=WithinBall(SymmetricLaplace(sigma, 3), radius),
        claim=PureDP(math.sqrt(2) / sigma * (1 + 1e-9)),
        pairs=Pair(0.0, 1.0, "two vectors 1 apart"),
    )


@audit(
    source="derived here: Laplace noise",
    row="HeterPoisson",
    reading="noise on one number",
    repairs="symmetric_laplace",
)
def symmetric_laplace_number(sigma=SIGMA, change=2.0):
    """The same noise on one number that changes by Δ is √2Δ/σ-DP."""
    return Audit(
        mechanism=SymmetricLaplaceNumber(sigma),
        claim=PureDP(math.sqrt(2) * change / sigma * (1 + 1e-9)),
        pairs=AnyValues([0.0, change], finite=True),
        controls=[SymmetricLaplaceNumber(sigma / 2)],
        cost="a gradient has many coordinates: the paper's second version uses Gaussian noise instead",
    )


# A batch of all 6 nodes of a graph, of which one reaches two gradients, and one step with λ = 1.

WHOLE = {"noise": 4.0, "nodes": 6, "reached": 2, "batch": 6, "steps": 1}


@audit(
    source=f"{SAGE_CODE}, jax.random.choice() in train.py",
    expect="violation",
    row="SAGE-DP code",
    reading="published code: batches drawn with replacement",
)
def sage_with_replacement(delta=1 / 60):
    """DP-SGD on batches drawn with replacement is (ε, δ)-node DP with the ε of batches drawn without."""
    claimed = NodeLevelRDP(**WHOLE).epsilon_at(delta)
    return Audit(
        None, ApproxDP(claimed, delta), accountants=[DrawnWithReplacementLower(**WHOLE)]
    )


@audit(
    source="derived here",
    row="SAGE-DP code",
    reading="batches drawn without replacement",
    repairs="sage_with_replacement",
)
def sage_without_replacement(delta=1 / 60):
    """DP-SGD on batches drawn without replacement is (ε, δ)-node DP with the ε of the code's accountant."""
    claimed = NodeLevelRDP(**WHOLE).epsilon_at(delta)
    return Audit(
        None,
        ApproxDP(claimed, delta),
        accountants=[NodeLevelUpper(**WHOLE)],
        cost="none: replace=False in one call",
    )


GRADIENTS = Pair(
    (0.01, 0.01, 0.01, 1.0, 1.0),
    (0.01, 0.01, 0.01, 0.01, 1.0),
    "two long gradients of five | one",
)


@audit(
    source=f"{SAGE_CODE}, estimate_clipping_thresholds()",
    expect="violation",
    row="SAGE-DP code",
    reading="published code: threshold read off the gradients",
)
def sage_threshold(noise=2.0, base=4.0, limit=4.0, epsilon=2.0):
    """A step with noise λ·b·q, q the 75th percentile of the private gradients' norms, is (ε, δ)-DP with the δ of 1/λ-GDP."""
    return Audit(
        mechanism=Beyond(ClippedAtPercentile(noise, base), limit),
        claim=ApproxDP(epsilon, GaussianCurve(noise).delta_at(epsilon)),
        pairs=GRADIENTS,
    )


@audit(
    source="derived here",
    row="SAGE-DP code",
    reading="a public threshold",
    repairs="sage_threshold",
)
def sage_threshold_public(noise=2.0, base=2.0):
    """A step with noise λ·b·q, q a public threshold, is 1/λ-Gaussian DP for a gradient that turns around, with b = 2."""
    return Audit(
        mechanism=ClippedAtConstant(noise, base),
        claim=GaussianDP(1 / noise),
        pairs=AnyValues([(0.25, 0.25, 1.0), (0.25, 0.25, -1.0)], finite=True),
        controls=[ClippedAtConstant(noise / 3, base)],
        cost="a threshold from public data, or a private percentile",
    )


# DPDGC's encoder: N = 10,240 rows in batches of 256, 10 epochs, at most D = 100 neighbours, λ = 1.

ENCODER = {"nodes": 10_240, "batch": 256, "steps": 400}


@audit(
    source=f"{DPDGC_CODE}, configure_adj_encoder_optimizer() of dpdgc_ndp.py",
    expect="violation",
    row="DPDGC",
    reading="published code: noise for the root of the number of rows",
)
def dpdgc_encoder(noise=1.0, max_degree=100, delta=1e-5):
    """Encoder training with noise λ·2C√(D+1) is (ε, δ)-DP for a replaced node with the ε of one record at noise λ·2C.

    Below, each of the D rows that lose a neighbour changes by C, all in one direction: ρ rows of a batch by ρC.
    """
    claimed = FixedSizeUpper(
        2 * noise, ENCODER["nodes"], ENCODER["batch"], ENCODER["steps"]
    ).epsilon_at(delta)
    lower = NodeLevelLower(
        4 * math.sqrt(max_degree + 1) * noise, reached=max_degree, **ENCODER
    )
    return Audit(None, ApproxDP(claimed, delta), accountants=[lower])


@audit(
    source="derived here",
    row="DPDGC",
    reading="noise for the number of rows",
    repairs="dpdgc_encoder",
)
def dpdgc_encoder_linear(noise=1.0, max_degree=100, delta=1e-5):
    """Encoder training with noise λ·2C(2D+1) is (ε, δ)-DP for a replaced node with the node-level ε of 2D+1 rows."""
    reached = 2 * max_degree + 1
    run = {"noise": 2.0 * reached * noise, "reached": reached, **ENCODER}
    upper = NodeLevelUpper(**run)
    claimed = NodeLevelRDP(**run).epsilon_at(delta)
    return Audit(
        None,
        ApproxDP(claimed, delta),
        accountants=[upper],
        cost=f"{reached / math.sqrt(max_degree + 1):.0f} times the noise, at ε = {claimed:.2g}",
    )


@audit(
    source=f"{PRIVDPR_CODE}, Gau_Noise()",
    row="PrivDPR",
    reading="published code: noise of all steps",
)
def privdpr_noise(epsilon=0.1, delta=1e-5, steps=100, clip=5.0):
    """T releases of sensitivity S/T with noise √(2 ln(1.25T/δ))·S/ε are (ε, δ)-DP together."""
    sigma = math.sqrt(2 * math.log(1.25 * steps / delta)) * clip / epsilon
    return Audit(
        None,
        ApproxDP(epsilon, delta),
        accountants=[GaussianCurve(sigma, clip / steps, steps)],
    )
