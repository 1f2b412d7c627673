"""DPAR's budget: from (ε, δ) of the whole to the noise of its two parts, as published and repaired.

**Published.** Theorem 2: parts of (ε_pr, δ_pr) and (ε_sgd, δ_sgd) on the drawn nodes are (q(ε_pr + ε_sgd), δ_pr +
δ_sgd)-DP for the whole. Each row of DP-APPR has the budget of Theorem 1 or 3; DP-SGD is accounted as if a node were in
each batch with probability B/N and changed the sum by τC. The constant c₂ of the theorem is not stated: here σ is the
least that an exact accountant gives for that model, so that the published form is tighter than any c₂ that holds.

**Repaired**, for a node that is replaced: its features, label and edges. Ids are public.

- The draw of nodes has a fixed size, without replacement: ε = ln(1 + q(e^ε₀ − 1)), δ = qδ₀ from (ε₀, δ₀) on the
  drawn nodes (Balle, Barthe & Gaboardi 2018, Theorem 9).
- DP-APPR-EM: M·K selections of bounded range 2ε and, with option II, M releases of ε₂-DP are
  (M·Kε²/2 + Mε₂²/2)-zCDP. DP-APPR-GM: M rows are √(2M)·C₁ apart at most.
- DP-SGD: a node is in R of the rows at most, its own among them, so that up to R clipped gradients change by 2C each.
- Both parts add up.

Each repaired line is an audit's: ``audits/audit_accounting_dpar.py`` (subsample_fixed_size, dpar_repaired),
``audit_accounting.py`` (em_selections, gm_composition_exact).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from auditdp.accountants import (
    ZCDP,
    Accountant,
    FixedSizeSubsampled,
    GaussianCurve,
    solve,
)
from auditdp.errors import ConfigurationError
from gnn.pipelines.dpar.parameters import DPARParameters
from gnn.pipelines.parts import node_noise, record_noise
from mechanisms.pagerank import entry_epsilon, share_of_row

BELOW = 1 - 1e-12
"""Factor of δ before the division by q, so that rounding does not raise the product."""


@dataclass(frozen=True)
class Budget:
    """The noise of a run.

    Attributes:
        pagerank: (ε, δ) of DP-APPR on the drawn nodes.
        training: (ε, δ) of DP-SGD on them.
        entry_epsilon: ε of a selection: C₂ over the scale of its Gumbel noise (EM).
        value_epsilon: ε₂ of the values of a row (EM1).
        row_sigma: Standard deviation of the noise on an entry, over C₁ (GM).
        noise_multiplier: σ of DP-SGD, over C.
    """

    pagerank: tuple[float, float]
    training: tuple[float, float]
    entry_epsilon: float
    value_epsilon: float
    row_sigma: float
    noise_multiplier: float

    def pagerank_accountant(self, rows: int, k: int) -> Accountant:
        """Return the accountant of DP-APPR for a replaced node with public ids."""
        if self.row_sigma:
            return GaussianCurve(self.row_sigma, math.sqrt(2), rows)
        return ZCDP(
            rows * k * self.entry_epsilon**2 / 2 + rows * self.value_epsilon**2 / 2
        )


@lru_cache(maxsize=256)
def budget_of(parameters: DPARParameters, nodes: int) -> Budget:
    """Return the noise for a number of training nodes.

    Raises:
        ConfigurationError: If ε is infinite, or δ/q is no δ.
        AccountantError: If no noise between 1e-6 and 1e6 meets the target.
    """
    if not parameters.private:
        raise ConfigurationError(
            "budget_of: an infinite epsilon has no noise; expected a finite one"
        )
    sizes = parameters.sizes(nodes)
    repaired = parameters.accounting == "repaired"
    epsilon, delta = (
        _on_the_drawn(parameters)
        if repaired
        else (parameters.epsilon / parameters.rate, parameters.delta)
    )
    pagerank = (parameters.share * epsilon, delta / 2)
    training = ((1 - parameters.share) * epsilon, delta / 2)
    if repaired:
        reached = min(parameters.most_rows, sizes.rows)
        noise = node_noise(*training, sizes.rows, reached, sizes.batch, sizes.steps)
        entry, value, sigma = _repaired_rows(parameters, pagerank, sizes.private_rows)
    else:
        noise = parameters.tau * record_noise(
            *training, sizes.batch / sizes.rows, sizes.steps
        )
        entry, value, sigma = _published_rows(parameters, pagerank, sizes.private_rows)
    return Budget(pagerank, training, entry, value, sigma, noise)


@lru_cache(maxsize=256)
def supported_epsilon(parameters: DPARParameters, nodes: int) -> float:
    """Return the ε for which a run is proved (ε, parameters.delta)-DP, for a node that is replaced.

    Of a published run: DP-APPR by its own noise, and DP-SGD with the up to M + 1 rows that a node can be in (M where no
    others are trained on), without any amplification by batches; then the draw of nodes.
    """
    if not parameters.private:
        return math.inf
    if parameters.accounting == "repaired":
        return parameters.epsilon
    budget, sizes = budget_of(parameters, nodes), parameters.sizes(nodes)
    delta = min(parameters.delta * BELOW / parameters.rate, 0.5)
    reached = min(sizes.private_rows + (parameters.others == "identity"), sizes.batch)
    pagerank = budget.pagerank_accountant(sizes.private_rows, parameters.k).epsilon_at(
        delta / 2
    )
    training = GaussianCurve(
        budget.noise_multiplier, 2.0 * reached, sizes.steps
    ).epsilon_at(delta / 2)
    whole = pagerank + training
    # ln(1 + q(e^ε − 1)), without e^ε, which overflows.
    return whole + math.log(parameters.rate + (1 - parameters.rate) * math.exp(-whole))


def _on_the_drawn(parameters: DPARParameters) -> tuple[float, float]:
    """(ε₀, δ₀) on the drawn nodes."""
    delta = parameters.delta * BELOW / parameters.rate
    if delta >= 1:
        raise ConfigurationError(
            f"budget_of: delta / rate = {delta:g} on the drawn nodes; expected it below 1, so a smaller delta"
        )
    if parameters.rate == 1:
        return parameters.epsilon, delta
    found = solve(
        lambda each: [FixedSizeSubsampled(each, delta, parameters.rate)],
        parameters.epsilon,
        parameters.delta,
        larger_is_safer=False,
    )
    return found.value, delta


def _published_rows(
    parameters: DPARParameters, pagerank: tuple[float, float], rows: int
) -> tuple[float, float, float]:
    """ε of a selection, ε of the values, σ/C₁; the paper does not say how option II shares a row: here equally."""
    epsilon, delta = pagerank[0], pagerank[1] / (2 * rows)
    row = share_of_row(epsilon, rows, delta)
    if parameters.method == "GM":
        return 0.0, 0.0, math.sqrt(2 * math.log(1.25 / delta)) / row
    if parameters.method == "EM1":
        return entry_epsilon(row / 2, parameters.k, delta), row / 2, 0.0
    return entry_epsilon(row, parameters.k, delta), 0.0, 0.0


def _repaired_rows(
    parameters: DPARParameters, pagerank: tuple[float, float], rows: int
) -> tuple[float, float, float]:
    """The same with a proof; option II has half of ρ for the indices and half for the values."""
    if parameters.method == "GM":
        return (
            0.0,
            0.0,
            GaussianCurve.sigma_for(*pagerank, sensitivity=math.sqrt(2), count=rows),
        )
    rho = (
        solve(lambda each: [ZCDP(each)], *pagerank, larger_is_safer=False).value * BELOW
    )
    if parameters.method == "EM1":
        return math.sqrt(rho / (rows * parameters.k)), math.sqrt(rho / rows), 0.0
    return math.sqrt(2 * rho / (rows * parameters.k)), 0.0, 0.0
