"""Noisy answers above a threshold: the sparse vector technique, every published claim.

True claims are certified on all pairs of small counts, where the law is finite. The exact ε and where it comes from is
said in each docstring; at which ε a claim is audited, in ``audit_classic.py``.
"""

import numpy as np

from auditdp import Audit, Pair, PureDP, QueryAnswers, audit
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.forecaster import Scored
from mechanisms.classic import SVT1, SVT2, SVT3, SVT4, SVT5, SVT6, NumericSVT

LYU = "Lyu, Su & Li 2017, arXiv:1603.01699"
SHADOW = "Wang et al. 2019 (shadow execution), arXiv:1903.12254"
DWORK_ROTH = "Dwork & Roth 2014, The Algorithmic Foundations of Differential Privacy"
SPARSE = "laplace_noise, called by SparseVector._run"
SVT_EQUIVALENTS = {
    f"noise left out: draw *, bytes in {SPARSE}": (
        "the proof raises the threshold by 1 for either order of a pair, and of the noise it needs f(t) <= e^(1/b) f(t + 1) "
        "for the threshold and P(N > t) <= e^(2/b) P(N > t + 2) for an answer alone: exponential noise of scale b has both"
    ),
}


def crossing(length, *falling):
    """Return a pair on which the transcript "below, .., below, above" becomes rare."""
    return [
        Pair(
            fall := (np.arange(length) < some).astype(float),
            1 - fall,
            f"{some} fall, {length - some} rise",
        )
        for some in falling
    ]


def towards_one(length, *falling):
    """Return a pair: the first answers fall from 2 to 1, the others rise from 0 to 1."""
    ones = np.ones(length)
    return [
        Pair(
            2.0 * (np.arange(length) < some),
            ones,
            f"{some} fall, {length - some} rise to one",
        )
        for some in falling
    ]


class Released:
    """Forecasts from the number of answers below and the released number."""

    name = "released"

    def player(self, mechanism, pair):
        """Return the player of one pair."""
        queries = len(pair.data)

        def released(outputs):
            return np.column_stack(
                [
                    (outputs[:, :queries] == 0).sum(1),
                    np.nansum(outputs[:, queries:], axis=1),
                ]
            )

        return ViewExperts("released: ", prepare=released).player(mechanism, pair)


@audit(source=f"{LYU}, Algorithm 1")
def svt1(epsilon=2.0, stop=1, threshold=0.5, queries=7):
    """SVT1 (ρ: 2/ε, ν: 4c/ε, stop after c) provides ε-DP where all answers may change.

    True: less than ε.

    At ε = .1 and c = 1 it is .0885 on the pattern pairs of ten answers, and .1 to four digits for 40 answers of which all
    but the last fall.
    """
    return Audit(
        mechanism=SVT1(epsilon, stop, threshold),
        claim=PureDP(epsilon),
        pairs=QueryAnswers(queries, "all", largest=1),
        controls=[SVT1(20 * epsilon, stop, threshold)],
        play=crossing(queries, 4, 6),
        calls=1_000_000,
        equivalent_mutants=SVT_EQUIVALENTS,
    )


@audit(source=f"{LYU}, Algorithm 2; {DWORK_ROTH}, Algorithm 2")
def svt2(epsilon=2.0, stop=1, threshold=0.5, queries=7):
    """SVT2 (ρ: 2c/ε drawn again after each positive, ν: 4c/ε) provides ε-DP where all answers may change.

    Audited is c = 1, the stretch up to a positive, of which c with ε/c each compose to ε. So the threshold that is drawn
    again is not seen here: with c = 2 half of its noise costs at most 1.25 ε, and no budget shows that.
    """
    return Audit(
        mechanism=SVT2(epsilon, stop, threshold),
        claim=PureDP(epsilon),
        pairs=QueryAnswers(queries, "all", largest=1),
        controls=[SVT2(40 * epsilon, stop, threshold)],
        play=crossing(queries, 4, 6),
        calls=1_000_000,
        equivalent_mutants=SVT_EQUIVALENTS
        | dict.fromkeys(
            [
                f"noise *: draw 5, standard_exponential in {SPARSE}",
                f"noise *: draw 6, bytes in {SPARSE}",
            ],
            "with c = 1 the run is over when the threshold is drawn again, and nothing is compared with it",
        ),
    )


@audit(source=f"{LYU}, Algorithm 3 (Roth's lecture notes, 2011)", expect="violation")
def svt3(epsilon=2.0, stop=1, threshold=1.0, queries=10):
    """SVT3 releases the noisy answers that are above (ρ: 2/ε, ν: 2c/ε) and provides ε-DP.

    False: kε/(2c) for k answers.

    The output is computed from k answers of loss ε/(2c) each, and a number released below all answers says that all
    before it were lower still: that output attains the bound. So no ε serves for all k.
    """
    return Audit(
        mechanism=SVT3(epsilon, stop, threshold),
        claim=PureDP(epsilon),
        pairs=QueryAnswers(queries, "all"),
        calls=30_000,
    )


