"""Approximate personalised PageRank, and the mechanisms that release its rows with node-level privacy."""

from mechanisms.pagerank.budgets import entry_epsilon, row_epsilon, share_of_row
from mechanisms.pagerank.dp_appr_em import DPApprEM, DPApprEMValues, SelectedValues
from mechanisms.pagerank.dp_appr_gm import DPApprGM, NoisyRows
from mechanisms.pagerank.ista import ista, kkt_residual, lazy, power_iteration
from mechanisms.pagerank.rows import GivenRows, PlainRows, PublicRows, SampledRows

__all__ = [
    "DPApprEM",
    "DPApprEMValues",
    "DPApprGM",
    "GivenRows",
    "NoisyRows",
    "PlainRows",
    "PublicRows",
    "SampledRows",
    "SelectedValues",
    "entry_epsilon",
    "ista",
    "kkt_residual",
    "lazy",
    "power_iteration",
    "row_epsilon",
    "share_of_row",
]
