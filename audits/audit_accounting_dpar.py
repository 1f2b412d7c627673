"""Accounting of DPAR's training (Alg. 2): noise, sensitivity, batches, steps, subsample.

There is no trainer here. The claim is judged for the model that its accounting assumes, and once more for the model that
the algorithm is. VIOLATED means that something of that model loses more, and each violated claim stands beside one that is
certified.

Theorem 2 claims (q(ε_sgd + ε_pr), δ_sgd + δ_pr): its σ = c₂(B/N)τ√(T ln(1/δ))/ε_sgd has the rate of the batches in it, and
the q in front is that of the subsample of nodes, 9 %, that both parts run on (the last sentence of its proof).

The numbers are those of the paper on Cora-ML: 9 % of 2,396 training nodes are N = 216, of which M = 70 have a row; batches
of B = 60, so 720 of them in 200 epochs; δ_sgd = .001. ε_pr is for ``audit_accounting.py``.

The published code has another split of Cora-ML: it keeps seven of nine parts that METIS cuts (2,327 to 2,332 nodes
by METIS 5 with seeds 0 to 3), and 9 % of them are 210. The audits of the code have its σ, batches and steps, and N = 216.
"""

import math

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

from auditdp import ApproxDP, Audit, audit
from auditdp.accountants import (
    RDP,
    FixedSizeSubsampled,
    GaussianCurve,
    NodeLevelRDP,
    PLDLower,
    PLDUpper,
    PoissonSubsampled,
    amplified,
    node_level_accountants,
    shuffled_accountants,
    unamplified,
)

DPAR = "Zhang et al. 2024 (DPAR), arXiv:2210.04442"
TRAINING = "DPAR training (Alg. 2)"
NODES, ROWS, BATCH, STEPS, DELTA = 216, 70, 60, 720, 1e-3


def dp_sgd(noise, rate, steps):
    """Return the accountants of DP-SGD with Poisson batches: the bracket, and Rényi."""
    return [
        PLDUpper(noise, rate, steps),
        PLDLower(noise, rate, steps),
        RDP(noise, rate, steps),
    ]


def code_epsilon(noise, rate, steps, delta):
    """Return ε of the published code's Rényi accountant: the least T·D_α + ln(1/δ)/(α − 1) over its orders.

    D_α is integrated on a grid here. The code sums a series, and the two agree to six digits.
    """
    orders = np.concatenate([1 + np.arange(1, 100) / 10, np.arange(12, 64)])[:, None]
    outputs = np.linspace(-20 * noise, 64 + 20 * noise, 20_001)
    shifted = (2 * outputs - 1) / (2 * noise**2)
    loss = np.logaddexp(math.log1p(-rate), math.log(rate) + shifted)
    log_moments = logsumexp(norm.logpdf(outputs, scale=noise) + orders * loss, axis=1)
    log_moments += math.log(outputs[1] - outputs[0])
    return float(np.min((steps * log_moments - math.log(delta)) / (orders[:, 0] - 1)))


@audit(
    source="Mironov, Talwar & Zhang 2019, arXiv:1908.10530v1, Section 3.3, by dp-accounting 0.6",
    row=TRAINING,
    reading="accounting: ε of a Rényi accountant for σ = 8, given sensitivity τC and batches at B/N",
)
def dpar_renyi(noise=8.0):
    """Training has the ε of a Rényi accountant, if a node is in a batch at rate B/N and changes it by τC at most.

    The paper does not print this ε, nor σ = 8 τC: Theorem 2 has a constant c₂ that it does not state. What its conditions
    are worth is below.
    """
    claimed = RDP(noise, BATCH / NODES, STEPS).epsilon_at(DELTA)
    return Audit(
        None, ApproxDP(claimed, DELTA), accountants=dp_sgd(noise, BATCH / NODES, STEPS)
    )


@audit(
    source=f"{DPAR}, Theorem 2 and its proof with c₂ = 4; Abadi et al. 2016, arXiv:1607.00133v2, Theorem 1",
    row=TRAINING,
    reading="accounting: the formula for σ, on the subsample",
)
def dpar_noise(epsilon=4.0, constant=4.0):
    """Training with σ = c₂(B/N)τ√(T ln(1/δ))/ε_sgd is (ε_sgd, δ_sgd)-DP on the subsample.

    True for these numbers, c₂ = 4.

    Given sensitivity and batches as stated. Theorem 2 does not say which c₂ it means.
    """
    rate = BATCH / NODES
    noise = constant * rate * math.sqrt(-STEPS * math.log(DELTA)) / epsilon
    return Audit(None, ApproxDP(epsilon, DELTA), accountants=dp_sgd(noise, rate, STEPS))


