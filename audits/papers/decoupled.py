"""Statements of Chien et al. (2023), NeurIPS 2023 (arXiv:2307.06422): graph differential privacy (GDP) and DPDGC."""

from audits.ledger.statements import Kind, Paper, Parameter, Statement

PASSING, NODES = "audits/audit_message_passing.py::", "audits/audit_node_level.py::"
CODE = "thupchnsky/dp-gnn at 6ea28473, "
REPLACED = "Two graphs in which one node has other edges, D at most; the rows of the other nodes are compared."
NOT_READ = "the definitions and the theorem were not in what could be read"

STATEMENTS = (
    Statement(
        key="dpdgc-embedding",
        title="noise of the embedding, rows scaled to s",
        kind=Kind.CODE,
        claim="Noise λ·s·√(2D) on A·W, whose rows of W have norm s, makes the embedding 1/λ-Gaussian DP.",
        place=CODE + "perturb in dpdgc_ndp.py and its comment, which says √(2D)",
        adjacency=REPLACED,
        audits=(PASSING + "dpdgc_embedding",),
        scope="any D and any numbers of nodes; computed on all pairs of 4 others with D = 2",
        proof="At most 2D rows change, each by one row of W; tight where old and new neighbours are disjoint.",
    ),
    Statement(
        key="dpdgc-unscaled",
        title="published code: rows of W are not scaled",
        kind=Kind.CODE,
        claim="The embedding of the code, with --norm-scale 1e-8, is 1/λ-Gaussian DP.",
        place=CODE
        + "forward and predict of AdjEncoderModule in em.py, which assign to state_dict()['weight']",
        adjacency=REPLACED,
        audits=(PASSING + "dpdgc_embedding_unscaled",),
        output="the rows of the others along the node's row of W",
        scope="4 others, D = 2, a row of W of norm .03; in proportion to the norm at any size",
        setting=(
            "state_dict() returns a new dictionary, so that the assignment changes no weight. Rows of norm .03 with "
            "noise for 1e-8 are 3,000,000/λ-Gaussian DP: the embedding is released all but in the clear"
        ),
        instead="the same noise where W itself is scaled before A·W is computed.",
        reconsider="a run that shows weights of norm 1e-8 in predict()",
    ),
    Statement(
        key="dpdgc-encoder",
        title="published code: noise for √(D+1) rows",
        kind=Kind.CODE,
        claim=(
            "Encoder training with noise λ·2C√(D+1) on sums of gradients clipped at C loses, for a replaced node, what "
            "one record loses at noise λ·2C."
        ),
        place=CODE
        + "configure_adj_encoder_optimizer in dpdgc_ndp.py: 'at most max_degree+1 row changes'",
        adjacency=REPLACED,
        audits=(NODES + "dpdgc_encoder",),
        scope="the model of the accounting: any clipped gradients, for the numbers on the card",
        setting=(
            "D = 100, batches of 256 and δ = 1e-5 are the scripts'; N = 10,240 and 10 epochs are ours (theirs: 100). "
            "Gradients of a batch add up along one direction, so that the sum changes by the number of rows, not by its "
            "root; and up to 2D + 1 rows change, not D + 1"
        ),
        instead="node-level accounting of 2D + 1 rows with noise λ·2C(2D + 1).",
        reconsider="a bound on sums of gradients of several rows that grows with the root of their number",
    ),
    Statement(
        key="dpdgc-linear",
        title="graph convolutions need noise linear in the degree",
        kind=Kind.PUBLISHED,
        claim="Graph convolutions need noise that grows at least linearly with the maximum degree, and DPDGC does not.",
        place="Abstract",
        unaudited=NOT_READ,
    ),
    Statement(
        key="dpdgc-gdp",
        title="DPDGC satisfies graph differential privacy",
        kind=Kind.PUBLISHED,
        claim="Both model and predictions of DPDGC are private, with a separate trade-off for topology and attributes.",
        place="Abstract",
        unaudited=NOT_READ,
    ),
)

PAPER = Paper(
    key="decoupled",
    title="Code review of GDP and DPDGC: Chien et al. 2023, arXiv:2307.06422",
    read=(
        "Read: the abstract; of the code thupchnsky/dp-gnn at 6ea28473 dpdgc_ndp.py, dpdgc_kndp.py, dpdgc_edp.py, "
        "dpdgc_inf.py, em.py, noisy_sgd.py, pma.py and the scripts. Not read: definitions, theorems and proofs."
    ),
    statements=STATEMENTS,
    parameters={
        "noise": Parameter(
            "λ",
            "noise over the sensitivity of the code",
            "calibrated to ε = 16 in the scripts",
        ),
        "norm_scale": Parameter(
            "s", "norm that rows of W are said to have", "1e-8 in the scripts"
        ),
        "max_degree": Parameter(
            "D", "largest number of sampled neighbours", "100 in the scripts"
        ),
        "others": Parameter("others", "how many other nodes there are"),
        "weight": Parameter(
            "‖w‖", "norm of the node's row of W", "√(64/(3n)) at its initialisation"
        ),
        "delta": Parameter("δ", "claimed δ", "a power of ten below 1/N"),
    },
)
