"""The classics of the auditing literature: every claim as it is published, true or false.

Adjacency decides most of these claims. "One answer changes" is a histogram, or disjoint counts; "all answers may change" is
arbitrary queries of sensitivity 1. Where a claim holds for the one and not for the other, both are audited. Finite
mechanisms are certified on all pairs of small counts; the exact ε and where it comes from is said in each docstring. What
says which answers are large is in ``audit_classic_selection.py`` and ``audit_classic_sparse_vector.py``.

A claim is the same for every ε. True ones are audited at an ε near 1, where the budget suffices to see half of the noise:
what ``auditdp mutate`` derives is refuted, or argued to keep the claim.
"""

import math

import numpy as np
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

from auditdp import (
    AnyValues,
    ApproxDP,
    Audit,
    Neighbours,
    Pair,
    PureDP,
    QueryAnswers,
    audit,
)
from mechanisms.classic import (
    BatchSums,
    Gaussian,
    GaussianAbove,
    LaplaceParallel,
    LaplaceSum,
    NaiveLaplace,
    NoisyHistogram1,
    NoisyHistogram2,
    OneTimeRappor,
    PrefixSum,
    Rappor,
    TruncatedGeometric,
)

STATDP = "Ding et al. 2018 (StatDP), arXiv:1805.10277"
SHADOW = "Wang et al. 2019 (shadow execution), arXiv:1903.12254"
RAPPOR = "Erlingsson, Pihur & Korolova 2014, arXiv:1407.6981"
DWORK_ROTH = "Dwork & Roth 2014, The Algorithmic Foundations of Differential Privacy"


def counts(length, largest=2):
    """All vectors of ``length`` counts in 0..largest: few enough to enumerate their pairs."""
    return QueryAnswers(length, largest=largest)


@audit(source="Dwork, McSherry, Nissim & Smith 2006, Proposition 1")
def laplace_sum(epsilon=0.9):
    """An answer x + Lap(1/ε) provides ε-DP where x changes by at most 1.

    True, and exactly ε.
    """
    return Audit(
        mechanism=LaplaceSum(epsilon),
        claim=PureDP(epsilon),
        pairs=counts(1),
        controls=[LaplaceSum(10 * epsilon)],
    )


@audit(
    source="Dwork, McSherry, Nissim & Smith 2006, Proposition 1, with the sensitivity of one answer",
    expect="violation",
)
def laplace_sum_of_all(epsilon=1.0, queries=5):
    """The sum of k answers plus Lap(1/ε) provides ε-DP where all answers may change by 1.

    False: kε.
    """
    return Audit(
        mechanism=LaplaceSum(epsilon),
        claim=PureDP(epsilon),
        pairs=QueryAnswers(queries, "all"),
    )


@audit(source="Bichsel et al. 2021 (DP-Sniper), LaplaceParallel")
def laplace_parallel(epsilon=0.25, copies=4):
    """Four copies of x + Lap(4) provide 1-DP.

    True by composition, and exact: the losses of all copies add up.

    Twenty copies at ε = .005 in the source.
    """
    total = copies * epsilon
    return Audit(
        mechanism=LaplaceParallel(epsilon, copies),
        claim=PureDP(total),
        pairs=counts(1),
        controls=[LaplaceParallel(100 * epsilon, copies)],
    )


@audit(source=f"{STATDP}, Algorithm 9")
def noisy_histogram1(epsilon=0.9, queries=3):
    """Counts with Lap(1/ε) on each provide ε-DP where one count changes by 1.

    True, and exactly ε.
    """
    return Audit(
        mechanism=NoisyHistogram1(epsilon),
        claim=PureDP(epsilon),
        pairs=counts(queries),
        controls=[NoisyHistogram1(10 * epsilon)],
        calls=200_000,
    )


@audit(source=f"{STATDP}, Algorithm 9, read for arbitrary queries", expect="violation")
def noisy_histogram1_of_queries(epsilon=1.0, queries=5):
    """Answers with Lap(1/ε) on each provide ε-DP where all k may change by 1.

    False: kε, the sum of the k losses.
    """
    return Audit(
        mechanism=NoisyHistogram1(epsilon),
        claim=PureDP(epsilon),
        pairs=QueryAnswers(queries, "all"),
    )


@audit(source=f"{STATDP}, Algorithm 10", expect="violation")
def noisy_histogram2(epsilon=0.1, queries=5):
    """Counts with Lap(ε) on each provide ε-DP where one count changes by 1.

    False for ε < 1: exactly 1/ε.
    """
    return Audit(
        mechanism=NoisyHistogram2(epsilon),
        claim=PureDP(epsilon),
        pairs=QueryAnswers(queries),
    )


@audit(source=f"{SHADOW} (PrefixSum)")
def prefix_sum(epsilon=0.9, queries=3):
    """Prefix sums of answers with Lap(1/ε) on each provide ε-DP where one answer changes.

    True, and exactly ε.
    """
    return Audit(
        mechanism=PrefixSum(epsilon),
        claim=PureDP(epsilon),
        pairs=counts(queries),
        controls=[PrefixSum(10 * epsilon)],
    )


