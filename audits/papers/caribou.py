"""Statements of Zheng, Li, Li & Wang (2025), NDSS 2026 (arXiv:2506.22727): CARIBOU."""

from audits.ledger.statements import Kind, Paper, Parameter, Statement

HOPS = "audits/audit_message_passing.py::"
CODE = "yuzhengcuhk/caribou-public at bc7bf38f, "
EDGE = "Two undirected graphs on the same nodes that differ in one edge; features are public."
NOT_READ = "neither theorem nor proof was in what could be read"

STATEMENTS = (
    Statement(
        key="caribou-depth",
        title="the loss converges with the number of hops",
        kind=Kind.PUBLISHED,
        claim=(
            "If hops contract with c, K noisy hops count as at most (1 + c)/(1 − c) of one: as min{K, (1 − c^K)(1 + "
            "c)/((1 + c^K)(1 − c))}."
        ),
        place="Abstract; the formula from " + CODE + "calibrate in caribou_edp.py",
        adjacency="Two inputs between which one hop moves the embedding by at most s.",
        audits=(HOPS + "caribou_depth",),
        scope="the linear hop x ← cx + s, which attains it, and the last hop alone; no other map that contracts",
        setting=(
            "at the code's default c = .9 the limit is 19 hops: 10 hops count as 9.2 and 2 as 2. Where all hops are "
            "released, as GAP's classifier reads them, K hops count as K, and the audit's control shows it"
        ),
    ),
    Statement(
        key="caribou-code-last",
        title="published code: an aggregation after the noise",
        kind=Kind.CODE,
        claim="The embedding that the classifier is trained on has the guarantee of the noise of its hops.",
        place=CODE
        + "compute_aggregations in caribou_inf.py: the loop's last line, and torch.stack([x])",
        adjacency=EDGE,
        audits=(HOPS + "caribou_embedding",),
        output="how many nodes have an embedding whose features are all equal",
        scope="one hop, two features, 2 nodes, default constants and fill_degree 0; any isolated node of any graph",
        setting=(
            "every hop ends so, at any depth: a node without neighbours is left with the mean of its own features, "
            "and one with neighbours is not. ε = ∞ for whoever sees the embedding, whatever the noise"
        ),
        instead="the noisy hop itself: 1/λ-Gaussian DP, which holds with room.",
        reconsider="a version of the code in which the noise comes last",
    ),
    Statement(
        key="caribou-edge-sensitivity",
        title="sensitivity of a hop to an edge",
        kind=Kind.CODE,
        claim=(
            "An edge changes a hop by at most √2 cα₁(1/((D+1)(D+2)) + C/√(D+1) + 1/√((D+1)(D+2))), D being the least degree."
        ),
        place=CODE
        + "_aggregate in caribou_edp.py, whose comment calls it the paper's default case",
        adjacency=EDGE,
        unaudited=(
            NOT_READ
            + ", and the code reads D off the private graph, so that neighbours may have different noise; the "
            "line above uses its value at D = 0, which covers all pairs of 4 nodes with equal features"
        ),
    ),
    Statement(
        key="caribou-node",
        title="node-level privacy",
        kind=Kind.PUBLISHED,
        claim="The same holds for a node, with a sensitivity that depends on the bound of its degree.",
        place="Abstract; " + CODE + "caribou_ndp.py",
        unaudited=NOT_READ,
    ),
    Statement(
        key="caribou-auditing",
        title="privacy auditing module",
        kind=Kind.PUBLISHED,
        claim="CARIBOU achieves superior performance in privacy auditing tasks.",
        place="Abstract",
        unaudited="an experiment with attacks; " + NOT_READ,
    ),
)

PAPER = Paper(
    key="caribou",
    title="Code review of CARIBOU: Zheng, Li, Li & Wang 2025, arXiv:2506.22727",
    read=(
        "Read: abstract and introduction's beginning of arXiv v1 and v3; of the code yuzhengcuhk/caribou-public at "
        "bc7bf38f caribou_inf.py, caribou_edp.py, caribou_ndp.py, boundpma.py and commons.py. Not read: theorems and proofs."
    ),
    statements=STATEMENTS,
    parameters={
        "lipschitz": Parameter(
            "c", "Lipschitz constant of a hop", ".9 by default in the code"
        ),
        "sensitivity": Parameter(
            "s", "how far one hop moves the embedding between neighbours"
        ),
        "sigma": Parameter("σ", "standard deviation of the noise of a hop"),
        "hops": Parameter("K", "number of hops", "2 by default in the code"),
        "noise": Parameter("λ", "noise of a hop over the sensitivity of the code"),
        "nodes": Parameter("n", "number of nodes"),
    },
)
