"""Statements of Tran et al. (2022), arXiv:2211.05766: heterogeneous randomised response for features and edges."""

from auditdp.record.results import Verdict
from audits.ledger.statements import Fault, Kind, Paper, Parameter, Settled, Statement

FEATURES = "audits/audit_feature_rr.py::"
TREE, RELEASE = (
    "audits/audit_hierarchy_dendrogram.py::",
    "audits/audit_hierarchy_release.py::",
)
TESTS = "tests/unit/audits/test_counterexamples_heterorr.py::"
RECORD = "Any two feature vectors of one record, each feature in [0, 1]."
RAW = "Any two raw records, from which features, importance and sensitivity scores are computed."
PRIVATE_EDGE = "Two graphs on the same nodes that differ in one private edge; public edges are the same."
STATIONARY = (
    "the stationary law of the chain, which the paper runs until it has converged"
)
WEDGE = (
    "3 nodes, all in V_pri, with public edges 01 and 02, and a private edge 12 or none; dendrogram ((1, 2), 0), the output "
    "[3, 3, 2]"
)
MOVES_OF_A_STEP = "one in Section III-B, open in Algorithm 2"
EMPIRICAL = "a claim about accuracy or attacks, which experiments and no audit decide"

STATEMENTS = (
    Statement(
        key="heterorr-feature",
        title="one feature, ε_i-LDP",
        kind=Kind.PUBLISHED,
        claim="Releasing bin u for bin t with probability ∝ exp(−|u−t|/(kσ_i)), σ_i = (k−1)/(kε_i), provides ε_i-LDP.",
        place="Equation 8; Equation 16, Appendix A",
        adjacency="Any two values of one feature in [0, 1].",
        audits=(FEATURES + "feature_rr_feature",),
        scope="all k and ε_i, tight; computed for k = 2 to 7",
        proof=(
            "With a = exp(−1/(kσ)), the ratio of the two probabilities for t < t′ is at most a^(t−t′)·C_t′/C_t, C_t = (1 + "
            "a − a^t − a^(k+1−t))/(1−a) is least at t = 1, and C_t′ ≤ a^(t′−k)·C_1, since a(1 − a^j) ≤ a^(−j) − 1. So it "
            "is at most a^(1−k) = e^ε_i, attained at both ends; t > t′ follows by symmetry. The appendix names the ends "
            "without comparing the normalisers of the bins in between."
        ),
    ),
    Statement(
        key="heterorr-thm3",
        title="FeatureRR, ε_f-LDP, public θ",
        kind=Kind.PUBLISHED,
        claim=(
            "With noise scales σ_i ≥ (k−1)/(kε_fθ_i) FeatureRR provides ε_f-LDP for the whole record, θ summing to 1."
        ),
        place="Theorem 3 with line 5 of Algorithm 1",
        adjacency=RECORD,
        audits=(FEATURES + "feature_rr",),
        scope="all d and k for θ that do not depend on the record; computed for 2 features in 3 bins",
        proof="Features are released independently and lose ε_fθ_i each, which sum to ε_f (basic composition).",
    ),
    Statement(
        key="heterorr-thm3-unnormalised",
        title="θ of Equation 7 as they are",
        kind=Kind.AMBIGUOUS,
        claim="Theorem 3 holds for the θ of Equation 7, before line 5 of Algorithm 1 divides them by their sum.",
        place="Theorem 3 with Equation 7; the proof's Equation 17 takes the sum to be 1",
        adjacency=RECORD,
        audits=(FEATURES + "feature_rr_unnormalised",),
        output="the released bins, numbered from 1",
        scope="over the whole box of 3 features, for one choice of scores",
        setting="the loss is ε_f·Σθ, and Σθ = γ + (1−γ)(d(β_min + β_max) − 1), up to γ + (1−γ)(d−1)",
        instead="line 5 of Algorithm 1, which divides by the sum, keeps ε_f and is tight.",
    ),
    Statement(
        key="heterorr-thm3-deployed",
        title="θ computed from the record",
        kind=Kind.PUBLISHED,
        claim="FeatureRR provides ε_f-LDP for a record whose θ are computed from itself, as Equations 5 to 7 have it.",
        place="Equations 5 to 7 and Theorem 3; Algorithm 1 takes α and β as inputs",
        adjacency=RAW,
        audits=(FEATURES + "feature_rr_record",),
        output="the released bins, numbered from 1",
        scope=(
            "all pairs of records of answers 0, 1/2, 1 for which Equations 5 and 6 are defined; by the closed form of the "
            "largest loss no pair of records loses more than 4.3908. Smallest number of features; a feature is an answer, "
            "and the first is sensitive: without it it is 0 (ẑ of Equation 5). γ = 1/2; importance of z is |z − 1/2|, as "
            "SHAP has it for the sum of the features about a mean of 1/2"
        ),
        setting=(
            "[1/2, 1] against [0, 0] loses 4.39, if each feature counts the same for the latter, for which Equation 5 is "
            "0/0. With such records the closed form of the largest loss is 1.04ε_f at ε_f = 1 with 10 features, and "
            "1.30ε_f at 10 with 100, in 10 bins. The published scripts take θ from each record for MIR and NUS, and θ = "
            "1/r for PPI and Reddit, which no record influences (feature_level_*.py at cafdc9a)"
        ),
        instead=(
            "θ from public records keep ε_f; θ from the record keep it with a smaller budget, such as 7.86 in place of "
            "ε_f = 10 with 100 features in 10 bins."
        ),
        cost="none in noise for public θ",
        reconsider=(
            "a sentence that α and β of Algorithm 1 are computed from public data alone; Section III-A has it of SHAP's "
            "model only"
        ),
    ),
    Statement(
        key="heterorr-code-bits",
        title="published code: bits instead of bins",
        kind=Kind.CODE,
        claim=(
            "Features are randomised bit by bit of a binary representation; FaRR.py does not divide the scores by their "
            "sum."
        ),
        place=(
            "khangtran2020/DPGNN: Utils/FaRR.py at 205d905f, feature_level.py and flickr_feat_level.py at 47c7b0e7; not "
            "Equation 8"
        ),
        unaudited=(
            "none of the files that were read has the mechanism of Equation 8, and the paper claims nothing of this one; "
            "by their formulas FaRR.py loses ε_fΣθ for public θ, and feature_level.py about 2.94rε for r features of 9 bits"
        ),
    ),
    Statement(
        key="heterorr-code-pm-sub",
        title="published code: baseline PM-SUB",
        kind=Kind.CODE,
        claim="The baseline PM_SUB provides ε-LDP, its output being uniform to the right of the interval as to the left.",
        place=(
            "khangtran2020/DPGNN at 1f5017d2, PM_SUB in Utils/DataProcessing.py, last line; the same at cafdc9a of 27 "
            "October 2022"
        ),
        adjacency="Any two values of one feature in [−1, 1].",
        settled=Settled(
            Verdict.VIOLATED,
            "ε → ∞: one output, (C − g₂)g₂, in place of an interval",
            "The random number is missing from the last line, so that an output to the right is a product that depends on "
            "the value: whoever sees 4.11 at ε = 1 learns that x is 0 or .28, which have it with probability .17 and .12; "
            "x = 1/2 never has it. The curve of the sub-optimal mechanism in Figure 6 is of something else, if it is from "
            "this code.",
            TESTS + "test_the_published_pm_sub_shows_its_input",
        ),
        inputs="x = 0, or x = 1/2, at ε = 1",
        instead="a uniform number of [g₂, C], as PM-SUB has it: ε-LDP.",
    ),
    Statement(
        key="heterorr-code-likelihood",
        title="published code: private edges in public moves",
        kind=Kind.CODE,
        claim="A public move is accepted by the likelihood of public edges alone, so that it costs no budget.",
        place=(
            "khangtran2020/DPGNN at 205d905f and at cafdc9a of 27 October 2022, ERand/src/dendro.h: lines 699 and, in "
            "refreshLikelihood, 2016"
        ),
        adjacency=PRIVATE_EDGE,
        unaudited=(
            "C++ code that is not run here: it assigns the log likelihood of a node's private edges to dL_pub in place of "
            "dL_priv, and stores it as that of public edges. Public moves are accepted by the difference from it with "
            "weight 1, outside of ε_e1. dL_priv is only ever set to 0 and is stored as that of private edges, so that "
            "private moves are not those of Equation 14. refreshLikelihood runs after every accepted move"
        ),
        fault=Fault.READ,
        instead="dL_priv on the left of these lines.",
    ),
    Statement(
        key="heterorr-code-range",
        title="published code: the range of baseline LPGNN",
        kind=Kind.CODE,
        claim="The baseline LPGNN of the features is ε-LDP, its range being that of the data.",
        place=(
            "khangtran2020/DPGNN at cafdc9a of 27 October 2022: input_range of main/main_LPGNN_nus.py, _ppi.py and "
            "_reddit.py, and main/LPGNN.py"
        ),
        adjacency="Two populations in which the record of one user is another; everything that all users send is released.",
        unaudited=(
            "Python code that is not run here: the values are scaled back to the least and the largest number of all "
            "records (for PPI, of each graph), so that they show both exactly. The same is audited of LPGNN's early code "
            "(lpgnn-code-range)"
        ),
        fault=Fault.READ,
        instead="public bounds and clipping keep ε.",
    ),
    Statement(
        key="heterorr-code-seed",
        title="published code: baselines with the seed 1608",
        kind=Kind.CODE,
        claim="The baselines EdgeRand and LapGraph of the edges are ε-DP, their noise being drawn from a constant seed.",
        place=(
            "khangtran2020/DPGNN at 205d905f: perturb_adj_discrete of Attack/Attacker.py, which sets np.random.seed(1608), "
            "and perturb_adj_continuous, which calls get_noise(..., seed=1608) of Utils/DataProcessing.py; the same at "
            "cafdc9a of 27 October 2022"
        ),
        adjacency="Two graphs on the same nodes that differ in one edge.",
        settled=Settled(
            Verdict.VIOLATED,
            "ε → ∞: every run draws the same noise",
            "The seed is in the code, so that its readers know all flips and all Laplace numbers. With EdgeRand "
            "every pair that is not replaced is published as it is: an edge there and none have different outputs, each "
            "with probability 1. With LapGraph the number of edges is published with a known number added. A figure needs "
            "no secret seed, and a release does; several runs with one seed have one and the same noisy graph.",
            TESTS + "test_a_constant_seed_publishes_edges",
        ),
        inputs="2 nodes with an edge, or without, at ε = 5: the seed replaces no pair of them",
        setting=(
            "the two baselines of Figure 7, which the paper has from LinkTeller [4]. We do not know whether the figure is "
            "from this file: main/defense.py calls it, but imports Attacker.Attacker, and the folder is Attack. The "
            "scripts of the features, baselines of Figure 6 among them, set the seed 2605 (feature_*.py at cafdc9a)"
        ),
        instead="a generator that is seeded by the operating system's entropy.",
        cost="none",
    ),
    Statement(
        key="heterorr-scaling",
        title="features normalised over the population",
        kind=Kind.AMBIGUOUS,
        claim="Normalising z to [0, 1] first costs no privacy, where the range is that of the population.",
        place="Algorithm 1, line 3; Section III-A calls discretising a step without extra privacy risks",
        adjacency="Two populations in which the record of one user is another; everything released is seen.",
        settled=Settled(
            Verdict.VIOLATED,
            "ε_f → nε_f for n users",
            "If the values of all others agree, one user's value decides whether theirs are the least or the "
            "greatest: every report moves from bin 1 to bin k at once. For two users the product of the two exact "
            "tables gives 2ε_f.",
            TESTS + "test_population_scaling_before_feature_rr",
        ),
        setting="the published code scales each record by its own range (feature_level.py), which says nothing of others",
        instead="a public range and clipping keep ε_f.",
    ),
    Statement(
        key="heterorr-lemma4",
        title="Lemma 4, sensitivity of Equation 15",
        kind=Kind.PUBLISHED,
        claim="One private edge changes log L by at most Δ = log N_max + log(1 + 1/(N_max − 1)).",
        place="Lemma 4, Equation 15",
        adjacency=PRIVATE_EDGE,
        audits=(TREE + "edge_rr_sensitivity",),
        scope="all pairs of graphs of 4 nodes, the fewest that show it",
        fault=Fault.SLIP,
        inputs=(
            "4 nodes with the edge 01, or without edges: log L of some dendrograms is −2.249, or 0, and Equation 15 has "
            "1.674"
        ),
        setting=(
            "the appendix derives Equation 19 instead, which has the factor N_max − 1 and is right; the published code has "
            "it"
        ),
        instead="Δ of Equation 19, log N_max − (N_max − 1) log((N_max − 1)/N_max), is the sensitivity exactly.",
        cost="Δ larger by nearly 1 nat for many private nodes",
    ),
    Statement(
        key="heterorr-eq19",
        title="Equation 19, sensitivity",
        kind=Kind.PUBLISHED,
        claim="One private edge changes log L by at most Δ = log N_max − (N_max − 1) log((N_max − 1)/N_max).",
        place="Appendix B, Equation 19",
        adjacency=PRIVATE_EDGE,
        audits=(TREE + "hrg_sensitivity",),
        scope=(
            "all numbers of nodes, attained, where the private nodes are the same on both sides; computed for 4 nodes"
        ),
        proof="auditdp's mechanisms/hierarchy/likelihood.py, 'One edge'; the appendix's own proof fixes N_r as well.",
    ),
    Statement(
        key="heterorr-monotone",
        title="Δ grows with n",
        kind=Kind.PUBLISHED,
        claim="Δ increases monotonically with the number of nodes.",
        place="Lemma 4, first half",
        settled=Settled(
            Verdict.CERTIFIED,
            "Equation 19: at every size; Equation 15: from 3 private nodes on",
            "Equation 19 is an increment of the convex x log x. Equation 15 is 2 log N − log(N − 1), which is infinite for "
            "N = 1, that is for 2 private nodes, and grows from N = 2 on, that is from 3.",
            TESTS + "test_both_sensitivities_grow",
        ),
    ),
    Statement(
        key="heterorr-dendrogram",
        title="dendrogram as printed, ε_e1",
        kind=Kind.PUBLISHED,
        claim="The dendrogram of Algorithm 2 satisfies edge-level ε_e1-DP, by the exponential mechanism.",
        place="Section IV after Lemma 4; Equations 12 to 15, Algorithm 2",
        adjacency=PRIVATE_EDGE,
        audits=(
            TREE + "edge_rr_dendrogram_as_printed",
            TREE + "edge_rr_dendrogram_one_step",
            TREE + "edge_rr_dendrogram_printed",
        ),
        output="for each pair of leaves (01, 02, .., 12, ..) how many leaves their lowest common ancestor has below it",
        scope=(
            "chain, exponent and Δ as printed, but all nodes in V_pri, whatever the data (otherwise: heterorr-vpri): "
            "all pairs of 3 nodes with public edges 0-1 and 0-2, after one step from a random dendrogram and at the "
            "stationary law; of 4 nodes without public edges at the latter"
        ),
        inputs=WEDGE,
        condition="one public and one private move a step, 3 nodes",
        setting=(
            "With V_pri from the data, as printed, the loss is infinite (heterorr-vpri). Section V has ε_e from .1 to 1. "
            "Section III-B has one public and one private move a step; the loops of Algorithm 2 leave their numbers open. "
            "At ε_e1 = .1 the loss on 3 nodes is 3.22ε_e1 with ten public moves for a private one. On 4 nodes it is "
            "between 1.27ε_e1 and 3.82ε_e1 for all numbers of moves that were tried: 1, 2, 3, 4 and 10 private ones, 1, 10 "
            "and 100 public ones. On 5 nodes without public edges it is 1.37ε_e1. The published code has the 2 and "
            "Equation 19"
        ),
        instead=(
            "one acceptance with min(1, exp(Δlog L_pub + ε_e1·Δlog L_pri/(2Δ))), Δ of Equation 19, and V_pri declared in "
            "public: the exponential mechanism over the public law, ε_e1 at the stationary law."
        ),
        cost="the weight of log L falls by a factor of 2.14 at 2,000 private nodes",
        reconsider="a proof for the product of two kernels, or another reading of 'each public step' and of Δ",
    ),
    Statement(
        key="heterorr-no-two",
        title="exponent without the 2",
        kind=Kind.PUBLISHED,
        claim="Acceptance with exp(ε_e1·Δlog L_pri/Δ), without a 2 in the denominator, satisfies ε_e1-DP.",
        place="Equation 14",
        adjacency=PRIVATE_EDGE,
        audits=(TREE + "edge_rr_dendrogram",),
        output="for each pair of leaves (01, 02, .., 12, ..) how many leaves their lowest common ancestor has below it",
        scope=STATIONARY
        + ", Equation 19, no public edges, all nodes in V_pri; all pairs of 4 nodes",
        setting=(
            "Section V has ε_e from .1 to 1. There we found an excess on 5 nodes alone, 1.007ε_e1 at .1 and 1.004ε_e1 at "
            ".2; graphs of 5 nodes keep it at .35, .5 and 1, and those of 4 and 6 nodes at .1, .5 and 1 (.992ε_e1 at "
            "most). At 2 and 5 it is 1.16ε_e1 and 1.50ε_e1 on 6 nodes. pytest --full "
            "tests/unit/audits/test_alternating_moves.py computes those of 4 and 5 nodes. What is proved without the 2 is "
            "2ε_e1. The published code has the 2"
        ),
        instead="2Δ in the denominator (McSherry & Talwar 2007).",
        cost="half the weight",
        reconsider="a proof of ε_e1 without the 2, from more than the sensitivity of log L",
    ),
    Statement(
        key="heterorr-alternating",
        title="alternating moves, one private move a step",
        kind=Kind.PUBLISHED,
        claim=(
            "The sampling process, which alternates public and private moves, is ε_e1-DP, since the exponential mechanism "
            "is."
        ),
        place="Section IV, after Lemma 4; Equations 12 to 14, Algorithm 2 lines 5 to 19",
        adjacency=PRIVATE_EDGE,
        audits=(
            TREE + "edge_rr_one_private_move",
            TREE + "edge_rr_three_private_moves",
        ),
        output="for each pair of leaves (01, 02, .., 12, ..) how many leaves their lowest common ancestor has below it",
        scope=STATIONARY
        + (
            ", with the 2 and Equation 19, all nodes in V_pri. One private move a step: all pairs of 3 nodes with public "
            "edges 0-1 and 0-2. Three private moves a step: all pairs of 4 nodes with public edges 0-3 and 1-2"
        ),
        inputs=WEDGE,
        condition="one public and one private move a step; 0.1782 with ten public ones",
        setting=(
            "Suppose that the 2 and Δ of Equation 19 are put right, and V_pri is public: alternating moves alone break it. "
            "Section III-B has one of each a step; the loops of Algorithm 2 leave their numbers open. With one private "
            "move a step it fails on 3 nodes at ε_e1 = .1, with 1.03ε_e1 to 1.78ε_e1, and all graphs of 3 and 4 nodes keep "
            "it at .9 and more. With three it fails on 4 nodes at .05 (1.05ε_e1) and on 5 nodes at .1 (1.17ε_e1), with 100 "
            "public moves; at .1 all graphs of 4 nodes keep it. With 2, 4, 5, 6, 10 or 50, all graphs of 3 and 4 nodes "
            "keep it at ε_e1 of .001, .1, 1 and 20 (pytest --full tests/unit/audits/test_alternating_moves.py "
            "tests/unit/mechanisms/test_known_losses.py); larger ones are not known. The example of the published code has "
            "1,000 public and 10 private moves, and samples after any of them"
        ),
        instead="one joint acceptance for both likelihoods; its proof covers every number of nodes.",
        cost="none",
        reconsider="a statement that a step has two private moves, or four and more, and a proof for it",
    ),
    Statement(
        key="heterorr-reversible",
        title="chain reversible",
        kind=Kind.PUBLISHED,
        claim="The MCMC process is reversible and ergodic, so that it has one equilibrium.",
        place="Section III-B, after Equation 14",
        settled=Settled(
            Verdict.VIOLATED,
            "reversible → π_iP_ij ≠ π_jP_ji on 3 nodes with public edge 0-1 and private edge 0-2; ergodic: yes",
            "Each kind of moves is reversible for its own law; their product is not reversible for any. It is "
            "ergodic, so that there is one equilibrium, which is neither law: this is why the exponential "
            "mechanism's proof does not apply.",
            TESTS + "test_the_alternating_chain_is_not_reversible",
        ),
        inputs="3 nodes, public edge 0-1, private edge 0-2",
        instead="joint moves are reversible and ergodic.",
        reconsider="a law for which the two kinds of moves in turn are reversible",
    ),
    Statement(
        key="heterorr-vpri",
        title="V_pri taken from the data",
        kind=Kind.PUBLISHED,
        claim="EdgeRR satisfies ε_e-DP where V_pri are the nodes that have at least one private edge.",
        place="Section III-B (definition of V_pri), Algorithm 2 lines 22 to 28",
        adjacency=PRIVATE_EDGE,
        audits=(
            RELEASE + "edge_rr_private_nodes",
            TREE + "edge_rr_private_nodes_dendrogram",
        ),
        output=(
            "a bit for each pair of the released graph; for the dendrogram alone, for each pair of leaves how many "
            "leaves their lowest common ancestor has below it"
        ),
        scope="all pairs of 2 nodes for the graph; of 6 nodes up to renaming for the dendrogram alone",
        setting=(
            "infinite at any size and budget: without a lone private edge its ends are outside V_pri, and the pair is "
            "copied as empty; with it the pair is drawn. The published code takes V_pri from the edges, too"
        ),
        instead="a set of nodes that is public, declared before the data are seen.",
        cost="n²/|V_pri|² times as many pairs are drawn",
        reconsider="a statement that V_pri is public knowledge, and contains nodes without private edges",
    ),
    Statement(
        key="heterorr-counts",
        title="CalculateNoisyProb, ε_e2",
        kind=Kind.PUBLISHED,
        claim="CalculateNoisyProb satisfies ε_e2-DP, its global sensitivity being 1.",
        place="Section IV; Algorithm 3",
        adjacency=PRIVATE_EDGE,
        audits=(
            RELEASE + "noisy_probabilities",
            RELEASE + "noisy_probabilities_unpooled",
        ),
        scope=(
            "all numbers of nodes where one draw serves a pooled subtree of m nodes (where lines 7 and 8 draw anew for each "
            "descendant, the loss is (m − 1)ε_e2: heterorr-counts-fresh); computed on 4 nodes"
        ),
        proof="Every edge is counted in exactly one noisy count, of sensitivity 1: the others are post-processing.",
    ),
    Statement(
        key="heterorr-counts-fresh",
        title="CalculateNoisyProb, a draw a descendant",
        kind=Kind.AMBIGUOUS,
        claim=(
            "CalculateNoisyProb satisfies ε_e2-DP where lines 7 and 8 of Algorithm 3 draw new noise for each "
            "descendant."
        ),
        place="Algorithm 3, lines 7 and 8: 'for each child internal node', read as all below, which need a probability too",
        adjacency=PRIVATE_EDGE,
        audits=(RELEASE + "noisy_probabilities_fresh", RELEASE + "edge_rr_fresh"),
        output="noisy counts of the internal nodes; for the graph, a bit for each pair (01, 02, .., 12, ..)",
        scope="all pairs of 3 nodes",
        setting=(
            "(m − 1)ε_e2 for a pooled subtree of m private nodes; the published code has one draw (setNoisyPrBelow of "
            "ERand/src/dendro.h)"
        ),
        instead="one draw for a pooled subtree: ε_e2, tight.",
        cost="none",
    ),
    Statement(
        key="heterorr-edgerr",
        title="EdgeRR, ε_e1 + ε_e2",
        kind=Kind.PUBLISHED,
        claim="EdgeRR satisfies ε_e-DP for private edges with ε_e = ε_e1 + ε_e2.",
        place="Section IV, last sentence; Algorithm 2",
        adjacency=PRIVATE_EDGE,
        audits=(RELEASE + "edge_rr",),
        output="for each pair (01, 02, .., 12, ..) whether the released graph has the edge",
        scope=(
            STATIONARY
            + "; acceptance and sensitivity as printed, V_pri public, no public edges, and nothing pooled: the paper "
            "prints no thresholds, and with those of privHRG and of the published code (τ₁ = .05) so small a graph does "
            "not depend on its dendrogram. All pairs of 4 nodes"
        ),
        setting=(
            "with hardly any ε_e2, so that the graph shows the dendrogram; other splits show less on so few nodes. With "
            "V_pri from the data, as printed, the loss is infinite (heterorr-vpri). One run of the published code writes "
            "ten graphs (num_samples of ERand/src/main.cpp), each with fresh noise and with the log likelihood of its "
            "dendrogram, without noise; if more than one is released, the budgets add up"
        ),
        instead=(
            "all repairs together are certified for ε_e1 + ε_e2 on 4 nodes at the stationary law, where the exponential "
            "mechanism's proof covers every size."
        ),
        cost="those of the parts",
        reconsider="a proof for its parts (heterorr-no-two and heterorr-dendrogram)",
    ),
    Statement(
        key="heterorr-permanent",
        title="permanent, without accumulation",
        kind=Kind.PUBLISHED,
        claim="A graph that is perturbed once can be reused without accumulating loss.",
        place="Section I",
        unaudited="post-processing of one release; true wherever the release is private",
    ),
    Statement(
        key="heterorr-both",
        title="features and edges together",
        kind=Kind.PUBLISHED,
        claim="The final graph combines ε_f-LDP features with an ε_e-DP structure.",
        place="Section III, overview",
        unaudited="the two are about different neighbours and composed nowhere; each is audited on its own",
    ),
    Statement(
        key="heterorr-bounds",
        title="tighter error bounds",
        kind=Kind.PUBLISHED,
        claim=(
            "Randomization probabilities of features and of edges are better, and error bounds tighter, than those of "
            "existing approaches."
        ),
        place="Abstract; the probabilities also in Sections I and II",
        unaudited=(
            "no bound on an error is stated. For one value of 1/2 or of 1 in 10 bins at ε_i = .1, FeatureRR's mean "
            "squared error is .08 or .28, and Duchi's on [0, 1] is 100; but FeatureRR is biased, by −.44 at 1 and .54 at 0, "
            "and Duchi's is not, so that means over 514 neighbours or more with value 1 have the smaller error with Duchi's "
            "(" + TESTS + "test_errors_of_feature_rr_and_of_an_unbiased_mechanism)"
        ),
    ),
    Statement(
        key="heterorr-count",
        title="number of dendrograms",
        kind=Kind.PUBLISHED,
        claim="There are (2n − 3)!! dendrograms over n leaves.",
        place="Section III-B",
        settled=Settled(
            Verdict.CERTIFIED,
            "3, 15, 105, 945 for 3 to 6 leaves",
            "A leaf can be added beside any of 2n − 1 nodes of a dendrogram of n leaves.",
            TESTS + "test_the_number_of_dendrograms",
        ),
    ),
    Statement(
        key="heterorr-utility",
        title="utility and attacks of the figures",
        kind=Kind.PUBLISHED,
        claim="HeteroRR beats the baselines; LinkTeller falls to .52–.54 ROC-AUC and images cannot be reconstructed.",
        place="Section V, Figures 6 to 8",
        unaudited=EMPIRICAL,
    ),
)

