"""Statements of Zhang et al. (2025), KDD 2025 (arXiv:2501.02354): PrivDPR."""

from audits.ledger.statements import Kind, Paper, Parameter, Statement

NODES = "audits/audit_node_level.py::"
CODE = "sunnerzs/PrivDPR at 5ee37165, PrivDPR.py"
NOT_READ = "neither theorem nor proof was in what could be read"

STATEMENTS = (
    Statement(
        key="privdpr-noise",
        title="published code: noise of all steps",
        kind=Kind.CODE,
        claim=(
            "If layers make the sensitivity of a step S/T, T steps with noise √(2 ln(1.25T/δ))·S/ε are (ε, δ)-DP together, "
            "and no budget is split."
        ),
        place=CODE + ", Gau_Noise and its comment, which names Equation 13; abstract",
        adjacency="Any two inputs between which the gradient of a step changes by at most S/T.",
        audits=(NODES + "privdpr_noise",),
        scope="all gradients of that sensitivity, for the numbers on the card; whether it is S/T is not covered",
        proof=(
            "T Gaussian releases are one of μ = ε/√(2T ln(1.25T/δ)): each is (ε/T, δ/T)-DP by the classic formula, which is "
            "loose by about √T here."
        ),
    ),
    Statement(
        key="privdpr-sensitivity",
        title="layers bound the sensitivity",
        kind=Kind.PUBLISHED,
        claim="Weight normalisation makes the sensitivity of the gradient fall with the number of layers.",
        place="Abstract",
        unaudited=(
            NOT_READ
            + ". In the code one step of power iteration estimates the norm from below, so that a normalised weight "
            "may be longer than 1, and the bound on which the number of layers rests is on a gradient, not on a difference"
        ),
    ),
    Statement(
        key="privdpr-graph",
        title="the synthetic graph is node-level DP",
        kind=Kind.PUBLISHED,
        claim="The synthetic graph satisfies node-level differential privacy.",
        place="Abstract",
        unaudited=NOT_READ,
    ),
    Statement(
        key="privdpr-code-training",
        title="published code: training is not run",
        kind=Kind.CODE,
        claim="The published script trains the embeddings from which it draws the graph.",
        place=CODE + ", train",
        unaudited=(
            "code that is not run here: the line with train_op is commented out, and two values are taken of the one that "
            "train returns"
        ),
    ),
)

PAPER = Paper(
    key="privdpr",
    title="Code review of PrivDPR: Zhang, Hu, Ye & Xu 2025, arXiv:2501.02354",
    read=(
        "Read: abstract and introduction's beginning of arXiv v1; of the code sunnerzs/PrivDPR PrivDPR.py at 5ee37165 and "
        "1daabf55. Not read: definitions, theorems and proofs."
    ),
    statements=STATEMENTS,
    parameters={
        "epsilon": Parameter(
            "ε", "claimed budget in nats", ".1 by default in the code"
        ),
        "delta": Parameter("δ", "claimed δ", "1e-5 in the code"),
        "steps": Parameter("T", "number of steps", "n/16 in the code"),
        "clip": Parameter("S", "sensitivity of a step times T", "5 in the code"),
    },
)