@audit(
    source=f"{DPAR}, Theorem 2 with q = B/N for the N nodes of the subsample",
    expect="violation",
    row=TRAINING,
    reading="accounting: batches of 60 among the 70 rows that there are",
)
def dpar_batches_of_rows(noise=8.0):
    """Training by batches of B rows is accounted for at rate B/N, N sampled nodes.

    False: they are B of the M rows.

    The matrix is drawn once and serves all steps, so that a row of it is in each batch with probability B/M. That a node has
    a row, with probability p = M/N, amplifies the whole once. If all other gradients are 0, the law with the node is
    (1−p)Q + pP for P given that it has a row and Q without the node, so that (3.28, .001)-DP of the whole asks for
    (ln(1 + (e^3.28 − 1)/p), .001/p)-DP of P and Q, which is what is refuted.
    """
    claimed, share = RDP(noise, BATCH / NODES, STEPS).epsilon_at(DELTA), ROWS / NODES
    given_a_row = ApproxDP(unamplified(claimed, share), DELTA / share)
    return Audit(None, given_a_row, accountants=dp_sgd(noise, BATCH / ROWS, STEPS))


@audit(
    source=f"published code of {DPAR} at 62159715, feed_for_batch_train: the first epoch's batches, accounted as Poisson",
    expect="violation",
    row=TRAINING,
    reading="published code: the batches of the first epoch for ever, σ = .95",
)
def dpar_shuffled(noise=0.95, batches=4, epochs=200, delta=1e-3):
    """200 epochs of the same 4 shuffled batches have the ε that the code's accountant reports for as many Poisson batches.

    False, for the model of the accounting in which a node is one record and has one row. δ = .001 is the code's. If no
    gradient depends on the weights, the mean of a batch's 200 outputs tells as much as all of them, so that this is one
    epoch with noise σ/√200. Batches drawn anew for each epoch would lose 132.2 at least, and these lose 155.8.
    """
    claimed = code_epsilon(noise, BATCH / NODES, batches * epochs, delta)
    return Audit(
        None,
        ApproxDP(claimed, delta),
        accountants=shuffled_accountants(noise / epochs**0.5, batches),
    )


@audit(
    source=f"{DPAR}, Theorem 2: sensitivity τC",
    expect="violation",
    row=TRAINING,
    reading="accounting: one step with all rows, a node's features replaced",
)
def dpar_sensitivity(noise=4.0, rows_of_node=10, tau=1.0):
    """A sum of clipped gradients of rows whose columns have ℓ₁ norm τ changes by τC at most with one node.

    False: by 2RC.

    R is how many rows the node is in. Clipping to C comes after the weights Π_jk: if only node k has features, R rows are
    Π_jk f(x_k), and −x_k instead of x_k reverses each of their gradients (two classes, a linear model at W = 0, where each
    is ∓½h_j). Large x_k make all of these C long, however small the weights.
    """
    claimed = GaussianCurve(noise * tau, tau).epsilon_at(DELTA)
    return Audit(
        None,
        ApproxDP(claimed, DELTA),
        accountants=[GaussianCurve(noise * tau, 2 * rows_of_node)],
    )


@audit(
    source=f"{DPAR}, Theorem 2: sensitivity τC, of a node that is replaced with its label",
    expect="violation",
    row=TRAINING,
    reading="accounting: one step, a node's own label",
)
def dpar_own_row(noise=4.0, tau=0.5):
    """A node changes the sum of clipped gradients by τC at most, its own label included.

    False wherever τ < 2: the label is in the gradient of the node's own row, which is clipped to C after Π has weighted it,
    and another label may turn the clipped gradient around, 2C. With K = 2 and option I every entry of Π is 1/2, the least
    that a column that is used at all can sum to.
    """
    claimed = GaussianCurve(noise * tau, tau).epsilon_at(DELTA)
    return Audit(
        None, ApproxDP(claimed, DELTA), accountants=[GaussianCurve(noise * tau, 2)]
    )


@audit(
    source="derived here",
    row=TRAINING,
    reading="accounting: sensitivity 2RC",
    repairs="dpar_sensitivity",
)
def dpar_sensitivity_repaired(noise=4.0, rows_of_node=10, tau=1.0):
    """The sum changes by 2RC at most, R the most rows that a node is in: so noise for 2RC in place of τC."""
    claimed = GaussianCurve(noise * tau, tau).epsilon_at(DELTA)
    return Audit(
        None,
        ApproxDP(claimed, DELTA),
        accountants=[GaussianCurve(2 * rows_of_node * noise, 2 * rows_of_node)],
        cost=f"{2 * rows_of_node / tau:g} times the noise, for R = {rows_of_node} and τ = {tau:g}",
    )


@audit(
    source="derived here; bound: Daigavane et al. 2021, arXiv:2111.15521, Theorem 1",
    row=TRAINING,
    reading="accounting: batches of the rows, a node in at most R of them",
    repairs="dpar_batches_of_rows",
)
def dpar_repaired(noise=200.0, rows_of_node=2):
    """Training by batches of B of M rows is (ε, δ)-DP by node-level accounting, if a node is in R = 2 rows at most.

    The matrix, which is released, says who is in which row; so it can be made to name each node in at most R rows.
    """
    accountants = node_level_accountants(noise, ROWS, rows_of_node, BATCH, STEPS)
    claimed = NodeLevelRDP(noise, ROWS, rows_of_node, BATCH, STEPS).epsilon_at(DELTA)
    return Audit(
        None,
        ApproxDP(claimed, DELTA),
        accountants=accountants,
        cost=f"σ = {noise:g}C, where 8τC was to have (3.28, δ), and a node in at most {rows_of_node} rows",
    )


