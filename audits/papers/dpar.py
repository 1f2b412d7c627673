"""Statements of Zhang et al. (2024), WWW 2024 (arXiv:2210.04442): DPAR."""

from auditdp.record.results import Verdict
from audits.ledger.statements import Fault, Kind, Paper, Parameter, Settled, Statement

GRAPHS, DEPLOYED = (
    "audits/audit_trainers_graphs.py::",
    "audits/audit_trainers_deployed.py::",
)
EM, GM = "audits/audit_pagerank.py::", "audits/audit_pagerank_gaussian.py::"
FORMULAS, TRAINING = "audits/audit_accounting.py::", "audits/audit_accounting_dpar.py::"
LIBRARIES = "audits/audit_accounting_libraries.py::"
TESTS = "tests/unit/audits/test_counterexamples_dpar.py::"
REPLACED = (
    "Two graphs on the same public ids in which the edges of one node are others."
)
REMOVED = "Two graphs, one of which lacks a node with all its edges."
ENTRIES = "Any two vectors of entries in [0, C₂]: one node may change all of them."
WHOLE = "Two graphs that differ in one node; each node is in the training subgraph by a coin of its own."
ROW_OF_NODE = "Two training sets in which the features (and label) of one node are others; the PageRank matrix is the same."
MODEL = "all mechanisms with these parameters, by accounting"

