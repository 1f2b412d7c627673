"""The theorems behind differentially private PageRank (DPAR) as formulas.

There is no mechanism here: a theorem about *any* parts or queries with given parameters is judged by accountants that are
exact for, or bound, all of them. So VIOLATED means that the theorem is false, for its worst parts; whether DP-APPR itself
then loses as much is for ``audit_pagerank*.py``. An audit without a row in the ledger is a reading that the paper does not
make. A violated claim stands beside a certified one of the same form, which
shows that these audits can tell the two apart. What training adds is in ``audit_accounting_dpar.py``.

δ = .002 is that of Cora-ML in DPAR's tables, M = 70 and K = 2 are its defaults, and ε_g = .5, 2 and 8 are the ends and the
middle of what it spends; tests go through the budgets, numbers of rows and δ between them.
"""

from auditdp import ApproxDP, Audit, audit
from auditdp.accountants import (
    ClassicGaussian,
    GaussianCurve,
    OptimalComposition,
    TopKAdvanced,
    TopKNonAdaptive,
    TopKZCDP,
    bounded_range,
    corollary_budget,
)
from mechanisms.pagerank import entry_epsilon, row_epsilon

DPAR = "Zhang et al. 2024 (DPAR), arXiv:2210.04442"
KAIROUZ = "Kairouz, Oh & Viswanath 2015, arXiv:1311.0776v4"
ROUNDING = 1e-9
"""Relative reduction of a tight budget, so that rounding does not decide its verdict.
"""
ONE_ROW, MATRIX, GAUSSIAN = (
    "DP-APPR-EM, one row",
    "DP-APPR-EM, matrix of M rows",
    "DP-APPR-GM",
)


def parts(epsilon_g, delta, rows):
    """Return the audit of Corollary 4.1's budget: M adaptive parts, each (ε₁, δ/2M)-DP and nothing better."""
    return Audit(
        None,
        ApproxDP(epsilon_g, delta),
        accountants=[
            OptimalComposition(*corollary_budget(epsilon_g, delta, rows), rows)
        ],
    )


def noisy_rows(epsilon_g, delta, rows, apart=2**0.5):
    """Return the audit of M rows of noise by the classic formula, each for the budget of Corollary 4.1."""
    sigma = ClassicGaussian.sigma_for(
        *corollary_budget(epsilon_g, delta, rows), everywhere=True
    )
    return Audit(
        None,
        ApproxDP(epsilon_g, delta),
        accountants=[GaussianCurve(sigma, apart, rows)],
    )


def selections(epsilon_g, delta, rows, k):
    """Return the audit of M·K selections, each with the noise of Corollary 1 for its row's share of the budget."""
    share, delta_row = corollary_budget(epsilon_g, delta, rows)
    eta = bounded_range(1 / entry_epsilon(share, k, delta_row))
    return Audit(
        None,
        ApproxDP(epsilon_g, delta),
        accountants=[TopKZCDP(rows * k, eta), TopKNonAdaptive(rows * k, eta)],
    )


# One row.


@audit(
    source=f"{DPAR}, Corollary 1",
    row=ONE_ROW,
    reading="accounting: the formula, K = 200",
)
def em_corollary(epsilon=0.05, k=200, delta=1e-6):
    """K selections with Gumbel(C₂/ε) are (ε₁, δ)-DP for both terms of Corollary 1.

    True: the second is Theorem 3.4 of KOV.

    With η = 2ε each is η-DP. Its losses have the range η and not 2η, which the corollary does not use: 8.43 where 3.55 do.
    """
    eta = bounded_range(1 / epsilon)
    return Audit(
        None,
        ApproxDP(row_epsilon(epsilon, k, delta), delta),
        accountants=[TopKAdvanced(k, eta), TopKZCDP(k, eta), TopKNonAdaptive(k, eta)],
    )


@audit(
    source=f"a reading that the paper does not make: {DPAR}, Corollary 1, without its factor 2",
    expect="violation",
)
def em_corollary_counted_once(epsilon=0.25, k=2, delta=1e-3):
    """K selections with Gumbel(C₂/ε) are (min{Kε, ..}, δ)-DP, each counted as ε.

    False where scores move both ways.

    Many equal scores, of which some rise and the others fall by C₂, lose nearly 2Kε.
    """
    eta = bounded_range(1 / epsilon)
    return Audit(
        None,
        ApproxDP(row_epsilon(epsilon, k, delta, each=1), delta),
        accountants=[TopKAdvanced(k, eta), TopKZCDP(k, eta), TopKNonAdaptive(k, eta)],
    )


# The matrix.


@audit(
    source=f"{DPAR}, Theorem 1; {KAIROUZ}, Corollary 4.1",
    row=MATRIX,
    reading="accounting: any rows, ε_g = .5",
)
def em_composition_half(epsilon_g=0.5, delta=2e-3, rows=70):
    """M rows that are (ε₁, δ)-DP each, ε₁ = ε_g/(2√(M ln(e + ε_g/(2Mδ)))), are (ε_g, 2Mδ)-DP at ε_g = .5."""
    return parts(epsilon_g, delta, rows)


