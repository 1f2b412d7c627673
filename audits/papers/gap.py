"""Statements on GAP's published code (Sajadmanesh et al. 2023, arXiv:2203.00949); its accounting is with the baselines."""

from audits.ledger.statements import Kind, Paper, Parameter, Statement

GRAPHS, DEPLOYED = (
    "audits/audit_trainers_graphs.py::",
    "audits/audit_trainers_deployed.py::",
)
CODE = "sisaman/GAP, "
REMOVED = "Two graphs, one of which lacks a node with all its edges."
BOUNDED = "the same noise in a graph whose degrees are D at most by themselves, so that no arc is displaced."

STATEMENTS = (
    Statement(
        key="gap-undirected",
        title="edge level, noise for one arc",
        kind=Kind.AMBIGUOUS,
        claim="A noisy sum over neighbours with noise λ has 1/λ-Gaussian DP for an edge of an undirected graph.",
        place=CODE
        + "gap_edp.py at 16aa46c5: sensitivity=1, on graphs that list each edge in both directions",
        adjacency="Two undirected graphs that differ in one edge.",
        audits=(GRAPHS + "gap_edge_as_one_arc",),
        scope="one hop, two nodes with so many leaves",
        setting="an edge-level claim about one arc of a directed graph is true (base-gap-edge)",
        instead="sensitivity √2, which is tight.",
        cost="twice the variance of the noise",
        reconsider="a sentence that neighbours differ in one arc, so that an undirected edge costs more",
    ),
    Statement(
        key="gap-sampler",
        title="node level, arcs sampled, sensitivity √D",
        kind=Kind.CODE,
        claim=(
            "Sums of rows of norm 1 over arcs that are sampled, D of each node at most, change by √D for a node, and noise "
            "λ√D on them is 1/λ-Gaussian DP."
        ),
        place=CODE
        + "BoundOutDegree in bound_degree.py at 3caef787, sensitivity=np.sqrt(max_degree) in gap_ndp.py",
        adjacency=REMOVED,
        audits=(GRAPHS + "gap_node_arcs", GRAPHS + "gap_node_displaced"),
        output="the rows of the other nodes after one hop",
        scope="one hop, D = 1; the node's own row is left out",
        setting=(
            "D is 100 by default. A sampler that fills D places from the arcs that there are takes an arc to somebody else "
            "from each of the node's neighbours that have D others"
        ),
        instead=BOUNDED,
        cost="noise for the largest degree that there can be, or edges dropped by a rule that looks at no other edge",
        reconsider="a coupling of the two samples in which no more than D sums differ",
    ),
    Statement(
        key="gap-sage-node",
        title="SAGE at node level, arcs sampled",
        kind=Kind.CODE,
        claim=(
            "DP-SGD on means over neighbours, on sampled arcs, K of each node, has the node-level privacy of K + 1 "
            "gradients that change by 2C each."
        ),
        place=CODE
        + "sage_ndp.py at 16aa46c5 and GNNBasedNoisySGD in gnn_sgd.py at 401fc0f7, after Daigavane et al. 2021",
        adjacency=REMOVED,
        audits=(
            GRAPHS + "sage_node_arcs",
            GRAPHS + "sage_node_displaced",
            DEPLOYED + "sage_model",
        ),
        output="the noised sum of a step, or the weights of neighbours' features after it",
        scope="one step on all nodes, K = 1, by this repository's sampler of out-arcs",
        setting=(
            "max_degree is 100 by default; the code's sampler keeps edges in random order while both ends have room, and "
            "fills places as well"
        ),
        instead=BOUNDED,
        cost="noise for the largest degree that there can be",
        reconsider="a coupling of the two samples in which no more than K + 1 gradients differ",
    ),
    Statement(
        key="gap-sage-batches",
        title="Poisson batches accounted as of fixed size",
        kind=Kind.CODE,
        claim="Poisson batches have the Rényi losses of batches drawn without replacement, by the hypergeometric law.",
        place=CODE + "poisson_sampling = True in sage_ndp.py, hypergeom in gnn_sgd.py",
        adjacency=REMOVED,
        unaudited=(
            "how many of K + 1 gradients are in a Poisson batch is binomial, which spreads a little more; by how much "
            "ε grows was not computed"
        ),
    ),
)

PAPER = Paper(
    key="gap",
    title="Code review of GAP: Sajadmanesh et al. 2023, arXiv:2203.00949",
    read=(
        "Read: the abstract, and of the code sisaman/GAP gap_inf.py, gap_edp.py, gap_ndp.py, sage_ndp.py, pma.py, "
        "gnn_sgd.py, noisy_sgd.py, bound_degree.py, sampler.cpp and the loading of data sets, each at one commit. Not "
        "read: definitions, theorems and proofs, so that nothing here says what they claim."
    ),
    statements=STATEMENTS,
    parameters={
        "sigma": Parameter("λ", "noise over the sensitivity"),
        "noise": Parameter("λ", "noise over the sensitivity of the sum"),
        "leaves": Parameter("leaves", "further neighbours of a node"),
        "count": Parameter(
            "count",
            "neighbours of the node that is there or not",
            "100 and more in its data sets",
        ),
        "epsilon": Parameter("ε", "claimed budget in nats"),
        "delta": Parameter("δ", "claimed δ"),
    },
)
