"""Accounting of the methods that DPAR is compared with: GAP, SAGE-DP, DP-SGD on features.

There is no trainer here. A claim is judged for the model that its accounting assumes (noise, sensitivity, batches, number of
steps), and once more for other neighbours or batches that it is used for, or might be. VIOLATED means that something of that
model loses more, and each violated claim stands beside one that is certified. An audit without a row in the ledger is a
reading that its paper does not make.
"""

import math

from auditdp import ApproxDP, Audit, audit
from auditdp.accountants import (
    RDP,
    FixedSizeUpper,
    GaussianCurve,
    NodeLevelRDP,
    PLDLower,
    PLDUpper,
    node_level_accountants,
    reached_nodes,
    shuffled_accountants,
)

SAGE = "Daigavane et al. 2021, arXiv:2111.15521"
GAP = "Sajadmanesh et al. 2023 (GAP), arXiv:2203.00949"


def gap_claim(noise, out_degree, hops, delta):
    """Return GAP's (ε, δ) of its aggregations: (α, hops·D·α/(2s²))-RDP, converted at the best order.

    The mechanism is √(hops·D)/s-Gaussian DP: a hop adds N(0, s²) to sums of rows of norm 1, and a node is in at most D.
    """
    rho = hops * out_degree / (2 * noise**2)
    return ApproxDP(rho + 2 * math.sqrt(rho * math.log(1 / delta)), delta)


@audit(
    source=f"{GAP}, edge level",
    row="GAP",
    reading="accounting: edge level, a directed edge",
)
def gap_edge(noise=2.0, hops=2, delta=1e-3):
    """Two noisy aggregations of rows of norm 1 are (ε, δ)-DP for one directed edge.

    True: one row changes by 1 in each hop.

    Encoder and classifier do not see the edges, but through what is released.
    """
    return Audit(
        None,
        gap_claim(noise, 1, hops, delta),
        accountants=[GaussianCurve(noise, 1.0, hops)],
    )


@audit(
    source=f"a reading of ours: {GAP}, edge level, for undirected graphs",
    expect="violation",
)
def gap_undirected_edge(noise=2.0, hops=2, delta=1e-3):
    """The same aggregations are (ε, δ)-DP for an edge of an undirected graph.

    False: two rows change by 1 each, so √2.
    """
    accountants = [GaussianCurve(noise, math.sqrt(2), hops)]
    return Audit(None, gap_claim(noise, 1, hops, delta), accountants=accountants)


@audit(source="derived here")
def gap_undirected_repaired(noise=2.0, hops=2, delta=1e-3):
    """Aggregations with noise √2 s are (ε, δ)-DP for an edge of an undirected graph."""
    accountants = [GaussianCurve(math.sqrt(2) * noise, math.sqrt(2), hops)]
    return Audit(
        None,
        gap_claim(noise, 1, hops, delta),
        accountants=accountants,
        cost="twice the variance of the noise",
    )


@audit(
    source=f"{GAP}, node level",
    row="GAP",
    reading="accounting: node level, a node added or removed",
)
def gap_node(noise=20.0, hops=2, out_degree=100, delta=1e-3):
    """Two noisy aggregations of rows of norm 1, a node in at most D sums of each, are (ε, δ)-DP for a node added or removed.

    For the rows of the others, D of which change by 1, so √D. The node's own row is left out of the comparison, as a node
    that is not there has none; nor are encoder and classifier covered, each DP-SGD over nodes as records.
    """
    return Audit(
        None,
        gap_claim(noise, out_degree, hops, delta),
        accountants=[GaussianCurve(noise, math.sqrt(out_degree), hops)],
    )


@audit(
    source=f"a reading that the paper does not make: {GAP}, node level, for a node that is replaced",
    expect="violation",
)
def gap_node_replaced(noise=20.0, hops=2, out_degree=100, delta=1e-3):
    """The same aggregations are (ε, δ)-DP for a node that is replaced.

    False: its D rows may turn around, so 2√D at least.

    Its own row, which is there on both sides, is a sum over all who are its in-neighbours, and D does not bound how many:
    no noise that depends on D alone suffices.
    """
    accountants = [GaussianCurve(noise, 2 * math.sqrt(out_degree), hops)]
    return Audit(
        None, gap_claim(noise, out_degree, hops, delta), accountants=accountants
    )


@audit(source="derived here")
def gap_node_replaced_bounded(
    noise=20.0, hops=2, out_degree=100, in_degree=10, delta=1e-3
):
    """Aggregations with noise 2s√(1 + D′²/D) are (ε, δ)-DP for a node that is replaced, if in-degrees are D′ at most.

    D rows of others change by 2 each, or up to 2D by 1, which is less, and its own by 2D′: 2√(D + D′²) together.
    """
    factor = math.sqrt(1 + in_degree**2 / out_degree)
    accountants = [
        GaussianCurve(
            2 * factor * noise * (1 + 1e-12), 2 * factor * math.sqrt(out_degree), hops
        )
    ]
    return Audit(
        None, gap_claim(noise, out_degree, hops, delta), accountants=accountants
    )


# SAGE-DP: N = 10,000 nodes, batches of 100, σ = 8C, 100 steps.

SAGE_RUN = {"noise": 8.0, "nodes": 10_000, "batch": 100, "steps": 100}


