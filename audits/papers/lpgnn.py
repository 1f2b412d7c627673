"""Statements of Sajadmanesh & Gatica-Perez (2021), arXiv:2006.05535: slides of a talk on the paper."""

from auditdp.record.results import Verdict
from audits.ledger.statements import Fault, Kind, Paper, Parameter, Settled, Statement

DEPLOYED = "audits/audit_trainers_deployed.py::"
FEATURES, LABELS = "audits/audit_features.py::", "audits/audit_labels.py::"
TESTS = "tests/unit/audits/test_counterexamples_lpgnn.py::"
RECORD = "Any two records of features of one user, each feature in [α, β]."
ONE_OF_ALL = "Two populations in which the record of one user is another; everything that all users send is released."
LABEL = "Any two labels of one user."

STATEMENTS = (
    Statement(
        key="lpgnn-encoder",
        title="multi-bit encoder, ε-LDP",
        kind=Kind.PUBLISHED,
        claim="The multi-bit encoder, m of d features with ε/m each by the 1-bit mechanism, provides ε-LDP.",
        place=(
            "Slides 'Multi-bit mechanism for multidimensional perturbation', which give the budget ε/m and do not state "
            "ε-LDP of the whole"
        ),
        adjacency=RECORD,
        audits=(
            FEATURES + "multi_bit",
            FEATURES + "one_bit",
            FEATURES + "multi_bit_everybody",
        ),
        scope="all d, m and ε; computed over the whole box of 3 features, and for two users",
        proof=(
            "Which features are sent does not depend on them; given the choice, each of m independent bits has odds "
            "between e^(−ε/m) and 1 times those of any other value."
        ),
        setting="d is 1,433 on Cora; the proof covers it",
    ),
    Statement(
        key="lpgnn-rectifier",
        title="rectifier unbiased",
        kind=Kind.PUBLISHED,
        claim="The rectifier de-biases the encoder's output: E[x′] = x.",
        place="Slides 'Multi-bit rectifier'",
        audits=(FEATURES + "multi_bit_rectifier",),
        scope="all d, m, ε and x in [α, β]; played at −1, 1/2 and 2 for [α, β] = [−1, 2], d = 3 and ε = 4.5",
        proof=(
            "E[x*] = (m/d)·(2(x−α)/(β−α) − 1)·(e^(ε/m)−1)/(e^(ε/m)+1), which the rectifier's factor and offset turn "
            "into x."
        ),
    ),
    Statement(
        key="lpgnn-biased",
        title="the encoder's output is biased",
        kind=Kind.PUBLISHED,
        claim="The encoder's output is a biased estimate of the features.",
        place="Slide 'Multi-bit rectifier'",
        settled=Settled(
            Verdict.CERTIFIED,
            "for [α, β] = [0, 1], E[x*] < x for every x",
            "For [α, β] = [0, 1], E[x*] = s(x − 1/2) with s = 2(m/d)·tanh(ε/(2m)) < 2, which is −s/2 at 0 and s/2 at 1. On "
            "another range it may meet x: in the middle of [−1, 1], and everywhere if the range is [−a, a], a = s/2.",
            TESTS + "test_the_encoder_alone_is_biased",
        ),
    ),
    Statement(
        key="lpgnn-variance",
        title="variance of the rectifier",
        kind=Kind.DERIVED,
        claim="The estimate's variance is at most (d/m)((β−α)/2·(e^(ε/m)+1)/(e^(ε/m)−1))².",
        place="from the law of the encoder; the slides have no variance",
        audits=(FEATURES + "multi_bit_variance",),
        scope="all d, m, ε and x in [α, β]; played at −1, 1/2 and 2 for [α, β] = [−1, 2], d = 3 and ε = 4.5",
        proof=(
            "The estimate is a step from the middle with probability m/d; its second moment about the middle is "
            "the bound."
        ),
    ),
    Statement(
        key="lpgnn-best-m",
        title="best number of sampled features",
        kind=Kind.PUBLISHED,
        claim="The number of sampled features that makes the variance least is m = max(1, min(d, ⌊ε/2.18⌋)).",
        place=(
            "github.com/sisaman/LPGNN at 02c60f1 of 2 July 2025, mechanisms.py: math.floor(self.eps / 2.18), the same at "
            "01549bd0 of 7 March 2021; not on the slides"
        ),
        settled=Settled(
            Verdict.VIOLATED,
            "least variance at ε = 4 → 1.25 times that of m = 2",
            "The largest variance is proportional to coth²(ε/(2m))/m. At ε = 4 the formula has m = 1 and 1.0760, "
            "while m = 2 has .862. 2.18 is where the continuous optimum is; rounding it down is not the best integer.",
            TESTS + "test_the_best_number_of_sampled_features",
        ),
        fault=Fault.BEYOND,
        inputs="ε = 4, m = 1 by the formula: the largest variance is that of a feature in the middle of [α, β]",
        setting=(
            "m = 1 is best up to ε = 3.05, as the formula has it. The slides have ε_x = 1, and experiments.py has a finite "
            "ε_x of 3 at most from b6a1ec3 of 10 April 2021 on; at 01549bd0 it lists ε = 4, where m = 1 is not best"
        ),
        instead="the better of ⌊ε/2.18⌋ and ⌈ε/2.18⌉ by coth²(ε/(2m))/m.",
        cost="none",
        reconsider="a criterion other than the largest variance of a feature",
    ),
    Statement(
        key="lpgnn-labels",
        title="label randomised response",
        kind=Kind.PUBLISHED,
        claim="Keeping a label with probability e^ε/(e^ε + c − 1), else a uniform other, provides ε-label DP.",
        place="Slide 'Randomized Response for label differential privacy'",
        adjacency=LABEL,
        audits=(LABELS + "label_rr",),
        scope="all c and ε; computed for 4 classes",
        proof="Every output has probability e^ε/(e^ε + c − 1) or 1/(e^ε + c − 1).",
        parameters={"epsilon": Parameter("ε", "claimed budget in nats", ".5 to 3")},
    ),
    Statement(
        key="lpgnn-both",
        title="features and label together",
        kind=Kind.IMPLIED,
        claim=(
            "Encoded features and noisy label of one record provide (ε_x + ε_y)-LDP together, and ε_y for the "
            "label alone."
        ),
        place="Slides 'Experimental results', which vary ε_x and ε_y",
        adjacency="Any two records of features and a label; or any two labels of the same features.",
        audits=(LABELS + "features_and_label", LABELS + "label_beside_features"),
        scope="all d and c; computed for one word and 3 classes",
        proof="Features and label are sent with independent randomness: losses add.",
    ),
    Statement(
        key="lpgnn-deployed",
        title="raw records in, reports and model out",
        kind=Kind.IMPLIED,
        claim="All reports, the noisy labels and the model trained on them are (ε_x + ε_y)-DP for one user's record.",
        place="the pipeline as a whole: encoder, randomised response, KProp and Drop",
        adjacency="Two populations in which the feature and the label of one user are others; the edges are public.",
        audits=(DEPLOYED + "lpgnn_deployed",),
        output="every report, every noisy label (1 or −1), and the weights of the model",
        scope="a ring of 41 users with one feature, two epochs; features clipped to public bounds",
        setting="scaled by the population's range, as pipelines of the field do, it is refuted (lpgnn-minmax)",
    ),
    Statement(
        key="lpgnn-accuracy-bound",
        title="Acc* of noisy labels",
        kind=Kind.PUBLISHED,
        claim="Randomised response gives an upper bound on label accuracy, Acc* = p(y′ = y) = e^c/(e^c + c − 1).",
        place="Slide 'Prevent absorbing noise in y′'",
        settled=Settled(
            Verdict.VIOLATED,
            "c = 7, ε = 1: .995 → .312",
            "The probability that a label is kept is e^ε/(e^ε + c − 1), as the slide on randomised response has it; "
            "e^c is a slip for e^ε. It is what a model that is right on all clean labels has on noisy ones; one that fits "
            "their noise has more, for which the slide stops training.",
            TESTS + "test_the_accuracy_of_noisy_labels",
        ),
        fault=Fault.SLIP,
        inputs="c = 7 classes and ε = 1",
        instead="p(y′ = y) = e^ε/(e^ε + c − 1).",
        cost="none: a slip of the slide",
    ),
    Statement(
        key="lpgnn-budget-scales",
        title="budget grows with the number of features",
        kind=Kind.PUBLISHED,
        claim="With the same noise for each feature, the total privacy budget of a node grows with their number.",
        place="Slide 'High-dimensional features'",
        settled=Settled(
            Verdict.CERTIFIED,
            "d features with ε each lose dε",
            "d independent 1-bit reports with ε each lose dε where all features move from one end to the other.",
            TESTS + "test_the_budget_grows_with_the_number_of_features",
        ),
    ),
    Statement(
        key="lpgnn-cancels",
        title="noise cancels out in aggregation",
        kind=Kind.PUBLISHED,
        claim="Aggregating over a neighbourhood cancels the noise out, but not where there are few neighbours.",
        place="Slides 'Why local DP?' and 'Small neighborhoods'",
        settled=Settled(
            Verdict.CERTIFIED,
            "the standard deviation falls as 1/√k: 1,433 features in [0, 1] at ε = 1 (m = 1) need up to 167,758 neighbours "
            "for .1",
            "Estimates of different users are independent and unbiased, so that a mean over k of them has the k-th "
            "part of the variance (d/m)((β−α)/2·coth(ε/2m))². How far that is from cancelled depends on d/m.",
            TESTS + "test_how_many_neighbours_cancel_the_noise",
        ),
    ),
    Statement(
        key="lpgnn-unclipped",
        title="features outside [α, β]",
        kind=Kind.DERIVED,
        claim="The encoder with its probabilities cut to [0, 1] provides ε-LDP for features outside [α, β] too.",
        place=(
            "the formula on the slides 'Multi-bit mechanism for multidimensional perturbation', which do not clip x"
        ),
        adjacency="Any two records of one user, whatever numbers they hold.",
        settled=Settled(
            Verdict.VIOLATED,
            "ε = 1 → ∞ at x = β + (β−α)/(e−1)",
            "There the printed probability is 1, so that the bit is never 0, which it is with positive probability "
            "within [α, β]. The slides do not say where x may lie.",
            TESTS + "test_a_feature_beyond_the_range",
        ),
        instead="clip features to public [α, β] first.",
    ),
    Statement(
        key="lpgnn-minmax",
        title="published code: scaling by the population's range",
        kind=Kind.CODE,
        claim=(
            "With [α, β] the population's range of each feature, everything released keeps ε-LDP for a user's record."
        ),
        place=(
            "github.com/sisaman/LPGNN at 01549bd0 of 7 March 2021, class Normalize in transforms.py, which datasets.py "
            "calls for a range of features; 02c60f1 of 2 July 2025 calls it with (0, 1) by default. The slides do not say "
            "where α and β are from"
        ),
        adjacency=ONE_OF_ALL,
        audits=(FEATURES + "min_max",),
        output="what each user sends, −1 or 1 for a feature; nan where the feature is not released",
        scope="all pairs of two users with a feature of −1, 0 or 1; features without a range are kept",
        setting=(
            "nε is the worst of all populations of n users, one number outside the range of the others. Cora's features "
            "are 0 or 1, bounds that are public already: there scaling changes nothing but for words that one user "
            "alone has"
        ),
        instead="public bounds and clipping keep ε; with the population's range the loss is up to nε, which is attained.",
        cost="noise grows with the width of the public bounds",
        reconsider=(
            "a sentence that α and β are public constants, fixed before the data are seen; code would then take them as an "
            "argument and compute none"
        ),
    ),
    Statement(
        key="lpgnn-code-drop",
        title="published code: features without a range dropped",
        kind=Kind.CODE,
        claim="Scaling that drops features that are the same for everybody keeps ε-LDP for a user's record.",
        place=(
            "github.com/sisaman/LPGNN at 01549bd0 of 7 March 2021 and at 02c60f1 of 2 July 2025, class Normalize in "
            "transforms.py: columns with delta = 0 are removed"
        ),
        adjacency=ONE_OF_ALL,
        audits=(FEATURES + "min_max_dropped",),
        output="what each user sends, −1 or 1 for a feature; nan where the feature is not released",
        scope="all pairs of two users with a feature of −1, 0 or 1",
        instead="public bounds and clipping keep ε.",
    ),
    Statement(
        key="lpgnn-code-range",
        title="early published code: estimates in the data's range",
        kind=Kind.CODE,
        claim="Estimates that are scaled back to the population's range keep ε-LDP for a user's record.",
        place=(
            "github.com/sisaman/LPGNN at 0069ce52 of 7 September 2020: fit, PrivGraphConv and MultiOneBit of privacy.py, "
            "which take x.min and x.max of the data"
        ),
        adjacency=ONE_OF_ALL,
        audits=(FEATURES + "min_max_estimates",),
        scope=(
            "one pair of populations of two users. The code stops for a feature without a range, as it divides 0 by 0"
        ),
        setting="at ε = 1 PrivGraphConv estimates −.58 or 1.58 from the former, −2.16 or 2.16 from the latter",
        instead="public bounds and clipping keep ε.",
    ),
    Statement(
        key="lpgnn-one-report",
        title="one scaled report, seen alone",
        kind=Kind.DERIVED,
        claim="After min–max scaling by the population any one report that is seen alone keeps ε.",
        place="of the scaling of lpgnn-minmax",
        adjacency="Two populations in which the record of one user is another; one user's report is seen.",
        audits=(FEATURES + "min_max_one_report",),
        scope="all pairs of three users with a feature of −1, 0 or 1",
        proof="A report is ε-LDP in the scaled record that it is about, whatever the record is computed from.",
    ),
    Statement(
        key="lpgnn-kprop",
        title="KProp and Drop",
        kind=Kind.PUBLISHED,
        claim=(
            "KProp extends neighbourhoods to K hops and denoises features and labels; Drop needs no clean "
            "validation data."
        ),
        place=(
            "Slides 'KProp denoising layer', 'Denoising labels with KProp' (how is K found without clean validation data?), "
            "'Label denoising with propagation' and 'Drop algorithm', which answer it"
        ),
        unaudited=(
            "post-processing of what was sent, with no privacy claim of its own; the experiments repeat its accuracy"
        ),
    ),
    Statement(
        key="lpgnn-results",
        title="accuracy of the tables",
        kind=Kind.PUBLISHED,
        claim=(
            "Feature privacy almost comes for free in simpler models; MBM beats ad-hoc features; Drop beats the others."
        ),
        place="Slides 'Experimental results' and 'Summary'",
        unaudited="a claim about accuracy, which the experiments of this project repeat",
    ),
)

PAPER = Paper(
    key="lpgnn",
    title="LPGNN: Sajadmanesh & Gatica-Perez 2021, arXiv:2006.05535",
    read=(
        "We read the slides of a talk of July 29, 2021, as text and without their figures, and not the paper (CCS 2021, "
        "arXiv:2006.05535). Every statement is on the slides but the best number of sampled features, which is from the "
        "published code, as are the ranges of ε (experiments.py at 02c60f1) and the numbers of users and features."
    ),
    work="talk",
    values_of="published code",
    statements=STATEMENTS,
    parameters={
        "epsilon": Parameter("ε", "claimed budget in nats", ".01 to 3"),
        "epsilon_features": Parameter("ε_x", "budget of the features", ".01 to 3"),
        "epsilon_label": Parameter("ε_y", "budget of the label", ".5 to 3"),
        "others": Parameter("others", "users whose record is the same"),
        "dimension": Parameter("d", "number of features", "1,433 on Cora"),
        "classes": Parameter("c", "number of classes", "4, 7, 10 and others"),
        "users": Parameter(
            "users",
            "users of the population",
            "2,708 on Cora",
            ascending=True,
        ),
        "margin": Parameter("margin", "bias that still counts as none"),
    },
)