PAPER = Paper(
    key="heterorr",
    title="HeteroRR: Tran et al. 2022, arXiv:2211.05766",
    read=(
        "We read a text of arXiv:2211.05766 from beginning to end with its appendices and without its figures; the number "
        "of its version was not noted. Minus signs of Equations 7, 8, 15 and 18 were read from the proofs. Section III-B "
        "has one public and one private move a step, and the loops of Algorithm 2 leave their numbers open; when the chain "
        "has converged is open, too. Of the published code (khangtran2020/DPGNN at 205d905f and cafdc9a) we read what the "
        "cards name, and ran none. No file of it that we read has the mechanism of Equation 8. Its EdgeRR, folder "
        "ERand/src, has the 2 and Equation 19 in its constant T, one draw for a pooled subtree and the thresholds .05 and "
        ".01; the example of its README has 1,000 public and 10 private moves a step. So what is said of Equations 14 and "
        "15 is about the print."
    ),
    statements=STATEMENTS,
    parameters={
        "epsilon": Parameter(
            "ε",
            "claimed budget in nats",
            "ε_e of .1 to 1 for edges; ε_f not in the text",
        ),
        "epsilon1": Parameter("ε_e1", "budget of the dendrogram", "not printed"),
        "epsilon2": Parameter("ε_e2", "budget of the noisy counts", "not printed"),
        "bins": Parameter("k", "number of bins", "not printed"),
        "features": Parameter("d", "number of features", "not printed", ascending=True),
        "nodes": Parameter("n", "number of nodes", "not in the text", ascending=True),
        "public_moves": Parameter(
            "public moves",
            "public moves of a step",
            MOVES_OF_A_STEP,
        ),
        "private_moves": Parameter(
            "private moves",
            "private moves of a step",
            MOVES_OF_A_STEP,
        ),
    },
)
