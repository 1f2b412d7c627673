"""Statements on the published code of Daigavane et al. (2021, arXiv:2111.15521); its theorem is with the baselines."""

from auditdp.record.results import Verdict
from audits.ledger.statements import Kind, Paper, Parameter, Settled, Statement

NODES = "audits/audit_node_level.py::"
TESTS = "tests/unit/audits/test_counterexamples_newer.py::"
CODE = "google-research, differentially_private_gnns at 076b2cc7, "
REMOVED = "Two graphs, one of which lacks a node with all its edges."

STATEMENTS = (
    Statement(
        key="sage-code-replacement",
        title="published code: batches drawn with replacement",
        kind=Kind.CODE,
        claim="Training has the ε of batches drawn without replacement, of which a node reaches at most K + 1.",
        place=CODE
        + "jax.random.choice in train.py, multiterm_dpsgd_privacy_accountant in privacy_accountants.py",
        adjacency=REMOVED,
        audits=(NODES + "sage_with_replacement",),
        scope="one step on a batch as large as the graph, 6 nodes of which one reaches 2, λ = 1",
        setting=(
            "the published configuration (K = 5, λ = 2, batches of 10,000, 3,000 steps; N = 90,941 for ogbn-arxiv) is not "
            "refuted: the accountant says 33.8 at δ = 1/(10N), and batches drawn with replacement lose at least 18.2"
        ),
        instead="the accountant's ε where the draw is without replacement, which one argument does.",
        reconsider="an accountant for draws with replacement that gives no more",
    ),
    Statement(
        key="sage-code-threshold",
        title="published code: clipping threshold from the data",
        kind=Kind.CODE,
        claim="Noise in proportion to the 75th percentile of the private gradients' norms costs nothing.",
        place=CODE
        + "estimate_clipping_thresholds in train.py, dp_aggregate in optimizers.py",
        adjacency="Two sets of gradients of five nodes that differ in one.",
        audits=(NODES + "sage_threshold",),
        output="whether a noisy sum is more than 4 from 0",
        scope="five gradients of one number each, one of which decides the percentile",
        setting="the percentile is taken once, of 10,000 training nodes: one node moves it where norms have a gap there",
        instead="a public threshold, or a percentile that is paid for.",
        reconsider="a sentence that says that the thresholds are public",
    ),
    Statement(
        key="sage-code-sampler",
        title="published code: sampler and its degrees",
        kind=Kind.CODE,
        claim="Adding or removing a node changes at most K + 1 gradients of one-layer training.",
        place=CODE
        + "sample_adjacency_lists in sampler.py, compute_max_terms_per_node in train.py",
        adjacency=REMOVED,
        settled=Settled(
            Verdict.VIOLATED,
            "6 → at least 44 on average",
            "An edge into v is kept with probability K/(2·in-degree of v), so that a node without which v has fewer "
            "in-neighbours changes the subgraphs of all others that point to v, however the randomness is paired. With K "
            "= 5 and 100 neighbours of in-degree 6, whose other in-neighbours are 500 further nodes, each of these 500 "
            "keeps its edge with probability .411 with the node and .5 without.",
            TESTS + "test_a_removed_node_changes_more_subgraphs_than_its_own",
        ),
        instead="a probability that does not depend on the degree, or a sampler whose order is public.",
        reconsider="a coupling of the two samples in which no more than K + 1 subgraphs differ",
    ),
)

PAPER = Paper(
    key="daigavane",
    title="Code review of SAGE-DP: Daigavane et al. 2021, arXiv:2111.15521",
    read=(
        "Read: the abstract of v3; the JAX code of google-research/differentially_private_gnns at 076b2cc7 and 4c429948, "
        "which says that it differs from the one of the paper's results: train.py, optimizers.py, privacy_accountants.py, "
        "sampler.py, input_pipeline.py, configs/dpgcn.py. Theorem 1 is audited with the baselines; its text was not read "
        "again."
    ),
    statements=STATEMENTS,
    parameters={
        "delta": Parameter("δ", "claimed δ", "1/(10N)"),
        "noise": Parameter("λ", "noise over the sensitivity of the sum", ".5 to 4"),
        "base": Parameter(
            "b", "how many thresholds the sum can move by", "2(K + 1) = 12"
        ),
        "limit": Parameter("limit", "where the noisy sum is told apart"),
        "epsilon": Parameter("ε", "at which the claimed curve is compared"),
    },
)
