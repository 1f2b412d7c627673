"""Statements of the papers that the five compare themselves with, or rest on."""

from auditdp.record.results import Verdict
from audits.ledger.statements import Kind, Paper, Parameter, Settled, Statement

EDGES, NUMERIC = "audits/audit_edges.py::", "audits/audit_numeric.py::"
TREE, RELEASE = (
    "audits/audit_hierarchy_dendrogram.py::",
    "audits/audit_hierarchy_release.py::",
)
GRAPHS = "audits/audit_trainers_graphs.py::"
ACCOUNTS = "audits/audit_accounting_baselines.py::"
LIBRARIES = "audits/audit_accounting_libraries.py::"
TESTS = "tests/unit/audits/test_counterexamples_dpar.py::"
CHAINS = "tests/unit/audits/test_alternating_moves.py::"
EDGE = "Two undirected graphs on the same nodes that differ in one edge."
NUMBER = "Any two numbers of [−1, 1]."
VECTOR = "Any two records of numbers of [−1, 1]."
RECORD = "Two data sets, one of which lacks a record."
ALL_NUMBERS = "all numbers of [−1, 1], at the ε on the card"
FIVE_PAPERS = "Duchi et al. 2018; Wang et al. 2019, arXiv:1907.00782; Zhao et al. 2020, arXiv:2004.08856"
FIVE = ("duchi", "piecewise", "pm_sub", "hybrid", "three_output")