@audit(
    source=f"{DPAR}, Theorem 1; {KAIROUZ}, Corollary 4.1",
    row=MATRIX,
    reading="accounting: any rows, ε_g = 2",
)
def em_composition_two(epsilon_g=2.0, delta=2e-3, rows=70):
    """M rows that are (ε₁, δ)-DP each are (ε_g, 2Mδ)-DP at ε_g = 2.

    True, though the corollary ends at .9.
    """
    return parts(epsilon_g, delta, rows)


@audit(
    source=f"{DPAR}, Theorem 1; {KAIROUZ}, Corollary 4.1",
    row=MATRIX,
    reading="accounting: any rows, ε_g = 8",
)
def em_composition_eight(epsilon_g=8.0, delta=2e-3, rows=70):
    """M rows that are (ε₁, δ)-DP each are (ε_g, 2Mδ)-DP at ε_g = 8.

    True, though the corollary ends at .9.

    The optimum is .58 ε_g here, and at most .62 ε_g for ε_g up to 8, up to 200 rows and the paper's δ, halved or not.
    """
    return parts(epsilon_g, delta, rows)


@audit(
    source=f"{DPAR}, Theorem 1 and Corollary 1",
    row=MATRIX,
    reading="accounting: its own M·K selections, ε_g = 8",
)
def em_selections(epsilon_g=8.0, delta=2e-3, rows=70, k=2):
    """M·K selections with the noise that Theorem 1 and Corollary 1 ask for are (ε_g, 2Mδ)-DP at ε_g = 8.

    Even (1.4, 2Mδ): all of them have bounded range 2ε, so that M·Kε²/2-zCDP holds. A quarter of the noise would do.
    """
    return selections(epsilon_g, delta, rows, k)


@audit(
    source=f"{DPAR}, Theorem 1 and Corollary 1",
    row=MATRIX,
    reading="accounting: its own M·K selections, ε_g = 55",
)
def em_selections_beyond(epsilon_g=55.0, delta=2e-3, rows=70, k=2):
    """M·K selections with the noise that Theorem 1 and Corollary 1 ask for are (ε_g, 2Mδ)-DP at ε_g = 55.

    Even (14.1, 2Mδ), where the composition formula is false for other parts (``em_composition_beyond``).
    """
    return selections(epsilon_g, delta, rows, k)


@audit(
    source=f"{DPAR}, Theorem 1; {KAIROUZ}, Corollary 4.1, stated for ε_g <= .9",
    expect="violation",
    row=MATRIX,
    reading="accounting: any rows, any ε_g",
    smallest={"epsilon_g": range(9, 101)},
)
def em_composition_beyond(epsilon_g=100.0, delta=2e-3, rows=70):
    """M rows that are (ε₁, δ)-DP each, ε₁ = ε_g/(2√(M ln(e + ε_g/(2Mδ)))), are (ε_g, 2Mδ)-DP for any ε_g.

    Losses add up as Mε₁²/2 = ε_g²/(8 ln(..)), which is more than ε_g for large ones.
    """
    return parts(epsilon_g, delta, rows)


@audit(
    source=f"{KAIROUZ}, Theorem 3.3",
    row=MATRIX,
    reading="accounting: ε₁ of the optimal composition",
    repairs="em_composition_beyond",
)
def em_composition_optimal(epsilon_g=100.0, delta=2e-3, rows=70):
    """M rows with the largest ε₁ that the optimal composition allows are (ε_g, 2Mδ)-DP for any ε_g.

    True, and tight.
    """
    published, delta_row = corollary_budget(epsilon_g, delta, rows)
    each, eight = (
        OptimalComposition.largest_epsilon(e, delta, rows, delta_each=delta_row)
        * (1 - ROUNDING)
        for e in (epsilon_g, 8.0)
    )
    return Audit(
        None,
        ApproxDP(epsilon_g, delta),
        accountants=[OptimalComposition(each, delta_row, rows)],
        cost=(
            f"ε₁ = {each:.3g} instead of {published:.3g} at ε_g = {epsilon_g:g}; at ε_g = 8 a gain, {eight:.3g} instead of "
            f"{corollary_budget(8.0, delta, rows)[0]:.3g}"
        ),
    )


# Gaussian noise on rows.


@audit(
    source=f"{DPAR}, Theorem 3", row=GAUSSIAN, reading="accounting: M rows, ε_g = .5"
)
def gm_composition_half(epsilon_g=0.5, delta=2e-3, rows=70):
    """M rows up to √2·C₁ apart with σ = C₁√(2 ln(1.25/δ))/ε₁ are (ε_g, 2Mδ)-DP at ε_g = .5."""
    return noisy_rows(epsilon_g, delta, rows)


@audit(source=f"{DPAR}, Theorem 3", row=GAUSSIAN, reading="accounting: M rows, ε_g = 2")
def gm_composition_two(epsilon_g=2.0, delta=2e-3, rows=70):
    """M rows up to √2·C₁ apart with σ = C₁√(2 ln(1.25/δ))/ε₁ are (ε_g, 2Mδ)-DP at ε_g = 2."""
    return noisy_rows(epsilon_g, delta, rows)