@audit(
    source=f"{SHADOW} (PrefixSum), under the neighbours of DP-Sniper's benchmark",
    expect="violation",
)
def prefix_sum_of_queries(epsilon=1.0, queries=10):
    """Prefix sums of k answers with Lap(1/ε) on each provide ε-DP where all answers may change.

    False: kε.

    The paper's claim is for one answer that changes; DP-Sniper's benchmark lets all of them change, where differences of
    the outputs give back k noisy answers of loss ε each.
    """
    return Audit(
        mechanism=PrefixSum(epsilon),
        claim=PureDP(epsilon),
        pairs=QueryAnswers(queries, "all"),
    )


@audit(source="Balcer & Vadhan 2018, arXiv:1709.05396, Theorem 4.7")
def truncated_geometric(epsilon=0.1, most=5):
    """GeoSample provides ln(1 + 2^-⌈log₂(2/ε)⌉)-DP where the count changes by 1.

    True, and exact: at most ε/2.
    """
    mechanism = TruncatedGeometric(epsilon, most)
    # The exact loss ln(1 + 2^-k) is no double; the claim is the next one above.
    return Audit(
        mechanism=mechanism,
        claim=PureDP(math.nextafter(mechanism.spent, math.inf)),
        pairs=counts(1, largest=most),
        controls=[TruncatedGeometric(1.0, most, "natural")],
    )


@audit(
    source="Balcer & Vadhan 2018 as implemented with the natural logarithm (DP-Sniper), at ε",
    expect="violation",
)
def truncated_geometric_natural(epsilon=0.1, most=5):
    """GeoSample with ⌈ln(2/ε)⌉ for ⌈log₂(2/ε)⌉ provides ε-DP.

    False at ε = .1: ln(1 + 2^-3) = .118.

    A violation this small needs some 1e5 calls; exact evidence shows it at once.
    """
    return Audit(
        mechanism=TruncatedGeometric(epsilon, most, "natural"),
        claim=PureDP(epsilon),
        pairs=counts(1, largest=most),
        evidence=["exact"],
    )


@audit(source=f"{RAPPOR}, Theorem 1")
def one_time_rappor(hashes=2, bits=8, f=0.95, values=6):
    """The permanent response provides 2h ln((1−f/2)/(f/2))-DP.

    True: that share of it of the 2h bits that differ.
    """
    return Audit(
        mechanism=OneTimeRappor(hashes, bits, f),
        claim=PureDP(2 * hashes * math.log((1 - f / 2) / (f / 2)) * (1 + 1e-15)),
        pairs=AnyValues(
            [np.array([float(value)]) for value in range(values)], finite=True
        ),
        controls=[OneTimeRappor(hashes, bits, 0.3)],
    )


@audit(source=f"{RAPPOR}, Theorem 1, at the size of DP-Sniper's benchmark")
def one_time_rappor_benchmark(hashes=2, bits=20, f=0.5):
    """The permanent response on 20 bits provides 2h ln((1−f/2)/(f/2))-DP = 4.394.

    True: 3.296 for 1 against 0.

    The filters of 0 and 1 differ in 3 bits of the four that they could. The law has 2^20 outcomes, so the game stands alone.
    DP-Sniper's benchmark has the size of the filter, with h = 4 and f = .95.
    """
    return Audit(
        mechanism=OneTimeRappor(hashes, bits, f),
        claim=PureDP(2 * hashes * math.log((1 - f / 2) / (f / 2))),
        pairs=QueryAnswers(1),
        evidence=["game"],
        controls=[OneTimeRappor(hashes, bits, 0.1)],
    )


@audit(source=f"{RAPPOR}, Theorem 2")
def rappor(hashes=2, bits=8, f=0.75, p=0.45, q=0.55, values=6):
    """One report provides h ln(q*(1−p*)/(p*(1−q*)))-DP.

    True, and exact where two filters share no bit.
    """
    mechanism = Rappor(hashes, bits, f, p, q)
    low, high = (f * (p + q) / 2 + (1 - f) * reported for reported in (p, q))
    return Audit(
        mechanism=mechanism,
        claim=PureDP(
            hashes * math.log(high * (1 - low) / (low * (1 - high))) * (1 + 1e-14)
        ),
        pairs=AnyValues(
            [np.array([float(value)]) for value in range(values)], finite=True
        ),
        controls=[Rappor(hashes, bits, 0.2, 0.1, 0.9)],
        calls=200_000,
    )


@audit(source="Balle & Wang 2018, arXiv:1805.06530, Theorem 8")
def gaussian_analytic(epsilon=0.5, delta=0.1):
    """An answer x + N(0, σ²) with the analytic σ provides (ε, δ)-DP where x changes by 1.

    True, σ being 1e-9 too large.
    """
    return Audit(
        mechanism=Gaussian(epsilon, delta),
        claim=ApproxDP(epsilon, delta),
        pairs=QueryAnswers(1),
        controls=[Gaussian(epsilon, delta, sensitivity=0.1)],
        calls=500_000,
    )