STATEMENTS = (
    Statement(
        key="dpar-eq3",
        title="a batch's gradients change by BC",
        kind=Kind.PUBLISHED,
        claim=(
            "The bound of the sensitivity of a batch's sum of clipped gradients is B·C, as one node may change all of "
            "them."
        ),
        place="Section 2.3, Equation 3",
        adjacency=(
            "Two graphs with the same edges in which the features (and label) of one node are others; or two graphs, one "
            "of which lacks a node with all its edges."
        ),
        settled=Settled(
            Verdict.VIOLATED,
            "BC → 2BC where a node is replaced",
            "A gradient that changes may turn around: clipped to C on both sides, it moves by 2C. BC is right if each "
            "gradient that changes is 0 on one side, and not in general. A node that is removed takes its own gradient "
            "away, C, and may turn the other B − 1 around: (2B − 1)C. For a replaced node Equation 2 lacks the 2, too. "
            "DPAR does not use Equation 3.",
            TESTS + "test_a_reversed_feature_changes_every_gradient_by_2c",
        ),
        fault=Fault.SLIP,
        inputs="a batch of rows that hold one node with features: x, or −x, so long that each gradient is clipped; W = 0",
        instead="2BC for a node that is replaced.",
        cost="none here: Equation 3 only motivates the method",
    ),
    Statement(
        key="dpar-cor1",
        title="Corollary 1, top-K selection",
        kind=Kind.PUBLISHED,
        claim=(
            "The K largest of scores with Gumbel(Δ(u)/ε) are (ε₁, δ)-DP, ε₁ = 2 min{Kε, Kε(e^2ε−1)/(e^2ε+1) + "
            "ε√(2K ln(1/δ))}."
        ),
        place="Corollary 1 (Durfee & Rogers 2019)",
        adjacency=ENTRIES,
        audits=(
            EM + "dp_appr_em",
            EM + "dp_appr_em_entries",
            EM + "dp_appr_em_counted_twice",
            FORMULAS + "em_corollary",
        ),
        scope="K = 1, 2 on all pairs of 4 ids; any number of entries given their range; K = 200 by accounting",
        setting="K = 2; at K = 2 the first term, 4ε, is the smaller one for the ε of the experiments",
    ),
    Statement(
        key="dpar-option2",
        title="option II, noisy values",
        kind=Kind.PUBLISHED,
        claim="Laplace(KC₂/ε₂) noise on the K selected values costs ε₂ more.",
        place="Appendix A, proof of Theorem 1",
        adjacency=REPLACED,
        audits=(EM + "dp_appr_em_values", EM + "dp_appr_em_values_given"),
        scope="any numbers of ids and any K; computed on 8 and 4 ids",
        proof="K values in [0, C₂] have ℓ₁ sensitivity KC₂; the two steps compose.",
    ),
    Statement(
        key="dpar-thm1",
        title="Theorem 1 at the paper's budgets",
        kind=Kind.PUBLISHED,
        claim="M rows of (ε₁, δ)-DP with ε₁ = ε_g/(2√(M ln(e + ε_g/(2Mδ)))) are (ε_g, 2Mδ)-DP.",
        place="Theorem 1, Appendix A (Kairouz, Oh & Viswanath 2017)",
        adjacency=REPLACED,
        audits=(
            FORMULAS + "em_composition_half",
            FORMULAS + "em_composition_two",
            FORMULAS + "em_composition_eight",
            FORMULAS + "em_selections",
            FORMULAS + "em_selections_beyond",
            EM + "dp_appr_em_matrix",
        ),
        scope=(
            "ε_g = .5, 2 and 8 with M = 70 and δ = .002, for any rows; ε_g = 8 and 55 for the selections of Algorithm 1 "
            "themselves; all pairs of 4 ids with M = 2; all of it for public rows"
        ),
        setting=(
            "the table's ε of 1 and 8, half of it for DP-APPR, is ε_g = .5 and 4, or 5.6 and 44 if it is that of the whole "
            "graph, divided by q = 9 %; the corollary that is cited is proved for ε_g up to .9 only"
        ),
    ),
    Statement(
        key="dpar-thm1-any",
        title="the composition formula, any ε_g",
        kind=Kind.PUBLISHED,
        claim=(
            "k parts that are (ε, δ_g/2k)-DP each, ε = ε_g/(2√(k ln(e + ε_g/δ_g))), are (ε_g, δ_g)-DP; no range of ε_g is "
            "given."
        ),
        place="Appendices A and B, proofs of Theorems 1 and 3 (Kairouz, Oh & Viswanath 2017)",
        adjacency="What any of the parts has for neighbours.",
        audits=(FORMULAS + "em_composition_beyond",),
        scope=MODEL,
        fault=Fault.BEYOND,
        inputs="a bit, 1 or 0, that each of 70 parts shows by randomised response at ε, failing openly with δ",
        condition="if Table 1's ε is that of the whole graph, on Cora-ML also at half of 8/q = 88.9: 45.2 for 44.4",
        setting=(
            "the formula, not Theorem 1: DP-APPR-EM's own selections have bounded range, and what they lose at ε_g = 55 is "
            "14.04 at most (dpar-thm1). The formula is true up to ε_g = 54 if 2Mδ = .002, up to 43 if 2Mδ = .022 (Table "
            "1's δ is that of the whole graph) and up to 34 if 2Mδ = .28 (it is that of a row). At ε_g ≤ 8 it is true for "
            "each of these δ. With ε = 8 of the whole graph, half of 8/q is 44.4: at 2Mδ = .022 the parts lose 45.2, and "
            "at half of that δ they keep it. Larger shares, which Figures 2 to 6 vary, fail on Cora-ML: from .53 of ε = 8 "
            "at 2Mδ = .011, and from .62 at any δ from .002 on"
        ),
        instead="the optimal composition (Kairouz et al., Theorem 3.3), which at ε_g = 8 even gives more per row.",
        cost="none at ε_g = 8, a gain",
        reconsider="a range of ε_g in the proof",
    ),
    Statement(
        key="dpar-sampled",
        title="M rows sampled, node DP",
        kind=Kind.PUBLISHED,
        claim="Algorithm 1 with M sampled nodes is (ε_g, 2Mδ)-node DP at the δ of the experiments.",
        place="Theorem 1 with Definition 2 and the δ of Table 1",
        adjacency=REMOVED,
        audits=(EM + "dp_appr_em_deployed", EM + "dp_appr_em_sampled"),
        output="ids of the sampled row and of the entries selected from it",
        scope="one pair of graphs of the smallest size, with δ = 1/N for each row; ids of rows released",
        inputs=(
            "three nodes, node 2 joined to both others, or node 2 not there. Outputs that name node 2, as the sampled row "
            "or as one of the K entries: probability 7/9, or 0; 2Mδ is 2/3"
        ),
        setting=(
            "whoever is named is there, whatever ε is, and the command prints ε = ∞. If Table 1's δ is that of the whole "
            "graph, as the published code computes it from 2Mδ times .09, 2Mδ is .022, .0089, .0089, .0011 and .0011 at "
            "most. A node of the five subgraphs is among the M = 70 sampled ones with probability .32, .053, .053, .0083 "
            "and .028 (Cora-ML, MS Academic, CS, Reddit, Physics; M/N), which is more on all five"
        ),
        instead="rows and candidates drawn from a public universe of ids: (ε_g, 2Mδ) for any δ.",
        cost="rows and entries are spent on ids whose node is not there",
        reconsider="a sentence that ids are public, and which of them are in the graph too",
    ),
    Statement(
        key="dpar-c2",
        title="C₂ is the sensitivity of an entry",
        kind=Kind.PUBLISHED,
        claim="Each element of a clipped row changes by at most C₂ with one node.",
        place="Section 3.1, privacy analysis; Appendix A",
        adjacency=REPLACED,
        settled=Settled(
            Verdict.CERTIFIED,
            "entries lie in [0, C₂], attained",
            "PageRank entries are not negative and are clipped at C₂ from above.",
            TESTS + "test_clipped_entries_lie_within_c2",
        ),
    ),
    Statement(
        key="dpar-thm3-row",
        title="one row of DP-APPR-GM",
        kind=Kind.PUBLISHED,
        claim="A row clipped to ‖p‖₂ ≤ C₁ with Gaussian noise of the classic formula for C₁ is (ε, δ)-node DP.",
        place="Theorem 3 and Appendix B, for one row",
        adjacency=REPLACED,
        audits=(GM + "dp_appr_gm",),
        scope=(
            "σ and C₁ of the published code, where α = .25 restarts ISTA's lazy walk; all pairs of 4 ids. Proved, without "
            "self-loops, for seeds of fewer than 170 edges (dpar-thm3-row-short); beyond, nothing is known"
        ),
        setting="of edges there are 2.8 a node in Cora-ML and 396 in Reddit (Table 2), of which the subgraph keeps 9 %",
    ),
    Statement(
        key="dpar-thm3-row-short",
        title="the same, seeds of fewer than 170 edges",
        kind=Kind.DERIVED,
        claim=(
            "A row of ISTA at ρ = 10⁻⁴, of a seed of fewer than 170 edges in both graphs, has sensitivity C₁. So noise for "
            "C₁ protects the row, and the K largest of its noisy entries."
        ),
        place="of Theorem 3, at α = .25 of the lazy walk and for graphs without self-loops",
        adjacency=REPLACED,
        audits=(GM + "dp_appr_gm_largest",),
        scope=(
            "proved for all graphs without self-loops, and for exact PageRank for all seeds; played on two pairs of 9 ids "
            "(all pairs of 4 ids: dpar-thm3-row)"
        ),
        proof="mechanisms/pagerank/dp_appr_gm.py, 'Theorem'; the selection is post-processing of the noisy row.",
    ),
    Statement(
        key="dpar-thm3-plain",
        title="one row, α = .25 of the plain walk",
        kind=Kind.AMBIGUOUS,
        claim=(
            "A row clipped to ‖p‖₂ ≤ C₁ with Gaussian noise of the classic formula for C₁ is (ε, δ)-node DP, where α = .25 "
            "restarts the plain walk, as in Equation 4 of the inference."
        ),
        place="Section 4, setup and inference phase; the published code calls α the teleport probability",
        adjacency=REPLACED,
        audits=(GM + "dp_appr_gm_plain_walk",),
        scope="all pairs of the smallest number of ids, at σ and C₁ of the published code",
        setting=(
            "rows are 1.22·C₁ apart in some graphs; at the ε₁ = .19 of ε_g = 8 and 70 rows the formula's slack covers it"
        ),
        instead="sensitivity √2·C₁, which bounds any two rows.",
        cost="√2 times the noise",
    ),
    Statement(
        key="dpar-thm3",
        title="Theorem 3 at the paper's budgets",
        kind=Kind.PUBLISHED,
        claim="M noisy rows are (ε_g, 2Mδ)-DP with ε = ε_g/(2√(M ln(e + ε_g/(2Mδ)))) for each.",
        place="Theorem 3, Appendix B",
        adjacency="Any two matrices of M rows, each row √2·C₁ apart at most.",
        audits=(
            FORMULAS + "gm_composition_half",
            FORMULAS + "gm_composition_two",
            FORMULAS + "gm_composition_eight",
            FORMULAS + "classic_sigma",
        ),
        scope="ε_g = .5, 2 and 8 with M = 70 and δ = .002, for any rows of clipped norm",
    ),
    Statement(
        key="dpar-thm3-any",
        title="Theorem 3 for any ε",
        kind=Kind.PUBLISHED,
        claim="Theorem 3 holds for any ε > 0, with the classic formula for σ.",
        place="Theorem 3, 'let ε > 0'; the formula is proved for ε < 1 (Dwork & Roth 2014, Theorem A.1)",
        adjacency="Any query of the given sensitivity, or a node of one public id that is there or not.",
        audits=(
            FORMULAS + "classic_sigma_beyond",
            FORMULAS + "gm_composition_beyond",
            GM + "dp_appr_gm_large_epsilon",
        ),
        scope=MODEL
        + "; the text says 'Gaussian mechanism', read as the published code's σ = C₁√(2 ln(1.25/δ))/ε",
        fault=Fault.BEYOND,
        inputs="a public id whose node is there ([[1]], with its self-loop) or not ([[0]])",
        setting=(
            "true at every budget of the paper: each row has ε below .26 at ε_g = 8 and below 2.3 at 8/.09, whether Table "
            "1's δ is that of a row, of the subgraph or of the whole; a single row fails from about 7.5 at δ = .001"
        ),
        instead="the exact σ of Balle & Wang (2018).",
        cost="none in the paper's range, a gain",
        reconsider="a range of ε in the theorem: below 1 it is true",
    ),
    Statement(
        key="dpar-gm-k",
        title="GM's guarantee does not depend on K",
        kind=Kind.PUBLISHED,
        claim="The guarantee of DP-APPR-GM is independent of K.",
        place="Section 4.3; Appendix B",
        settled=Settled(
            Verdict.CERTIFIED,
            "K largest of a noisy row: post-processing",
            "The selection looks at the noisy row alone.",
            TESTS + "test_the_k_largest_are_a_function_of_the_noisy_row",
        ),
    ),
    Statement(
        key="dpar-thm2-moments",
        title="Theorem 2, σ given its model",
        kind=Kind.PUBLISHED,
        claim="Training with σ = c₂(B/N)τ√(T log(1/δ))/ε_sgd is (ε_sgd, δ_sgd)-DP on the subgraph, for some c₂.",
        place="Theorem 2; Equations 10 to 12",
        adjacency=(
            "Neighbouring batches of the moments accountant: a node is in a batch at rate B/N and changes it by τC "
            "at most."
        ),
        audits=(TRAINING + "dpar_noise",),
        scope=MODEL + "; c₂ = 4, as the theorem names none",
        setting="N = 216, B = 60 and T = 720 are those of Cora-ML's subgraph and 200 epochs",
    ),
    Statement(
        key="dpar-accountants",
        title="accountants of libraries on its numbers",
        kind=Kind.LIBRARY,
        claim="DP-SGD with Poisson batches has the ε of Opacus' PRV accountant and of Rényi accountants.",
        place=(
            "Opacus 1.6.0, PRVAccountant and RDPAccountant; dp-accounting 0.6.0, RdpAccountant; no ε of them is printed "
            "in the paper"
        ),
        adjacency="A node is in a batch at rate B/N and changes it by τC at most, or is not there.",
        audits=(LIBRARIES + "dpar_libraries", TRAINING + "dpar_renyi"),
        scope=MODEL + ", δ = .001",
        setting=(
            "at σ = .95, B = 60 and T = 800, the published code's defaults, and N = 216 nodes of the paper's split (the "
            "code's own leaves 210), the loss is between 75.69 and 75.71. Opacus' PRV accountant reports 75.71, its Rényi "
            "accountant 81.62, the code's own 83.96 and dp-accounting's 111.14, which leaves out the orders below 1.8, "
            "where its series does not converge"
        ),
    ),
    Statement(
        key="dpar-thm2-sensitivity",
        title="sensitivity τC of a batch's gradients",
        kind=Kind.PUBLISHED,
        claim=(
            "Taken together, Section 3.2 (noise with sensitivity C, which the column norm τ determines) and the σ of "
            "Theorem 2 have one node change the sum of clipped gradients by at most τC, τ the largest ℓ₁ norm of a column "
            "of Π."
        ),
        place="Section 3.2; Appendix C, Equation 6",
        adjacency=ROW_OF_NODE,
        audits=(
            TRAINING + "dpar_sensitivity",
            TRAINING + "dpar_own_row",
            GRAPHS + "dpar_gradients",
        ),
        output="the sum of the clipped gradients of a step",
        scope=(
            "one step with all rows; features that reverse R = 10 gradients, and a node's own label for τ = .5, both by "
            "accounting; 3 rows of a linear model, whose gradients are computed"
        ),
        setting=(
            "Equation 6 takes the gradient to be linear in f(x_i) with one direction, and clips before "
            "the weights; Algorithm 2 clips each row's gradient to C after Π has weighted it. A node's own label is in the "
            "gradient of its own row, and another label may turn that gradient around: if labels are private, the sum may "
            "change by 2C whatever τ is."
        ),
        condition=(
            "for features, which change the sum by 20C; a label alone changes it by 2C, 1.35 at τ = 1 and 3.138 at τ = .5. "
            "The noise is 4τC, and the claimed ε is that of a change by τC"
        ),
        inputs=(
            "τ = 1 and 10 rows that hold node k, the one with features: x_k, or −x_k, so long that each gradient is "
            "clipped; W = 0"
        ),
        instead="2RC, with R the most rows that a node is in, its own among them: tight.",
        cost="2R/τ times the noise",
        reconsider="clipping of each node's contribution before it is weighted, and labels that are public",
    ),
    Statement(
        key="dpar-thm2-whole",
        title="the whole (ε, δ), from nodes to the model",
        kind=Kind.PUBLISHED,
        claim="The model that DPAR trains with the noise of Theorems 1 and 2 is (ε, δ)-node DP, the ε and δ of Table 1.",
        place="Theorem 2 with Table 1 and Algorithms 1 and 2",
        adjacency="Two sets of nodes in which the feature vector of one node is another; there are no edges.",
        audits=(DEPLOYED + "dpar_model",),
        output="the weights of a linear model after one step",
        scope=(
            "45 nodes of which 4 are drawn, so that all four rows hold all four; one step of a linear model with one "
            "feature. σ is the least that an exact accountant gives for sensitivity τC, as Theorem 2 leaves c₂ open"
        ),
        setting=(
            "of the numbers only q = 9 %, ε = 1 and δ = .002 are the paper's, K = 4 is one that it tries, and with four "
            "rows M and B are 4. No edges, restart probability .99, clipping norm 10⁻¹² and learning rate 10⁹ make the "
            "weights show the noised sum. A node that is drawn is in all four rows and "
            "seen almost surely, which a budget of ε/q on the drawn nodes does not rule out"
        ),
        instead="noise for 2RC (dpar-thm2-sensitivity) and ln(1 + q(e^ε − 1)) (dpar-thm2-subsample).",
        cost="on Cora-ML 13 times the noise at the printed ε = 1 and 21 times at 8 (reports/repairs.md)",
        reconsider="a σ of Theorem 2 that is so much larger, by its constant c₂, that the model keeps the printed ε",
        parameters={"nodes": Parameter("N", "number of nodes", "2,396 and more")},
    ),
    Statement(
        key="dpar-opacus",
        title="Opacus' DP-SGD on the decoupled model",
        kind=Kind.DERIVED,
        claim="A step of Opacus on rows that mix features, with noise 2λC, is 1/λ-Gaussian DP for a node of one row.",
        place="of Opacus (Yousefpour et al. 2021, arXiv:2109.12298) on the model of Section 3.2",
        adjacency="Two sets of nodes in which the feature of one node turns around; it is in one row.",
        audits=(DEPLOYED + "opacus_decoupled",),
        output="the weights of a linear model after one step",
        scope="three rows, one step; a node that is in all of them is refuted with the same noise",
    ),
    Statement(
        key="dpar-thm2-ratio",
        title="amplification ∝ largest column norm",
        kind=Kind.PUBLISHED,
        claim=(
            "The privacy amplification ratio is proportional to the largest column-wise ℓ₁ norm of the DP-APPR matrix."
        ),
        place="Section 3.2, privacy analysis; Appendix C",
        settled=Settled(
            Verdict.VIOLATED,
            "ratio ∝ τ → unchanged by τ",
            "How likely a batch is to hold a row that a node is in depends on how many rows that is, not on the "
            "weights: halving all weights of Π halves τ and leaves every probability as it is.",
            TESTS + "test_who_is_in_a_batch_does_not_depend_on_the_weights",
        ),
        inputs="6 rows of which 3 hold a node with weight 1/2, or with 1/4; batches of 2 hold it with .8 in both cases",
        instead=(
            "the rate is the chance that a batch holds at least one of the R rows that the node is in. For batches of B "
            "different rows out of M it is 1 − binom(M−R, B)/binom(M, B)."
        ),
        reconsider="a definition of the ratio that counts weight and not presence",
    ),
    Statement(
        key="dpar-thm2-algebra",
        title="algebra of Equation 9",
        kind=Kind.PUBLISHED,
        claim="exp(τ²/σ²) ≤ τ²/σ² + 1 ≤ 2τ²/σ², the latter for τ²/σ² ≥ 1, bounds the second moment.",
        place="Appendix C, Equation 9 and the sentence after it",
        settled=Settled(
            Verdict.VIOLATED,
            "exp(1) ≤ 2 → 2.718",
            "1 + x is below e^x for every x ≠ 0. The signs of Equation 9 were lost in the text that was read, and are "
            "taken to be ≤, since it bounds T₃. Its condition τ²/σ² ≥ 1 says that σ is at most τ, while the moments "
            "accountant that is cited needs σ ≥ 1 in units of the sensitivity. The moment itself is e^x − 1, as it is of "
            "(μ_τ − μ₀)/μ₀ and not of μ_τ/μ₀.",
            TESTS + "test_the_algebra_of_equation_9",
        ),
        fault=Fault.SLIP,
        inputs="τ = σ: e on the left, 2 on the right",
        instead="with e^x − 1 ≤ 2x for x = τ²/σ² ≤ 1.25 the first term of (10) follows, for σ ≥ .9τ.",
        cost="none: the direction of the condition turns around",
        reconsider="another reading of the garbled signs; the printed text was checked in one version only",
    ),
    Statement(
        key="dpar-thm2-mixture",
        title="law of a step, μ₀ + qμ_τ",
        kind=Kind.PUBLISHED,
        claim="A step's output on D′ has the law μ = μ₀ + (B/N)μ_τ, of which Equation 9 takes (qμ_τ/μ)².",
        place="Appendix C, the sentence after Equation 6; Equation 9",
        settled=Settled(
            Verdict.VIOLATED,
            "a law → mass 1 + q",
            "μ₀ and μ_τ have mass 1, so that their sum has 1 + q. The node is in the batch with probability q, and the "
            "law is (1 − q)μ₀ + qμ_τ, as in the moments accountant that is followed; what changes is q(μ_τ − μ₀), and "
            "the second moment becomes q²(e^x − 1), less than Equation 9 has.",
            TESTS + "test_the_mixture_of_equation_6",
        ),
        fault=Fault.SLIP,
        inputs="q = .28: mass 1.28",
        instead="(1 − q)μ₀ + qμ_τ, with which q²e^x, Equation 9 before its last two steps, is on the safe side.",
        cost="none",
    ),
    Statement(
        key="dpar-thm2-moments-code",
        title="Equation 10 at the code's σ and B",
        kind=Kind.AMBIGUOUS,
        claim=(
            "The first term of Equation 10 bounds the log moment at σ = .95 and B = 60, the published code's defaults, "
            "among 216 nodes: Equations 11 and 12 use it without the O-term."
        ),
        place="Appendix C, Equations 10 to 12; σ = .95 of Emory-AIMS/DPAR at 62159715, main.py",
        adjacency="A step's law with a node that is in the batch at rate q and changes the sum by τC, or without.",
        settled=Settled(
            Verdict.VIOLATED,
            "α(2) ≤ .513 → .649",
            "The log moment of the mixture is exact as a binomial sum. At λ = 1 the term holds (.171, .145), and from λ "
            "= 2 on it does not: 3.59 against 14.3 at λ = 6. 216 nodes are those of the paper's split; among the 210 that "
            "the code's own leaves it is .543 against .683 at λ = 2. The expansion is proved for q < 1/(16σ) = .066 and "
            "small λ (Abadi et al. 2016, Lemma 3).",
            TESTS + "test_equation_10_at_the_noise_and_batch_of_the_code",
        ),
        instead="an accountant of the whole moment, such as the Rényi accountant that the published code uses.",
        cost="none for the published code, which does not use Equation 12",
    ),
    Statement(
        key="dpar-thm2-batches",
        title="batches at rate B/N",
        kind=Kind.AMBIGUOUS,
        claim="A row is in a batch at rate B/N, N the nodes of the subgraph, where only M = 70 of them have a row.",
        place="Theorem 2 (q = B/N), Section 4 (M = 70, B = 60)",
        adjacency="Two training sets, one of which lacks a node; whether it has a row is part of the mechanism.",
        audits=(TRAINING + "dpar_batches_of_rows",),
        scope=MODEL
        + ", at what the claim for the whole asks of the part that is given a row",
        setting=(
            "N = 216, M = 70, B = 60: the rate is .86 and not .28. (3.28, .001) for the whole is (4.384, .00309) for a node "
            "that is given a row. The published code reads it otherwise: the other "
            "nodes get a one-hot row, and batches are drawn from all N"
        ),
        instead="node-level accounting by batches of the M rows, a node in R of them at most.",
        cost="σ = 200C for R = 2, where a Rényi accountant at rate B/N has (3.28, .001) for 8τC",
    ),
    Statement(
        key="dpar-code-shuffled",
        title="published code: the first epoch's batches",
        kind=Kind.CODE,
        claim="Batches that a permutation of the nodes cuts, the same in all 200 epochs, have the ε of Poisson batches.",
        place=(
            "Emory-AIMS/DPAR at 62159715, and the same at b31f371 of 18 February 2024: main.py permutes the nodes for "
            "each epoch, and feed_for_batch_train of dpgnn/model.py keeps the first epoch's batches for all epochs, "
            "by their place"
        ),
        adjacency="Two training sets, in one of which a record is zeroed out.",
        audits=(TRAINING + "dpar_shuffled",),
        scope=MODEL,
        condition=(
            "83.95 is what the code's accountant gives at δ = .001; the code calls it at .001/.09 and multiplies by .09, "
            "which gives 6.83"
        ),
        inputs=(
            "a record whose clipped gradient is C in every step, or is 0, all other gradients being 0: the 200 outputs of a "
            "batch have the same mean, which shows whether the batch holds it"
        ),
        setting=(
            "σ = .95 and B = 60 are the code's defaults where DP-SGD is switched on. N = 216, of the paper's split, makes "
            "4 batches an epoch, as the 210 of the code's own do; the last has 24 nodes of the third, who are in two for "
            "ever (30 of 210). Batches drawn anew would lose 132.2 at least"
        ),
        instead=(
            "1/σ-Gaussian DP for each epoch, without amplification: for 200 epochs √200/σ for a node of one batch, which is "
            "tight, and √400/σ, (285.7, .001), for a node of two."
        ),
        cost="the whole of the amplification",
    ),
    Statement(
        key="dpar-code-em",
        title="published code: Gumbel(2C₂/ε′)",
        kind=Kind.CODE,
        claim="Gumbel noise of scale 2C₂/ε′ with min{Kε′, Kε′(e^ε′−1)/(e^ε′+1) + ε′√(2K ln(1/δ))} is Corollary 1.",
        place="Emory-AIMS/DPAR at 62159715, main.py and dpgnn/utils.py",
        settled=Settled(
            Verdict.CERTIFIED,
            "the same noise and ε₁ with ε′ = 2ε",
            "The code and the paper agree: ε of the paper is half the code's.",
            TESTS + "test_the_published_code_has_the_noise_of_corollary_1",
        ),
    ),
    Statement(
        key="dpar-code-amplified",
        title="published code: ε and δ times .09",
        kind=Kind.CODE,
        claim=(
            "For the whole graph DP-SGD has .09 times the ε that the code's accountant finds on the subgraph, at .09 times "
            "its δ."
        ),
        place="Emory-AIMS/DPAR at 62159715, and the same at b31f371 of 18 February 2024, main.py",
        adjacency=WHOLE,
        audits=(TRAINING + "dpar_code_amplified",),
        scope=MODEL
        + (
            ", at what the claim asks of the part that is given that the node is in the subgraph; the code draws a fixed "
            "number of nodes, ⌈.09n⌉, in place of a coin for each"
        ),
        condition=(
            "given that the node is in the subgraph; for the whole (6.83, .001) is reported, and (64.3, .001) is lost at "
            "least"
        ),
        inputs=(
            "a node that is in each batch at rate 60/216 and whose clipped gradient is C, or no such node, all other "
            "gradients being 0"
        ),
        setting=(
            "σ = .95, B = 60 and 800 steps are its defaults where DP-SGD is switched on. With 216 nodes, of the paper's "
            "80 % split of Cora-ML, it reports (6.83, .001) for DP-SGD, and the whole loses (64.3, .001) at least. With "
            "the 210 of its own split, seven of nine METIS parts, these are 7.12 and 67.2"
        ),
        instead="ln(1 + q(e^ε − 1)) of the subgraph's ε: nearly all of it at these parameters.",
        cost="eleven times the ε",
        parameters={
            "delta": Parameter("δ", "claimed for the whole graph", ".002 to .0001")
        },
    ),
    Statement(
        key="dpar-code-seed",
        title="published code: the seed of DP-SGD",
        kind=Kind.CODE,
        claim="The noise of DP-SGD is drawn anew in every run.",
        place="Emory-AIMS/DPAR at 62159715, and the same at b31f371: tf.set_random_seed(0), main.py, line 187",
        unaudited=(
            "code that is not run here: in TensorFlow 1 the noise (tf.random.normal of gaussian_query.py) then follows "
            "from this seed and the graph of operations, which readers of the code know. A figure needs no secret seed, "
            "and a release does. The noise of rows and selections has no seed"
        ),
        fault=Fault.READ,
        instead="no fixed seed in a release.",
    ),
    Statement(
        key="dpar-code-columns",
        title="published code: columns scaled to norm 1",
        kind=Kind.CODE,
        claim="Every column that is not empty is scaled to ℓ₁ norm 1, down or up, in place of a clip at τ.",
        place="Emory-AIMS/DPAR at 62159715, main.py; the paper clips to τ (Section 3.2)",
        unaudited="the sensitivity of the sum of gradients is 2RC in either case (dpar-thm2-sensitivity)",
    ),
    Statement(
        key="dpar-code-loops",
        title="published code: self-loops",
        kind=Kind.CODE,
        claim="Every node has a self-loop before PageRank is computed, and in the graph of the test nodes.",
        place="Emory-AIMS/DPAR at 62159715, dpgnn/utils.py; not in the paper",
        unaudited="it makes rows less far apart; the audits are without self-loops, which is against the claim",
    ),
    Statement(
        key="dpar-thm2-subsample",
        title="amplification q(ε_sgd + ε_pr)",
        kind=Kind.PUBLISHED,
        claim="(ε, δ)-node DP on a subgraph at rate q = 9 % is (qε, δ)-node DP for the whole graph.",
        place=(
            "Theorem 2, its first q read as the 9 % of Section 4 by the last sentence of Appendix C; its brackets, which "
            "the text lost, are those of the published code, which multiplies both by .09"
        ),
        adjacency=WHOLE,
        audits=(
            TRAINING + "subsample_naive",
            TRAINING + "subsample_naive_both",
            TRAINING + "subsample_naive_table",
        ),
        scope="the worst of all mechanisms with these parameters, at ε and δ of Table 1, δ amplified or not",
        setting=(
            "(8, .002) on the subgraph is (5.57, .002) and not (.72, .002); if the table's 1 is that of the whole, "
            "11.1 is spent and 8.68 lost"
        ),
        inputs="a node that is there, or is not, which a subgraph with it shows by randomised response at ε = 8",
        instead="ln(1 + q(e^ε − 1)) with qδ, tight; qε is its value for ε → 0 only.",
        cost="ε = 5.595 instead of .72 at 8; .144 instead of .09 at 1",
        reconsider="a proof that uses more of the two parts than their (ε, δ)",
    ),
    Statement(
        key="dpar-subsample-size",
        title="the same for a subgraph of fixed size",
        kind=Kind.LIBRARY,
        claim=(
            "Drawing 9 % of the nodes without replacement amplifies (ε, δ) under replacement to (ln(1 + q(e^ε − "
            "1)), qδ)."
        ),
        place="Balle, Barthe & Gaboardi 2018, Theorem 9",
        adjacency="Two graphs in which one node is replaced.",
        audits=(TRAINING + "subsample_fixed_size",),
        scope=MODEL,
    ),
    Statement(
        key="dpar-delta",
        title="δ near 1/#training nodes",
        kind=Kind.PUBLISHED,
        claim="δ is roughly the inverse of each dataset's number of training nodes.",
        place="Section 4.1; Table 1 with Table 2 and the 80 % split",
        settled=Settled(
            Verdict.VIOLATED,
            "δ·#training nodes ≈ 1 → 4.79, 11.7, 11.7, 9.34, 2.76",
            "For Cora-ML, MS Academic, CS, Reddit and Physics. For MS Academic, CS and Reddit, δ is near the inverse "
            "of the 9 % subsample; for Cora-ML it is below and for Physics below that too.",
            TESTS + "test_delta_against_the_number_of_training_nodes",
        ),
        fault=Fault.SLIP,
        inputs="δ of Table 1, nodes of Table 2, and 80 % of them: .002 · 2,396 = 4.79 for Cora-ML",
        instead="4.2e-4, 6.8e-5, 6.8e-5, 1.1e-5 and 3.6e-5.",
        reconsider="another split, or δ meant for the subsample",
    ),
    Statement(
        key="dpar-sqrt-b",
        title="σ grows as √B",
        kind=Kind.PUBLISHED,
        claim="At a fixed budget and number of epochs σ grows as the square root of the batch size.",
        place="Appendix F, batch size",
        settled=Settled(
            Verdict.CERTIFIED,
            "σ ∝ (B/N)√(epochs·N/B) ∝ √B",
            "T is epochs·N/B in the formula for σ of Theorem 2, all else fixed.",
            TESTS + "test_sigma_grows_as_the_root_of_the_batch",
        ),
    ),
    Statement(
        key="dpar-features",
        title="Features is DP-SGD on records",
        kind=Kind.PUBLISHED,
        claim=(
            "The baseline Features uses the original DP-SGD to achieve node DP, and is Algorithm 2 with a one-hot vector "
            "for each node's APPR vector."
        ),
        place="Section 4, baselines",
        unaudited=(
            "audited with the baselines (base-features); it is Algorithm 2 of such rows only without the draw of 9 % of the "
            "nodes (experiment dpar-features has both)"
        ),
    ),
    Statement(
        key="dpar-composition",
        title="DP-APPR and DP-SGD compose",
        kind=Kind.PUBLISHED,
        claim="The two parts compose to (ε_sgd + ε_pr, δ_sgd + δ_pr).",
        place="Section 3.2; Appendix C",
        unaudited="basic composition, true of parts that hold for the same neighbours",
    ),
    Statement(
        key="dpar-column-l0",
        title="a node affects B gradients",
        kind=Kind.PUBLISHED,
        claim="A node affects at most B gradients, B the largest number of non-zero entries in a column.",
        place="Section 3.2",
        unaudited=(
            "true by definition of the columns, its own row apart; B also names the batch size, which is another number"
        ),
    ),
    Statement(
        key="dpar-complexity",
        title="complexity",
        kind=Kind.PUBLISHED,
        claim="DPAR takes time O(N + D), N nodes and D features, since a step of training takes time O(D).",
        place="Appendix H",
        settled=Settled(
            Verdict.VIOLATED,
            "not O(N+D)",
            "A step costs D, and an epoch has as many steps as N rows have batches of B: training costs ND. It is linear in "
            "each of the two, as the first sentence of the appendix says, and not in their sum.",
            TESTS + "test_twice_as_many_nodes_and_features_cost_four_times_as_much",
        ),
        fault=Fault.SLIP,
        inputs="both doubled",
        instead="O(ND).",
    ),
    Statement(
        key="dpar-illustration",
        title="t-SNE shows protection",
        kind=Kind.PUBLISHED,
        claim="Embeddings cluster less at ε = 1, so that nodes are protected better.",
        place="Appendix E, Figure 9",
        unaudited="an illustration; nothing that it states can be false",
    ),
    Statement(
        key="dpar-utility",
        title="accuracy of Table 1",
        kind=Kind.PUBLISHED,
        claim="DPAR beats GAP and SAGE at the same level of node DP.",
        place="Section 4.1, Table 1",
        unaudited="a claim about accuracy, which the experiments repeat; the levels themselves are audited above",
    ),
)