STATEMENTS = (
    Statement(
        key="base-edgerand",
        title="EdgeRand, ε-edge DP",
        kind=Kind.LIBRARY,
        claim="Replacing each pair by a fair coin with probability 2/(e^ε + 1) provides ε-edge DP.",
        place="Wu et al. 2022 (LinkTeller), arXiv:2108.06504",
        adjacency=EDGE,
        audits=(EDGES + "edge_rand",),
        scope="all numbers of nodes; computed for 4",
        proof="It is Warner's response on each pair: kept with e^ε/(e^ε + 1).",
    ),
    Statement(
        key="base-lapgraph",
        title="LapGraph, ε-edge DP",
        kind=Kind.LIBRARY,
        claim="A noisy edge count (.01ε) and the T largest noisy cells (.99ε) provide ε-edge DP.",
        place="Wu et al. 2022 (LinkTeller), arXiv:2108.06504",
        adjacency=EDGE,
        audits=(EDGES + "lap_graph", EDGES + "lap_graph_deployed"),
        scope="all numbers of nodes; computed for 4",
        proof="Two Laplace mechanisms of sensitivity 1 compose; the selection is post-processing.",
    ),
    Statement(
        key="base-hrg-stationary",
        title="privHRG, ε₁ + ε₂",
        kind=Kind.LIBRARY,
        claim="The graph of privHRG is (ε₁ + ε₂)-edge DP, its dendrogram drawn from the stationary law of its chain.",
        place="Xiao, Chen & Tan 2014, KDD",
        adjacency=EDGE,
        audits=(TREE + "privhrg_dendrogram", RELEASE + "privhrg"),
        scope=(
            "all numbers of nodes, with one draw for a pooled subtree; computed for 4: .471 for the dendrogram at ε₁ = 1, "
            "and .965 of 2 for the graph at ε₁ = ε₂ = 1 with thresholds that pool nothing"
        ),
        proof=(
            "The stationary law is the exponential mechanism for log L with its exact sensitivity; every edge is in "
            "one noisy count."
        ),
    ),
    Statement(
        key="base-hrg-finite",
        title="privHRG, finitely many steps",
        kind=Kind.IMPLIED,
        claim=(
            "After finitely many steps from a random start the dendrogram is still ε₁-edge DP, and the graph ε₁ + ε₂."
        ),
        place="Xiao, Chen & Tan 2014, KDD, which runs the chain until it has converged",
        adjacency=EDGE,
        audits=(
            TREE + "privhrg_dendrogram_uniform_start",
            TREE + "privhrg_dendrogram_enough_steps",
            RELEASE + "privhrg_many_steps",
        ),
        scope=(
            "4 nodes. The dendrogram after one step from a random start and 12 from a public one; the graph after 30 from a "
            "public one, with thresholds that pool nothing. After any number of steps from a random start the dendrogram "
            "keeps ε₁ = .1, 1 and 5 ("
            + CHAINS
            + "test_a_random_start_keeps_epsilon_after_any_number_of_steps), and so the graph keeps ε₁ + ε₂. Larger graphs "
            "are not covered"
        ),
    ),
    Statement(
        key="base-hrg-few-steps",
        title="privHRG, few steps from a public start",
        kind=Kind.DERIVED,
        claim="After one to three steps from a public dendrogram the dendrogram is ε₁-edge DP, and the graph ε₁ + ε₂.",
        place="a reading that the paper does not make: it starts at random and runs until the chain has converged",
        adjacency=EDGE,
        audits=(
            TREE + "privhrg_dendrogram_one_step",
            TREE + "privhrg_dendrogram_few_steps",
            RELEASE + "privhrg_one_step",
        ),
        output="for each pair of leaves how many leaves their lowest common ancestor has below it; of a graph, its edges",
        scope=(
            "3 and 4 nodes, thresholds that pool nothing; after four steps 4 nodes keep it at ε₁ = .1, and from a random "
            "start after any number (base-hrg-finite)"
        ),
        instead="a random start, drawn anew for each release, or more steps (base-hrg-finite).",
    ),
    Statement(
        key="base-hrg-thresholds",
        title="privHRG with its thresholds, 4 nodes",
        kind=Kind.DERIVED,
        claim="With the printed thresholds the graph of 4 nodes is (ε₁ + ε₂)-edge DP after any number of steps.",
        place="CalculateNoisyProb, τ₁ = .05, τ₂ = .01",
        adjacency=EDGE,
        audits=(RELEASE + "privhrg_pooled",),
        scope=(
            "up to 9 nodes at ε₂ = 1: all is pooled at the root, and the dendrogram is not used; says nothing of "
            "larger graphs"
        ),
    ),
    Statement(
        key="base-numeric-private",
        title="numeric mechanisms, ε-LDP",
        kind=Kind.LIBRARY,
        claim="Duchi, Piecewise, PM-SUB, Hybrid and Three-output provide ε-LDP for a number of [−1, 1].",
        place=FIVE_PAPERS,
        adjacency=NUMBER,
        audits=(
            *(NUMERIC + name for name in FIVE),
            NUMERIC + "hybrid_small",
            NUMERIC + "three_output_small",
            NUMERIC + "three_output_large",
        ),
        scope=ALL_NUMBERS,
    ),
    Statement(
        key="base-numeric-unbiased",
        title="numeric mechanisms, unbiased",
        kind=Kind.LIBRARY,
        claim="The five numeric mechanisms are unbiased.",
        place=FIVE_PAPERS,
        audits=tuple(f"{NUMERIC}{name}_unbiased" for name in FIVE),
        scope="the inputs −1, −.6, 0, .25 and 1 at ε = 1, each mean within .1",
    ),
    Statement(
        key="base-numeric-variance",
        title="numeric mechanisms, variance",
        kind=Kind.LIBRARY,
        claim="Their worst-case variances are those of the closed forms of their papers.",
        place=FIVE_PAPERS,
        audits=tuple(f"{NUMERIC}{name}_variance" for name in FIVE),
        scope=(
            "ε = 1; the inputs −1, 0 and one at which the closed form is largest, up to a twentieth above it"
        ),
    ),
    Statement(
        key="base-numeric-records",
        title="records: ε/r for each feature",
        kind=Kind.IMPLIED,
        claim=(
            "With ε/r on each of r features, or ε/k on k sampled ones, each of the five provides ε-LDP for the record."
        ),
        place="Wang et al. 2019, Section IV and Algorithm 4; baselines of HeteroRR",
        adjacency=VECTOR,
        audits=(
            *(f"{NUMERIC}every_feature_{name}" for name in FIVE),
            NUMERIC + "sampled_one",
            NUMERIC + "sampled_two",
        ),
        scope="2 to 4 features at the ε on the card; any number by basic composition",
        proof="Features are released independently, and losses add; which are sampled does not depend on them.",
    ),
    Statement(
        key="base-numeric-sampled",
        title="sampled features, unbiased",
        kind=Kind.LIBRARY,
        claim="k of d sampled features, scaled by d/k, estimate every feature without bias.",
        place="Wang et al. 2019, Algorithm 4",
        audits=(NUMERIC + "sampled_unbiased",),
        scope="two of three features at ε = 5, whose first is −1, .4 or 1; each mean within .1",
    ),
    Statement(
        key="base-laplace",
        title="Laplace on features",
        kind=Kind.LIBRARY,
        claim="Laplace noise of scale 2r/ε on each of r features provides ε-LDP.",
        place="Dwork, McSherry, Nissim & Smith 2006",
        adjacency=VECTOR,
        audits=(NUMERIC + "laplace_feature", NUMERIC + "laplace_features"),
        scope="all numbers of [−1, 1], 1 and 4 features",
    ),
    Statement(
        key="base-gaussian",
        title="analytic Gaussian on features",
        kind=Kind.LIBRARY,
        claim="The analytic σ for sensitivity 2√d provides (ε, δ)-LDP for d features.",
        place="Balle & Wang 2018, arXiv:1805.06530, Theorem 8",
        adjacency=VECTOR,
        audits=(NUMERIC + "gaussian_features",),
        scope="all records of 4 features",
    ),
    Statement(
        key="base-gap-edge",
        title="GAP, edge level",
        kind=Kind.LIBRARY,
        claim=(
            "h aggregations of rows of norm 1 with noise N(0, σ²) are (ε, δ)-DP for one directed edge, with ε = h/(2σ²) + "
            "√(2h ln(1/δ))/σ."
        ),
        place="Sajadmanesh et al. 2023 (GAP), arXiv:2203.00949, edge level",
        adjacency="Two directed graphs that differ in one edge: an edge added or removed.",
        audits=(ACCOUNTS + "gap_edge",),
        scope="the model of the accounting, two hops",
    ),
    Statement(
        key="base-gap-node",
        title="GAP, node level",
        kind=Kind.LIBRARY,
        claim=(
            "h aggregations of rows of norm 1 with noise N(0, σ²), a node in at most D sums of each, are (ε, δ)-DP for a "
            "node, with ε = hD/(2σ²) + √(2hD ln(1/δ))/σ."
        ),
        place="Sajadmanesh et al. 2023 (GAP), arXiv:2203.00949, node level",
        adjacency="Two graphs, one of which lacks a node; the rows of all others are compared.",
        audits=(ACCOUNTS + "gap_node",),
        scope="the model of the accounting, for graphs whose degrees are bounded already, aggregations alone",
        setting="encoder and classifier, DP-SGD over nodes as records, compose with it by adding Rényi losses",
    ),
    Statement(
        key="base-gap-accountants",
        title="accountants of libraries on GAP's numbers",
        kind=Kind.LIBRARY,
        claim="Aggregations of the same noise have the ε of Opacus' PRV accountant and of Rényi accountants at rate 1.",
        place="Opacus 1.6.0, PRVAccountant and RDPAccountant; dp-accounting 0.6.0, RdpAccountant",
        adjacency="Two graphs, one of which lacks a node; the rows of all others are compared.",
        audits=(LIBRARIES + "gap_libraries",),
        scope="the model of the accounting, for the numbers on the card, δ = .001",
        setting=(
            "the loss is 2.053. Opacus' PRV accountant reports 2.064, both Rényi accountants 2.331, and the formula of "
            "base-gap-node has 2.879"
        ),
    ),
    Statement(
        key="base-gap-sampler",
        title="sampling to bound degrees",
        kind=Kind.IMPLIED,
        claim="Sampling at most D out-edges of each node first leaves the sensitivity at √D when one node is removed.",
        place="GAP and Daigavane et al. 2021, whose samplers fill D places from the edges that there are",
        adjacency="Two graphs, one of which lacks a node.",
        settled=Settled(
            Verdict.VIOLATED,
            "D = 1: 1 → 50 on average",
            "Of 100 nodes each has two out-neighbours, v and w, and one place. With v there, about 50 of them send "
            "to w; without v all 100 do. Any sampler that fills places from what is there moves the places of all "
            "in-neighbours.",
            TESTS + "test_a_sampler_that_fills_places_is_not_stable",
        ),
        instead=(
            "a rule that drops an edge without looking at the other edges, or accounting for in-neighbours as well."
        ),
    ),
    Statement(
        key="base-sage",
        title="SAGE, node-level DP-SGD",
        kind=Kind.LIBRARY,
        claim=(
            "T steps whose batches hold ρ of the gradients that a node reaches, ρ hypergeometric, each moved by 2C, "
            "have T times the Rényi loss of one."
        ),
        place=(
            "Daigavane et al. 2021, arXiv:2111.15521, Theorem 1, a Rényi guarantee, as its published code computes it; "
            "its text was not read, and the conversion to (ε, δ) is ours"
        ),
        adjacency="Two graphs in which one node is another; it reaches 21 gradients at most.",
        audits=(ACCOUNTS + "sage_node_level",),
        scope="the model of the accounting, two layers and out-degree 4, for graphs whose degrees are bounded already",
    ),
    Statement(
        key="base-features",
        title="DP-SGD on features",
        kind=Kind.LIBRARY,
        claim="DP-SGD with Poisson batches has the ε of a Rényi accountant.",
        place="Abadi et al. 2016, arXiv:1607.00133v2",
        adjacency=RECORD,
        audits=(ACCOUNTS + "features", GRAPHS + "features_model"),
        output="the weights of the model after one step",
        scope="the model of the accounting, for the numbers on the card, and a training of one step on four nodes",
    ),
    Statement(
        key="base-features-limit",
        title="central limit accountant, as a bound",
        kind=Kind.AMBIGUOUS,
        claim="DP-SGD with finitely many Poisson batches is μ-Gaussian DP with μ = q√(T(e^(1/σ²) − 1)).",
        place=(
            "Opacus' GaussianAccountant, which warns that it can underestimate, after Bu et al. 2020, arXiv:1911.11607, "
            "whose statement is a limit"
        ),
        adjacency=RECORD,
        audits=(ACCOUNTS + "features_central_limit",),
        scope="the model of the accounting, for the numbers on the card",
        instead="privacy loss distributions, which bound ε from both sides.",
    ),
    Statement(
        key="base-features-shuffled",
        title="shuffled batches accounted as Poisson",
        kind=Kind.IMPLIED,
        claim="One epoch of shuffled batches has the ε of Poisson batches of the same size.",
        place="DP-SGD as it is usually deployed; Chua et al. 2024, arXiv:2403.17673v2",
        adjacency="Two data sets, in one of which a record is zeroed out.",
        audits=(ACCOUNTS + "features_shuffled",),
        scope="the model of the accounting, for the numbers on the card",
        instead="no amplification: 1/σ-Gaussian DP for an epoch, nearly tight.",
    ),
)

PAPER = Paper(
    key="baselines",
    title="What the five compare themselves with or rest on",
    read="These papers were not read for this ledger from beginning to end; each statement has its source.",
    statements=STATEMENTS,
    parameters={
        "epsilon": Parameter("ε", "claimed budget in nats"),
        "epsilon1": Parameter("ε₁", "budget of the dendrogram"),
        "epsilon2": Parameter("ε₂", "budget of the noisy counts"),
        "delta": Parameter("δ", "claimed δ"),
        "nodes": Parameter("n", "number of nodes"),
        "steps": Parameter("steps", "steps of the chain, or of training"),
        "dimension": Parameter("r", "number of features"),
        "noise": Parameter("σ", "noise in units of the clipping norm, or s"),
        "width": Parameter("features", "number of features of a node"),
        "hops": Parameter("h", "aggregations"),
        "out_degree": Parameter("D", "most out-edges of a node"),
        "layers": Parameter("layers", "layers of the GNN"),
        "rate": Parameter("q", "rate of Poisson batches"),
        "batches": Parameter("batches", "batches of an epoch"),
    },
    answers=False,
)