@audit(source=f"{DWORK_ROTH}, Theorem A.1")
def gaussian_classic(epsilon=0.9, delta=1e-3):
    """An answer x + N(0, σ²) with σ = √(2 ln(1.25/δ))/ε provides (ε, δ)-DP for ε < 1.

    True, with δ to spare.

    At ε = .9 and δ = .001 it is δ(.9) = 7.0e-6, and 8.3e-3 with half of the noise.
    """
    return Audit(
        mechanism=Gaussian(epsilon, delta, "classic"),
        claim=ApproxDP(epsilon, delta),
        pairs=QueryAnswers(1),
        controls=[Gaussian(epsilon, delta, "classic", sensitivity=0.1)],
        calls=500_000,
    )


@audit(source=f"{DWORK_ROTH}, Theorem A.1, used beyond ε = 1", expect="violation")
def gaussian_classic_large(epsilon=10.0, delta=0.01):
    """An answer x + N(0, σ²) with σ = √(2 ln(1.25/δ))/ε provides (ε, δ)-DP for any ε.

    False: at (10, .01) δ is .041.

    Shown exactly on the best event. To see it in outputs takes some e^ε calls, because e^ε Q(A) has to be.
    """
    return Audit(
        mechanism=GaussianAbove(Gaussian(epsilon, delta, "classic")),
        claim=ApproxDP(epsilon, delta),
        pairs=QueryAnswers(1),
        evidence=["exact"],
    )


@audit(source="the Laplace scale 1/ε taken for σ", expect="violation")
def gaussian_laplace_scale(epsilon=1.0, delta=1e-5):
    """An answer x + N(0, 1/ε²) provides (ε, δ)-DP where x changes by 1.

    False: δ is .127 at ε = 1, not 1e-5.
    """
    return Audit(
        mechanism=Gaussian(epsilon, delta, "laplace"),
        claim=ApproxDP(epsilon, delta),
        pairs=QueryAnswers(1),
    )


@audit(
    source="Mironov 2012 (Laplace noise by inversion, in float32)", expect="violation"
)
def naive_laplace_float32(epsilon=0.1):
    """An answer x + Lap(1/ε) in float32 provides ε-DP.

    False: 60 % of the outputs for 0 are impossible for 1.
    """
    return Audit(
        mechanism=NaiveLaplace(epsilon, "float32"),
        claim=PureDP(epsilon),
        pairs=QueryAnswers(1),
    )


@audit(
    source="Mironov 2012 (Laplace noise by inversion, in float64)", expect="violation"
)
def naive_laplace_float64(epsilon=0.1):
    """An answer x + Lap(1/ε) in float64 provides ε-DP.

    False: as in float32, most outputs betray their input.
    """
    return Audit(
        mechanism=NaiveLaplace(epsilon, "float64"),
        claim=PureDP(epsilon),
        pairs=QueryAnswers(1),
    )


def _removal(batches, others):
    """One record per batch, the last of them 1 or removed (0), and the rest ``others``."""
    records = np.full(batches, float(others))
    kept, removed = records.copy(), records.copy()
    kept[-1], removed[-1] = 1.0, 0.0

    def one_record_removed(a, b):
        changed = np.flatnonzero(a != b)
        return len(changed) == 1 and 0.0 in (a[changed[0]], b[changed[0]])

    return Neighbours(
        [Pair(kept, removed)],
        one_record_removed,
        "one record in [-1, 1] removed (replaced by 0)",
    )


def _poisson_claim(sigma, batches, epsilon):
    """(ε, δ) of one epoch of Poisson batches, δ rounded up."""
    loss = from_gaussian_mechanism(sigma, sampling_prob=1 / batches).self_compose(
        batches
    )
    return ApproxDP(epsilon, loss.get_delta_for_epsilon(epsilon))


@audit(source="Chua et al. 2024, arXiv:2403.17673 (accounting of Poisson batches)")
def poisson_batches(sigma=0.8, batches=16, epsilon=1.0):
    """Noisy sums of Poisson batches provide the (ε, δ) of composed subsampled Gaussians, (1, .0137).

    True, and tight.
    """
    return Audit(
        mechanism=BatchSums(sigma, batches, "poisson"),
        claim=_poisson_claim(sigma, batches, epsilon),
        pairs=_removal(batches, 0),
        controls=[BatchSums(sigma / 4, batches, "poisson")],
        equivalent_mutants={
            "noise halved: draw 2, binomial *": "a record is in a batch more rarely, and δ grows with the sampling rate"
        },
    )


@audit(
    source="Chua et al. 2024, arXiv:2403.17673: the practice of accounting shuffled batches as Poisson",
    expect="violation",
)
def shuffled_batches(sigma=0.8, batches=16, epsilon=1.0):
    """Noisy sums of shuffled batches provide the (ε, δ) of Poisson batches.

    False: δ(1) is .16 or more, not .0137.
    """
    return Audit(
        mechanism=BatchSums(sigma, batches, "shuffled"),
        claim=_poisson_claim(sigma, batches, epsilon),
        pairs=_removal(batches, -1),
    )