@audit(source=f"{LYU}, Algorithm 4 (Lee & Clifton 2014)", expect="violation")
def svt4(epsilon=1.0, stop=1, threshold=1.0, queries=10):
    """SVT4 (ρ: 4/ε, ν: 4/(3ε), stop after c) provides ε-DP where all answers may change.

    False: (1+6c)/4 ε.

    On the pattern pairs of ten answers .1725 at ε = .1 and c = 1, of the bound .175.
    """
    return Audit(
        mechanism=SVT4(epsilon, stop, threshold),
        claim=PureDP(epsilon),
        pairs=QueryAnswers(queries, "all"),
    )


@audit(source=f"{LYU}, on Algorithm 4")
def svt4_repaired(epsilon=1.0, stop=1, threshold=1.0, queries=5):
    """SVT4 provides (1+6c)/4 ε-DP where all answers may change."""
    return Audit(
        mechanism=SVT4(epsilon, stop, threshold),
        claim=PureDP((1 + 6 * stop) / 4 * epsilon),
        pairs=QueryAnswers(queries, "all", largest=2),
        controls=[SVT4(20 * epsilon, stop, threshold)],
        play=[*towards_one(queries, queries - 1), *crossing(queries, queries - 2)],
        calls=2_000_000,
        equivalent_mutants=SVT_EQUIVALENTS,
    )


@audit(source=f"{LYU}, on Algorithm 4 with monotone queries")
def svt4_of_counts(epsilon=0.75, stop=1, threshold=1.0, queries=5):
    """SVT4 provides (1+3c)/4 ε-DP where one count changes: with c = 1 its own claim."""
    zeros, last = np.zeros(queries), np.eye(queries)[-1]
    return Audit(
        mechanism=SVT4(epsilon, stop, threshold),
        claim=PureDP((1 + 3 * stop) / 4 * epsilon),
        pairs=QueryAnswers(queries, largest=1),
        controls=[SVT4(20 * epsilon, stop, threshold)],
        play=[Pair(zeros, last, "last above")],
        calls=500_000,
        equivalent_mutants=SVT_EQUIVALENTS
        | dict.fromkeys(
            [
                f"noise halved: draw 1, standard_exponential in {SPARSE}",
                f"noise left out: draw 1, standard_exponential in {SPARSE}",
            ],
            "a function of the counts with Lap(4/(3ε)) on each and of a threshold that knows no count: 3ε/4",
        ),
    )


@audit(source=f"{LYU}, Algorithm 5 (Stoddard et al. 2014)", expect="violation")
def svt5(epsilon=1.0, threshold=1.0, queries=10):
    """SVT5 (ρ: 2/ε, no query noise, no stop) provides ε-DP.

    False for every ε: the answers' order shows.
    """
    return Audit(
        mechanism=SVT5(epsilon, threshold),
        claim=PureDP(epsilon),
        pairs=QueryAnswers(queries, "all"),
    )


@audit(source=f"{LYU}, Algorithm 6 (Chen et al. 2015)", expect="violation")
def svt6(epsilon=1.0, threshold=1.0, queries=10):
    """SVT6 (ρ: 2/ε, ν: 2/ε, no stop) provides ε-DP.

    False: it grows with the number of answers, up to kε/2.

    On the pattern pairs of ten answers .420 at ε = .1.
    """
    return Audit(
        mechanism=SVT6(epsilon, threshold),
        claim=PureDP(epsilon),
        pairs=QueryAnswers(queries, "all"),
    )


@audit(source=f"{SHADOW} (Numerical Sparse Vector)")
def numeric_svt(epsilon=2.4, stop=1, threshold=0.5, queries=10):
    """NumericSVT (ρ: 3/ε, ν: 6c/ε, released with fresh Lap(3c/ε)) provides ε-DP where all answers may change."""
    twos = np.full(queries, 2.0)
    apart = np.r_[np.full(queries - 2, 1.0), 3, 3]
    return Audit(
        mechanism=NumericSVT(epsilon, stop, threshold),
        claim=PureDP(epsilon),
        pairs=QueryAnswers(queries, "all"),
        controls=[NumericSVT(30 * epsilon, stop, threshold)],
        play=[
            *crossing(queries, queries - 2),
            Pair(twos, apart, "last two above, rest below"),
        ],
        forecasters=[Scored(), Released(), ViewExperts()],
        calls=1_000_000,
        equivalent_mutants=SVT_EQUIVALENTS,
    )