@audit(
    source=f"{SAGE}, Theorem 1",
    row="SAGE-DP",
    reading="accounting, as stated: node level, out-degree 4",
)
def sage_node_level(layers=2, out_degree=4, delta=1e-5):
    """DP-SGD on subgraphs of out-degree K is (ε, δ)-node DP, ρ of a batch's gradients changing by 2C each.

    A node reaches N_T = (K^{r+1} − 1)/(K − 1) = 21 gradients; ρ is hypergeometric. As far as the sampler bounds degrees.
    """
    run = {**SAGE_RUN, "reached": reached_nodes(out_degree, layers)}
    claimed = NodeLevelRDP(**run).epsilon_at(delta)
    return Audit(
        None, ApproxDP(claimed, delta), accountants=node_level_accountants(**run)
    )


@audit(
    source=f"a reading that the paper does not make: {SAGE}, with the accounting of DP-SGD for records",
    expect="violation",
    smallest={"layers": range(1, 3)},
)
def sage_record_level(layers=2, out_degree=4, delta=1e-5):
    """The same training is (ε, δ)-node DP with the ε of as many records in batches of a fixed size.

    It is a guarantee for other neighbours: a record changes one gradient, a node all that it reaches.
    """
    run = {**SAGE_RUN, "reached": reached_nodes(out_degree, layers)}
    claimed = FixedSizeUpper(
        run["noise"], run["nodes"], run["batch"], run["steps"]
    ).epsilon_at(delta)
    return Audit(
        None, ApproxDP(claimed, delta), accountants=node_level_accountants(**run)
    )


# Features: DP-SGD on an MLP, σ = 1, q = .01, 1,000 steps unless said otherwise.


def dp_sgd(noise, rate, steps):
    """Return accountants of DP-SGD with Poisson batches: from above, and from below."""
    return [PLDUpper(noise, rate, steps), PLDLower(noise, rate, steps)]


def central_limit(noise, rate, steps):
    """Return the Gaussian curve with μ = q√(T(e^(1/σ²) − 1)), to which that of ever more steps tends."""
    return GaussianCurve(1 / (rate * math.sqrt(steps * math.expm1(noise**-2))))


@audit(
    source="Abadi et al. 2016, arXiv:1607.00133v2",
    row="Features",
    reading="accounting, as stated: Poisson batches, Rényi",
)
def features(noise=1.0, rate=0.01, steps=1000, delta=1e-5):
    """DP-SGD with Poisson batches is (ε, δ)-DP with the ε of a Rényi accountant.

    True, with an eighth of it to spare.
    """
    claimed = RDP(noise, rate, steps).epsilon_at(delta)
    return Audit(None, ApproxDP(claimed, delta), accountants=dp_sgd(noise, rate, steps))


@audit(
    source="Opacus' GaussianAccountant, after the limit of many steps in Bu, Dong, Long & Su 2020, arXiv:1911.11607",
    expect="violation",
    row="Features",
    reading="accounting: Poisson batches, central limit",
)
def features_central_limit(noise=1.0, rate=0.01, steps=1000, delta=1e-5):
    """DP-SGD with Poisson batches is μ-Gaussian DP with μ = q√(T(e^(1/σ²) − 1)), so (1.62, 1e-5)-DP.

    False: 1.83.
    """
    claimed = central_limit(noise, rate, steps).epsilon_at(delta)
    return Audit(None, ApproxDP(claimed, delta), accountants=dp_sgd(noise, rate, steps))


@audit(
    source="Doroshenko et al. 2022, arXiv:2207.04380v2",
    row="Features",
    reading="accounting: Poisson batches, loss distributions",
    repairs="features_central_limit",
)
def features_loss_distribution(noise=1.0, rate=0.01, steps=1000, delta=1e-5):
    """DP-SGD with Poisson batches is (ε, δ)-DP with the ε of its privacy loss distribution, rounded up."""
    claimed, limit = (
        PLDUpper(noise, rate, steps).epsilon_at(delta),
        central_limit(noise, rate, steps).epsilon_at(delta),
    )
    return Audit(
        None,
        ApproxDP(claimed, delta),
        accountants=dp_sgd(noise, rate, steps),
        cost=f"ε = {claimed:.3g} instead of {limit:.3g} for the same noise",
    )


@audit(
    source="DP-SGD as it is usually deployed; Chua et al. 2024, arXiv:2403.17673v2",
    expect="violation",
    row="Features",
    reading="accounting: shuffled batches accounted for as Poisson batches",
)
def features_shuffled(noise=0.6, batches=1000, delta=1e-5):
    """One epoch of shuffled batches is (ε, δ)-DP with the ε of Poisson batches of the same size.

    With σ = .6 and 1,000 batches that is 1.43; the largest output alone shows 7.98, of neighbours that zero out one record.
    """
    claimed = PLDUpper(noise, 1 / batches, batches).epsilon_at(delta)
    return Audit(
        None, ApproxDP(claimed, delta), accountants=shuffled_accountants(noise, batches)
    )


@audit(
    source="Dong, Roth & Su 2022, arXiv:1905.02383v3",
    row="Features",
    reading="accounting: shuffled batches without amplification",
    repairs="features_shuffled",
)
def features_unamplified(noise=0.6, batches=1000, delta=1e-5):
    """One epoch of batches in any order is 1/σ-Gaussian DP, as each record is in one of them.

    True, and nearly tight.
    """
    upper, lower = shuffled_accountants(noise, batches)
    claimed = upper.epsilon_at(delta)
    poisson = PLDUpper(noise, 1 / batches, batches).epsilon_at(delta)
    return Audit(
        None,
        ApproxDP(claimed, delta),
        accountants=[upper, lower],
        cost=f"ε = {claimed:.3g} instead of {poisson:.3g} for the same noise",
    )