@audit(source=f"{DPAR}, Theorem 3", row=GAUSSIAN, reading="accounting: M rows, ε_g = 8")
def gm_composition_eight(epsilon_g=8.0, delta=2e-3, rows=70):
    """M rows up to √2·C₁ apart with σ = C₁√(2 ln(1.25/δ))/ε₁ are (ε_g, 2Mδ)-DP at ε_g = 8.

    True: an eighth of it is spent.

    Rows of Gaussian noise compose to √M·√2·C₁/σ-Gaussian DP, so that C₁ being too small a sensitivity for a single row at
    (6.48, 1e-4) does no harm here. ε₁ = .17: the formula for σ is in its range.
    """
    return noisy_rows(epsilon_g, delta, rows)


@audit(
    source=f"{DPAR}, Theorem 3 with the formula of Dwork & Roth 2014, Theorem A.1",
    expect="violation",
    row=GAUSSIAN,
    reading="accounting: M rows, any ε_g",
    smallest={"epsilon_g": range(50, 2001, 50)},
)
def gm_composition_beyond(epsilon_g=2000.0, delta=2e-3, rows=70):
    """M rows up to √2·C₁ apart with σ = C₁√(2 ln(1.25/δ))/ε₁ are (ε_g, 2Mδ)-DP for any ε_g.

    False for absurd ones only.
    """
    return noisy_rows(epsilon_g, delta, rows)


@audit(
    source="Balle & Wang 2018, arXiv:1805.06530v2, Theorem 8",
    row=GAUSSIAN,
    reading="accounting: the exact σ of M rows",
    repairs="gm_composition_beyond",
)
def gm_composition_exact(epsilon_g=8.0, delta=2e-3, rows=70):
    """M rows up to √2·C₁ apart with the least σ of all together are (ε_g, 2Mδ)-DP for any ε_g.

    True, and tight.
    """
    sigma = GaussianCurve.sigma_for(
        epsilon_g, delta, sensitivity=2**0.5, count=rows
    ) * (1 + ROUNDING)
    published = ClassicGaussian.sigma_for(
        *corollary_budget(epsilon_g, delta, rows), everywhere=True
    )
    return Audit(
        None,
        ApproxDP(epsilon_g, delta),
        accountants=[GaussianCurve(sigma, 2**0.5, rows)],
        cost=f"none but a gain at ε_g = {epsilon_g:g}: σ = {sigma:.3g}·C₁ instead of {published:.3g}·C₁",
    )


@audit(
    source="Dwork & Roth 2014, Theorem A.1",
    row=GAUSSIAN,
    reading="accounting: the formula for σ, ε = 1",
)
def classic_sigma(epsilon=1.0, delta=1e-3):
    """Any query with noise σ = Δ√(2 ln(1.25/δ))/ε is (ε, δ)-DP for ε <= 1.

    True, with a third of it to spare at 1.
    """
    sigma = ClassicGaussian.sigma_for(epsilon, delta)
    return Audit(None, ApproxDP(epsilon, delta), accountants=[GaussianCurve(sigma)])


@audit(
    source=f"{DPAR}, Theorem 3, for any ε > 0; its formula is proved for ε < 1 (Dwork & Roth 2014, Theorem A.1)",
    expect="violation",
    row=GAUSSIAN,
    reading="accounting: the formula for σ, any ε",
    smallest={"epsilon": range(2, 13)},
)
def classic_sigma_beyond(epsilon=10.0, delta=1e-3):
    """Any query with noise σ = Δ√(2 ln(1.25/δ))/ε is (ε, δ)-DP for any ε.

    False: from 7.47 on at δ = .001.

    From 5.75 at δ = .1 and 8.42 at 1e-5. σ has to fall as 1/√(2ε) for large ε, and the formula's falls as 1/ε.
    """
    sigma = ClassicGaussian.sigma_for(epsilon, delta, everywhere=True)
    return Audit(None, ApproxDP(epsilon, delta), accountants=[GaussianCurve(sigma)])


@audit(
    source="Balle & Wang 2018, arXiv:1805.06530v2, Theorem 8",
    row=GAUSSIAN,
    reading="accounting: the exact σ",
    repairs="classic_sigma_beyond",
)
def analytic_sigma(epsilon=10.0, delta=1e-3):
    """Any query with the analytic σ is (ε, δ)-DP for any ε.

    True, and tight.
    """
    sigma = GaussianCurve.sigma_for(epsilon, delta) * (1 + ROUNDING)
    classic = ClassicGaussian.sigma_for(epsilon, delta, everywhere=True)
    return Audit(
        None,
        ApproxDP(epsilon, delta),
        accountants=[GaussianCurve(sigma)],
        cost=f"σ = {sigma:.3g}Δ instead of {classic:.3g}Δ; below ε = 7.4 it is the smaller one",
    )
