"""Statements of Zhu, Tan & Xiao (2023), CCS 2023 (arXiv:2309.03190): Blink."""

from auditdp.record.results import Verdict
from audits.ledger.statements import Kind, Paper, Parameter, Settled, Statement

LINKS = "audits/audit_link_ldp.py::"
TESTS = "tests/unit/audits/test_counterexamples_newer.py::"
LIST = "Two neighbour lists of one user that differ in one bit."
LINK = (
    "Two undirected graphs that differ in one link, which is in the lists of two users."
)
CODE = "zhxchd/Blink_GNN at 947ec30c, "
NOT_READ = "the theorem and its proof were not in what could be read"

STATEMENTS = (
    Statement(
        key="blink-message",
        title="one user's message, ε-link LDP",
        kind=Kind.PUBLISHED,
        claim="A budget that is spent separately on links and degree gives ε-link local differential privacy.",
        place="Abstract; " + CODE + "src/blink/client.py",
        adjacency=LIST,
        audits=(LINKS + "blink_message",),
        output="the noisy bits, then the cell of the noisy degree; −1 is below 0",
        scope="all lengths of lists; computed for all pairs of lists of 2 bits",
        proof="The degree has sensitivity 1, the list one bit that changes; two independent steps compose.",
    ),
    Statement(
        key="blink-link",
        title="an undirected link at ε",
        kind=Kind.AMBIGUOUS,
        claim="The messages of all users hide the existence of any link with ε.",
        place="Abstract: 'without revealing the existence of any link'",
        adjacency=LINK,
        audits=(LINKS + "blink_link",),
        output="for each user the noisy bit and the cell of the noisy degree; −1 is below 0",
        scope="2 users; both ends of a link report it, in any graph",
        setting="the ε of the experiments are 1 to 8, and a link between two users loses 2 to 16",
        instead="2ε for a link, tight; ε for what one user says of it.",
        cost="none where ε is said to be that of a list",
        reconsider="a sentence that says that the graph is directed, or that ε is that of one list",
    ),
    Statement(
        key="blink-search",
        title="published code: grid search on fresh messages",
        kind=Kind.CODE,
        claim="The messages that the server receives while it searches for δ and learning rates are ε-link LDP.",
        place=CODE
        + "scripts/run_blink.py and config.json: 128 settings, each with 5 new clients",
        adjacency="Two directed graphs of two users that differ in one bit of one list.",
        audits=(LINKS + "blink_search",),
        output="for each run and user the noisy bit and the cell of the noisy degree",
        scope="2 users and 2 runs; k runs lose kε, at any number of users",
        setting="128 settings × 5 runs and 30 more at the best: 670ε for every ε of the figures, if every run is sent",
        instead="one set of messages for the whole search (post-processing), or ε/k for each of k.",
        reconsider="a sentence that says that the search is not part of the protocol that is claimed to be private",
    ),
    Statement(
        key="blink-posterior",
        title="the server's posterior",
        kind=Kind.CODE,
        claim="The server's probability of a link is Bayes' formula for two independently flipped bits and its prior.",
        place="Abstract ('Bayesian estimation'); "
        + CODE
        + "estimate_posterior in src/blink/server.py",
        settled=Settled(
            Verdict.CERTIFIED,
            "equal for all three numbers of ones",
            "The code's three quadratic polynomials in the number of ones are p², p(1 − p) and (1 − p)² at 0, 1 and 2.",
            TESTS + "test_the_posterior_of_blink_is_that_of_bayes",
        ),
    ),
    Statement(
        key="blink-mae",
        title="mean absolute error of link probabilities",
        kind=Kind.PUBLISHED,
        claim="The mean absolute error of the inferred link probabilities is bounded.",
        place="Abstract",
        unaudited=NOT_READ
        + "; a comment in server.py says that its projection of degrees makes the error larger than the bound",
    ),
    Statement(
        key="blink-accuracy",
        title="accuracy against other methods",
        kind=Kind.PUBLISHED,
        claim="Blink outperforms existing methods in accuracy under varying budgets.",
        place="Abstract",
        unaudited="a comparison of accuracies; nothing is trained here",
    ),
)

PAPER = Paper(
    key="blink",
    title="Code review of Blink: Zhu, Tan & Xiao 2023, arXiv:2309.03190",
    read=(
        "Read: abstract and introduction's beginning of the arXiv version at ar5iv; of the code zhxchd/Blink_GNN at "
        "947ec30c client.py, server.py, run_blink.py and config.json. Not read: definitions, theorems and proofs."
    ),
    statements=STATEMENTS,
    parameters={
        "epsilon": Parameter("ε", "claimed budget in nats", "1 to 8"),
        "nodes": Parameter("n", "number of users"),
        "share": Parameter("δ", "part of the budget for the degree", ".1, .4, .7 or 1"),
        "runs": Parameter(
            "k",
            "runs of the search, each on fresh messages",
            "640, and 30 at the best setting",
        ),
    },
)
