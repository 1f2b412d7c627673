"""Statements of Xiang, Wang & Wang (2023), S&P 2024 (arXiv:2311.06888): HeterPoisson."""

from audits.ledger.statements import Kind, Paper, Parameter, Statement

NODES = "audits/audit_node_level.py::"
CODE = "zihangxiang/PNPiGNNs, "
NOT_READ = "its text was not in what could be read"

STATEMENTS = (
    Statement(
        key="heter-sml",
        title="published code of v1: Laplace noise on vectors",
        kind=Kind.CODE,
        claim=(
            "Symmetric multivariate Laplace noise of standard deviation σ on a vector that changes by Δ loses what Laplace "
            "noise of scale σ/√2 loses on a number: √2Δ/σ."
        ),
        place=(
            "v1, abstract (the noise); "
            + CODE
            + "at 805abe43, from_rdp_to_dp in mix.py and other_routine in "
            "train_scheduler.py"
        ),
        adjacency="Two vectors of three coordinates that are 1 apart.",
        audits=(NODES + "symmetric_laplace",),
        output="whether the noisy vector is within .2 of the first input",
        scope="three coordinates, σ = √2, Δ = 1; more coordinates lose more",
        setting=(
            "gradients have thousands of coordinates, which show the one exponential number that scales all noise: "
            "in the limit δ(1) is .187 at σ = √2 and Δ = 1, where the code's accounting has 0. The second version of the "
            "paper replaces this noise by Gaussian noise"
        ),
        instead="√2Δ/σ in one dimension; Gaussian noise, as in v2, in any.",
        reconsider="nothing: the second version made the same change",
    ),
    Statement(
        key="heter-mixture",
        title="HeterPoisson as a mixture of Gaussians",
        kind=Kind.PUBLISHED,
        claim="HeterPoisson's privacy guarantee is that of a mixture of Gaussians.",
        place="v2, abstract; " + CODE + "at 5786ca85, mix.py, which names Theorem 2",
        unaudited=(
            NOT_READ
            + ". The code at 5786ca85 differs from the mixture that mix.py describes: a sampled root is removed "
            "from later subgraphs of the batch only, each of K rounds draws neighbours again and one round is counted, and "
            "a root without neighbours draws any nodes"
        ),
    ),
    Statement(
        key="heter-impossible",
        title="private node embeddings: privacy or utility",
        kind=Kind.PUBLISHED,
        claim="Private instance embedding cannot have strong privacy and acceptable utility, and GAP has privacy flaws.",
        place="Abstract",
        unaudited=(
            NOT_READ
            + "; what this ledger finds of GAP (a replaced node, an undirected edge) is with the baselines"
        ),
    ),
    Statement(
        key="heter-audit",
        title="attacks and audits",
        kind=Kind.PUBLISHED,
        claim="Membership inference and privacy audits confirm the protocol's privacy.",
        place="Abstract",
        unaudited="experiments with attacks, which confirm no upper bound",
    ),
)

PAPER = Paper(
    key="heterpoisson",
    title="Code review of HeterPoisson: Xiang, Wang & Wang 2023, arXiv:2311.06888",
    read=(
        "Read: the abstracts of v1 and v2, which differ (symmetric multivariate Laplace noise, then Gaussian noise); of the "
        "code zihangxiang/PNPiGNNs mix.py, sampling.py, train_scheduler.py, accounting_analysis.py and utils.py at 805abe43 "
        "and 5786ca85. Not read: theorems, proofs, the case against node embeddings."
    ),
    statements=STATEMENTS,
    parameters={
        "sigma": Parameter(
            "σ", "standard deviation of a coordinate of the noise, over the change Δ"
        ),
        "change": Parameter("Δ", "how far neighbours are apart"),
        "radius": Parameter(
            "ρ", "radius of the ball in which the noisy vector is looked for"
        ),
    },
)