@audit(
    source=f"{DPAR}, Theorem 2 and the last sentence of its proof, which multiplies ε by the rate of the subsample",
    expect="violation",
    row=TRAINING,
    reading="(8, .002) on the subsample, claimed as (.72, .002)",
)
def subsample_naive(epsilon=8.0, delta=2e-3, rate=0.09):
    """(ε, δ)-DP on a subgraph of q = 9 % of the nodes is (qε, δ)-DP for the whole.

    False, of all that is (ε, δ)-DP.

    It is ln(1 + q(e^ε − 1)) > qε, at which δ becomes qδ; what a larger δ gives back is far less. Nodes come into the
    subgraph by a coin each; whose are not in it leave no edge there, so that node-level neighbours are records.
    """
    return Audit(
        None,
        ApproxDP(rate * epsilon, delta),
        accountants=[PoissonSubsampled(epsilon, delta, rate)],
    )


@audit(
    source=f"published code of {DPAR}, main.py at 62159715: ε and δ of the subgraph times .09",
    expect="violation",
    row=TRAINING,
    reading="published code: σ = .95, 216 nodes, claimed as .09 times the ε of the subgraph",
)
def dpar_code_amplified(noise=0.95, steps=800, rate=0.09, delta=1e-3):
    """Training on a subgraph of 9 % of the nodes has .09 times the ε of the code's Rényi accountant on it, at δ = .001.

    False for DP-SGD itself and not only for the worst (ε, δ)-DP mechanism, in the model in which a node is one record. If
    all other gradients are 0, the law with the node is (1−q)Q + qP for P given that it is in the subgraph and Q without
    it, so that the claim asks for (ln(1 + (e^ε − 1)/q), δ/q)-DP of P and Q. A coin for each node stands here for the code's
    draw of a fixed number.
    """
    claimed = rate * code_epsilon(noise, BATCH / NODES, steps, delta / rate)
    given_the_node = ApproxDP(unamplified(claimed, rate), delta / rate)
    return Audit(None, given_the_node, accountants=dp_sgd(noise, BATCH / NODES, steps))


@audit(
    source=f"{DPAR}, Theorem 2 with Kasiviswanathan et al. 2011, which multiply δ too",
    expect="violation",
    row=TRAINING,
    reading="(8, .002) on the subsample, claimed as (.72, .00018)",
)
def subsample_naive_both(epsilon=8.0, delta=2e-3, rate=0.09):
    """(ε, δ)-DP on a subgraph of q = 9 % of the nodes is (qε, qδ)-DP for the whole."""
    found = PoissonSubsampled(epsilon, delta, rate)
    return Audit(None, ApproxDP(rate * epsilon, found.own_delta), accountants=[found])


@audit(
    source=f"{DPAR}, Theorem 2 and Table 1, if the ε of the table is that of the whole",
    expect="violation",
    row=TRAINING,
    reading="(1/.09, .002) on the subsample, claimed as (1, .002)",
)
def subsample_naive_table(epsilon=1.0, delta=2e-3, rate=0.09):
    """A subgraph of q = 9 % of the nodes may spend ε/q for the whole to be (ε, δ)-DP, at the least ε of Table 1."""
    return Audit(
        None,
        ApproxDP(epsilon, delta),
        accountants=[PoissonSubsampled(epsilon / rate, delta, rate)],
    )


@audit(
    source="Balle, Barthe & Gaboardi 2018, arXiv:1807.01647v2, Theorems 8 and 9",
    row=TRAINING,
    reading="accounting: ln(1 + q(e^ε − 1)), a coin for each node",
    repairs="subsample_naive",
)
def subsample_amplified(epsilon=8.0, delta=2e-3, rate=0.09):
    """(ε, δ)-DP on a subgraph of q = 9 % of the nodes is (ln(1 + q(e^ε − 1)), qδ)-DP for the whole.

    True, and tight.
    """
    found = PoissonSubsampled(epsilon, delta, rate)
    return Audit(
        None,
        ApproxDP(found.epsilon_at(found.own_delta), found.own_delta),
        accountants=[found],
        cost=f"ε = {amplified(epsilon, rate):.3g} instead of {rate * epsilon:.2g} at ε = {epsilon:g}; .144 for .09 at 1",
    )


@audit(
    source="Balle, Barthe & Gaboardi 2018, arXiv:1807.01647v2, Theorem 9",
    row=TRAINING,
    reading="accounting: the same for a subgraph of fixed size, a node replaced",
)
def subsample_fixed_size(epsilon=8.0, delta=2e-3, rate=0.09):
    """(ε, δ)-DP under replacement on 9 % of the nodes, drawn without replacement, is (ln(1 + q(e^ε − 1)), qδ)-DP."""
    found = FixedSizeSubsampled(epsilon, delta, rate)
    return Audit(
        None,
        ApproxDP(found.epsilon_at(found.own_delta), found.own_delta),
        accountants=[found],
    )