PAPER = Paper(
    key="dpar",
    title="DPAR: Zhang et al. 2024, WWW 2024 (arXiv:2210.04442)",
    read=(
        "We read the author manuscript PMC11660558 of the WWW paper from beginning to end, and not the arXiv version. "
        "Algorithms 1 to 3 are pictures there and were not seen: what is stated of them is from Sections 3.1 and 3.2 and "
        "from the published code. Signs that formulas of Appendix C lost were taken from the prose around them."
    ),
    statements=STATEMENTS,
    parameters={
        "epsilon": Parameter(
            "ε", "budget of the part that is audited, in nats", "1 to 8 in all"
        ),
        "value_epsilon": Parameter("ε₂", "budget of the selected values"),
        "epsilon_g": Parameter("ε_g", "budget of all rows", ".5 to 8"),
        "delta": Parameter("δ", "that of the part that is audited", ".002 to .0001"),
        "delta_of_node": Parameter("δN", "δ in units of 1/N"),
        "k": Parameter("K", "entries kept of a row", "2"),
        "rows": Parameter("M", "rows of the matrix", "70"),
        "rows_of_node": Parameter(
            "R", "rows that the node is in, its own among them", "not printed"
        ),
        "count": Parameter("M", "sampled rows", "70"),
        "clip": Parameter("C₂", "what entries are clipped to", ".001"),
        "nodes": Parameter(
            "N", "ids of the public universe", "2,396 and more", ascending=True
        ),
        "teleport": Parameter("α", "restart probability of the plain walk", ".25"),
        "noise": Parameter("σ", "noise in units of C, or of τC", "from Theorem 2"),
        "constant": Parameter("c₂", "constant of Theorem 2", "not printed"),
        "tau": Parameter("τ", "largest ℓ₁ norm of a column", "not printed"),
        "batches": Parameter("batches", "batches of an epoch"),
        "steps": Parameter("T", "steps of training", "800 by the code's defaults"),
        "epochs": Parameter("epochs", "epochs of training", "200"),
        "rate": Parameter("q", "rate of the subsample of nodes", ".09"),
    },
)
