"""The audits of accounting claims.

Each has the verdict that it declares, and what their docstrings say besides holds.
"""

from pathlib import Path

import pytest

from auditdp.accountants import (
    ClassicGaussian,
    GaussianCurve,
    OptimalComposition,
    TopKZCDP,
    bounded_range,
    corollary_budget,
)
from auditdp.auditing.decorator import collect
from auditdp.evidence.accounting import accounting_evidence
from auditdp.record.results import Verdict
from mechanisms.pagerank import entry_epsilon, share_of_row

ROOT = Path(__file__).parents[3]
DECLARED = {
    declared.id.rpartition("::")[2]: declared
    for pattern in ("audit_accounting*.py", "audit_pagerank*.py")
    for file in sorted((ROOT / "audits").glob(pattern))
    for declared in collect(file, ROOT)
}
ACCOUNTING = [
    name for name, declared in DECLARED.items() if "audit_accounting" in declared.id
]
LEAST = {
    "em_composition_beyond": 55,
    "gm_composition_beyond": 1100,
    "classic_sigma_beyond": 8,
    "sage_record_level": 1,
}
"""The first size in each search that violates the claim."""


def verdict(name, size=None):
    declared = DECLARED[name]
    built, _ = declared.build(
        {next(iter(declared.smallest)): str(size)} if size else {}
    )
    return accounting_evidence(built.claim, built.accountants).verdict


@pytest.mark.dear
@pytest.mark.parametrize("name", ACCOUNTING)
def test_each_audit_has_the_verdict_that_it_declares(name):
    expected = (
        Verdict.VIOLATED if DECLARED[name].expect == "violation" else Verdict.CERTIFIED
    )
    assert verdict(name) is expected


@pytest.mark.parametrize(("name", "least"), LEAST.items())
def test_the_smallest_violation(name, least):
    (sizes,) = DECLARED[name].smallest.values()
    assert verdict(name, least) is Verdict.VIOLATED
    before = [size for size in sizes if size < least]
    assert all(verdict(name, size) is Verdict.CERTIFIED for size in before[-1:])


def test_a_reading_that_no_paper_makes_is_no_line_of_the_ledger():
    explorations = [declared for declared in DECLARED.values() if not declared.row]
    assert all(
        not declared.reading and not declared.repairs for declared in explorations
    )
    assert {
        declared.id.rpartition("::")[2]
        for declared in explorations
        if declared.expect == "violation"
    } == {
        "dp_appr_em_counted_once",
        "em_corollary_counted_once",
        "gap_node_replaced",
        "gap_undirected_edge",
        "ista_appr",
        "sage_record_level",
    }
    message = (
        "a reading that the paper does not make",
        "a reading of ours",
        "a claim that nobody makes",
        "derived here",
    )
    assert all(declared.source.startswith(message) for declared in explorations)


def test_every_published_mechanism_of_this_part_is_listed():
    assert {declared.row for declared in DECLARED.values() if declared.row} == {
        "DP-APPR-EM, one row",
        "DP-APPR-EM, matrix of M rows",
        "DP-APPR-GM",
        "DPAR training (Alg. 2)",
        "GAP",
        "SAGE-DP",
        "Features",
    }


@pytest.mark.dear
@pytest.mark.parametrize("delta", [2e-3, 8e-4, 1e-4, 5e-5])
@pytest.mark.parametrize("rows", [1, 10, 70, 200])
def test_the_budget_of_rows_suffices_for_all_that_the_paper_spends(delta, rows):
    """ε_g up to 8 and δ of its tables or half of them.

    Any parts lose at most .62 of what is claimed.
    """
    for epsilon_g in (0.05, 0.5, 2.0, 8.0):
        each, own = corollary_budget(epsilon_g, delta, rows)
        assert each == pytest.approx(share_of_row(epsilon_g, rows, own))
        assert OptimalComposition(each, own, rows).epsilon_at(delta) < 0.62 * epsilon_g
        sigma = ClassicGaussian.sigma_for(each, own, everywhere=True)
        assert GaussianCurve(sigma, 2**0.5, rows).epsilon_at(delta) < epsilon_g


def test_a_quarter_of_the_noise_of_the_selections_would_do():
    share, own = corollary_budget(8.0, 2e-3, 70)
    each = entry_epsilon(share, 2, own)
    assert TopKZCDP(140, bounded_range(1 / (4 * each))).epsilon_at(2e-3) < 8
    assert TopKZCDP(140, bounded_range(1 / (4.2 * each))).epsilon_at(2e-3) > 8
