"""Changes of small mechanisms: harmless ones have exactly the law of the old version, worse ones break its claim.

Every old version keeps its claim exactly on the pair. A harmless change has an argument that two laws are the same, a worse
one has an argument that it loses more than the claim on that pair.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats

from auditdp import GaussianDP, PureDP
from auditdp.claims.claim import Claim
from benchmarks.sound.case import UP, Known
from benchmarks.sound.laws import (
    TAKEN,
    TRUE,
    amplified,
    discrete_laplace,
    exactly,
    flipped,
    softmax,
    two_sided,
)


@dataclass(frozen=True)
class Change:
    """A change: an old version, which keeps its claim, and a new one."""

    old: Known
    new: Known
    worse: bool

    @property
    def name(self) -> str:
        """The name in reports."""
        return self.new.name


CHANGES: list[Change] = []


def changes(
    what: str,
    claim: Claim,
    pair: tuple[Any, Any],
    old: Callable[..., Any],
    *,
    harmless: list[tuple[str, Callable[..., Any], str]],
    worse: list[tuple[str, Callable[..., Any], str]],
) -> None:
    """Add changes of one old version, each as (name, new version, argument)."""
    before = Known(what, old, claim, [pair], claim.level, "")
    for rows, is_worse in ((harmless, False), (worse, True)):
        for name, new, why in rows:
            after = Known(
                f"{what}: {name}",
                new,
                claim,
                [pair],
                math.nan if is_worse else claim.level,
                why,
            )
            CHANGES.append(Change(before, after, is_worse))


def total(values):
    """Return a sum of values that are clipped to 0..1."""
    return sum(min(max(value, 0.0), 1.0) for value in values)


def in_a_thread(values, rng):
    """Return a noisy total whose noise a thread draws."""
    with ThreadPoolExecutor(1) as pool:
        return total(values) + pool.submit(rng.laplace).result()


def copied_and_put_back(values, rng):
    """Return a noisy total; a copy draws, and the generator goes on from there."""
    twin = copy.deepcopy(rng)
    noisy = total(values) + twin.laplace()
    rng.bit_generator.state = twin.bit_generator.state
    return noisy


def copied_and_shown(values, rng):
    """Return a noisy total, and its noise from a copy."""
    twin = copy.deepcopy(rng)
    return total(values) + rng.laplace(), twin.laplace()


def in_a_loop(values, rng):
    """Return a noisy total, to which one value after the other is added."""
    noisy = rng.laplace()
    for value in values:
        noisy += min(max(value, 0.0), 1.0)
    return noisy


def until_positive(values, rng):
    """Return a noisy total that is drawn until it is positive."""
    while (noisy := total(values) + rng.laplace()) < 0:
        pass
    return noisy


changes(
    "total",
    PureDP(1.0),
    ([3.0], [0.0]),
    lambda v, rng: total(v) + rng.laplace(),
    harmless=[
        (
            "difference of exponentials",
            lambda v, rng: total(v) + rng.exponential() - rng.exponential(),
            "It is Laplace.",
        ),
        (
            "mixture of normals",
            lambda v, rng: total(v) + math.sqrt(2 * rng.exponential()) * rng.normal(),
            "Laplace.",
        ),
        (
            "exponential and coin",
            lambda v, rng: total(v) + rng.exponential() * rng.choice([-1, 1]),
            "It is Laplace.",
        ),
        (
            "sign by the data",
            lambda v, rng: total(v) + (1 if sum(v) > 1 else -1) * rng.laplace(),
            "It is symmetric.",
        ),
        ("subtracted", lambda v, rng: total(v) - rng.laplace(), "It is symmetric."),
        (
            "noise around it",
            lambda v, rng: rng.laplace(total(v), 1.0),
            "Laplace noise of scale 1.",
        ),
        (
            "by numpy",
            lambda v, rng: float(np.clip(v, 0, 1).sum()) + rng.laplace(),
            "The same total.",
        ),
        ("noise first", lambda v, rng: rng.laplace() + total(v), "The same sum."),
        ("in a loop", in_a_loop, "The same sum."),
        (
            "child generator",
            lambda v, rng: total(v) + rng.spawn(1)[0].laplace(),
            "Laplace noise of scale 1.",
        ),
        (
            "fresh seed",
            lambda v, rng: (
                total(v) + np.random.default_rng(rng.integers(2**63)).laplace()
            ),
            "Scale 1.",
        ),
        (
            "quantile",
            lambda v, rng: total(v) + scipy.stats.laplace.ppf(rng.random()),
            "The quantile of a uniform number.",
        ),
        (
            "by scipy",
            lambda v, rng: total(v) + scipy.stats.laplace.rvs(random_state=rng),
            "Laplace noise of scale 1.",
        ),
        (
            "one of four",
            lambda v, rng: total(v) + rng.laplace(size=4)[rng.integers(4)],
            "Each is Laplace.",
        ),
        (
            "control variate",
            lambda v, rng: (total(v) + (z := rng.normal())) - z + rng.laplace(),
            "z cancels.",
        ),
        (
            "thirds of gammas",
            lambda v, rng: total(v) + np.subtract(*rng.gamma(1 / 3, size=(2, 3))).sum(),
            "Shapes add up.",
        ),
        ("in a thread", in_a_thread, "Laplace noise of scale 1."),
        ("copied and put back", copied_and_put_back, "Laplace noise of scale 1."),
    ],
    worse=[
        (
            "half the scale",
            lambda v, rng: total(v) + rng.laplace(scale=0.5),
            "It loses 2.",
        ),
        ("half the noise", lambda v, rng: total(v) + rng.laplace() / 2, "It loses 2."),
        (
            "no upper bound",
            lambda v, rng: sum(max(value, 0.0) for value in v) + rng.laplace(),
            "It moves by 3.",
        ),
        (
            "upper bound of 2",
            lambda v, rng: (
                sum(min(max(value, 0.0), 2.0) for value in v) + rng.laplace()
            ),
            "By 2.",
        ),
        (
            "number of positive as well",
            lambda v, rng: [total(v) + rng.laplace(), sum(x > 0 for x in v)],
            "It is exact.",
        ),
        (
            "noise in an interval",
            lambda v, rng: total(v) + float(np.clip(rng.laplace(), -2, 2)),
            "The ends have mass.",
        ),
        (
            "uniform noise",
            lambda v, rng: total(v) + rng.uniform(-3, 3),
            "Intervals differ.",
        ),
        (
            "mean of four",
            lambda v, rng: total(v) + rng.laplace(size=4).mean(),
            "Its tails fall with rate 4.",
        ),
        (
            "bare at times",
            lambda v, rng: total(v) + (rng.random() < 0.9) * rng.laplace(),
            "It is bare in a tenth.",
        ),
        (
            "fixed seed",
            lambda v, rng: total(v) + np.random.default_rng(5).laplace(),
            "The noise is always the same.",
        ),
        (
            "scale by the data",
            lambda v, rng: total(v) + rng.laplace(scale=1 + total(v)),
            "The tails have other rates.",
        ),
        (
            "with the noise",
            lambda v, rng: [total(v) + (z := rng.laplace()), z],
            "The difference is the total.",
        ),
        ("copied and shown", copied_and_shown, "The difference is the total."),
        ("until positive", until_positive, "At 0 it loses ln(2e − 1)."),
        (
            "size of the noise",
            lambda v, rng: total(v) + abs(rng.laplace()),
            "Below 1 comes from 0 alone.",
        ),
        (
            "with the largest",
            lambda v, rng: [total(v) + rng.laplace(), max(v) + rng.laplace()],
            "It moves by 1 + 3.",
        ),
        (
            "twice",
            lambda v, rng: [total(v) + rng.laplace(), total(v) + rng.laplace()],
            "Each loses 1.",
        ),
        (
            "scale by chance",
            lambda v, rng: total(v) + rng.laplace(scale=rng.choice([0.2, 5.0])),
            "It loses 3 at 0 or more.",
        ),
    ],
)


def in_sorted_order(counts, rng):
    """Return noisy counts; the smallest gets its noise first."""
    out, order = np.empty(3), np.argsort(counts)
    out[order] = np.array(counts)[order] + rng.laplace(size=3)
    return out


def from_the_last(counts, rng):
    """Return noisy counts; the last gets its noise first."""
    return np.array([count + rng.laplace() for count in counts[::-1]][::-1])


def in_random_order(counts, rng):
    """Return noisy counts, which are permuted before the noise and put back."""
    order = rng.permutation(3)
    return (np.array(counts) + 0.0)[order][np.argsort(order)] + rng.laplace(size=3)[
        np.argsort(order)
    ]


def by_name(counts, rng):
    """Return noisy counts, through a dictionary in order of the counts."""
    noisy = {
        k: count + rng.laplace()
        for count, k in sorted(zip(counts, range(3), strict=True))
    }
    return np.array([noisy[k] for k in range(3)])


changes(
    "counts",
    PureDP(1.0),
    ([3, 1, 2], [3, 1, 3]),
    lambda c, rng: np.array(c) + rng.laplace(size=3),
    harmless=[
        (
            "in sorted order",
            in_sorted_order,
            "Independent noise may be added in any order.",
        ),
        (
            "from the last",
            from_the_last,
            "Independent noise may be added in any order.",
        ),
        (
            "in random order",
            in_random_order,
            "Independent noise may be added in any order.",
        ),
        ("by name", by_name, "Independent noise may be added in any order."),
        (
            "one by one",
            lambda c, rng: np.array([count + rng.laplace() for count in c]),
            "The same noise.",
        ),
        (
            "more noise than is used",
            lambda c, rng: np.array(c) + rng.laplace(size=5)[:3],
            "The first three.",
        ),
        (
            "in two parts",
            lambda c, rng: np.append(c[:2] + rng.laplace(size=2), c[2] + rng.laplace()),
            "The same noise.",
        ),
        (
            "as a column",
            lambda c, rng: (np.array(c)[:, None] + rng.laplace(size=(3, 1))).ravel(),
            "The same noise.",
        ),
        (
            "permuted noise",
            lambda c, rng: np.array(c) + rng.permutation(rng.laplace(size=3)),
            "Exchangeable.",
        ),
        (
            "exponentials",
            lambda c, rng: np.array(c) + np.subtract(*rng.exponential(size=(2, 3))),
            "It is Laplace.",
        ),
    ],
    worse=[
        (
            "one noise for all",
            lambda c, rng: np.array(c) + rng.laplace(),
            "Differences have no noise.",
        ),
        (
            "noise for the first",
            lambda c, rng: np.array(c) + rng.laplace(size=3) * [1, 1, 0],
            "The last is bare.",
        ),
        (
            "sorted by the counts",
            lambda c, rng: [(k, c[k] + rng.laplace()) for k in np.argsort(c)],
            "The order is exact.",
        ),
        (
            "with their sum",
            lambda c, rng: np.append(c + rng.laplace(size=3), sum(c) + rng.laplace()),
            "It loses 2.",
        ),
        (
            "prefix sums",
            lambda c, rng: np.cumsum(c[::-1]) + rng.laplace(size=3),
            "The last count is in three.",
        ),
        (
            "as shares",
            lambda c, rng: (c + rng.laplace(size=3)) / sum(c),
            "The total is 6 or 7, and the scale its inverse.",
        ),
        (
            "as many as the largest",
            lambda c, rng: [c[k % 3] + rng.laplace() for k in range(c[2])],
            "Lengths 2 and 3.",
        ),
    ],
)

changes(
    "point",
    GaussianDP(1.0),
    ([0.6, 0.8], [0.0, 0.0]),
    lambda p, rng: np.array(p) + rng.normal(size=2),
    harmless=[
        (
            "two parties",
            lambda p, rng: p + 0.6 * rng.normal(size=2) + 0.8 * rng.normal(size=2),
            "Variances add up.",
        ),
        (
            "rotated noise",
            lambda p, rng: p + np.array([[0.8, -0.6], [0.6, 0.8]]) @ rng.normal(size=2),
            "The same law.",
        ),
        (
            "by a covariance",
            lambda p, rng: rng.multivariate_normal(p, np.eye(2)),
            "The same law.",
        ),
        (
            "quantiles",
            lambda p, rng: np.array(p) + scipy.stats.norm.ppf(rng.random(2)),
            "The same law.",
        ),
        (
            "one by one",
            lambda p, rng: np.array([x + rng.normal() for x in p]),
            "The same law.",
        ),
        (
            "second first",
            lambda p, rng: np.array([x + rng.normal() for x in p[::-1]])[::-1],
            "The same law.",
        ),
        (
            "four in the mean",
            lambda p, rng: np.mean([p + rng.normal(0, 2, 2) for _ in range(4)], axis=0),
            "Variance 4/4.",
        ),
        (
            "mirrored",
            lambda p, rng: -(rng.standard_normal(2) - np.array(p)),
            "It is symmetric.",
        ),
    ],
    worse=[
        (
            "half the deviation",
            lambda p, rng: np.array(p) + rng.normal(0, 0.5, 2),
            "It is 2-GDP.",
        ),
        (
            "mean of two",
            lambda p, rng: np.mean([p + rng.normal(size=2) for _ in range(2)], axis=0),
            "√2-GDP.",
        ),
        (
            "released twice",
            lambda p, rng: [p + rng.normal(size=2), p + rng.normal(size=2)],
            "It is √2-GDP.",
        ),
        (
            "one noise for both",
            lambda p, rng: np.array(p) + rng.normal(),
            "The difference is 0.2 or 0.",
        ),
        (
            "correlated",
            lambda p, rng: p + rng.multivariate_normal([0, 0], [[1, -0.9], [-0.9, 1]]),
            "μ² = 1.864/.19.",
        ),
        (
            "uniform noise",
            lambda p, rng: np.array(p) + rng.uniform(-2, 2, 2),
            "Rectangles differ.",
        ),
        (
            "with its square",
            lambda p, rng: [p + (z := rng.normal(size=2)), z**2],
            "The squares leave few points.",
        ),
        (
            "doubled before noise",
            lambda p, rng: 2 * np.array(p) + rng.normal(size=2),
            "It moves by 2.",
        ),
    ],
)

changes(
    "response",
    PureDP(1.0 * UP),
    (0, 1),
    lambda x, rng: x if rng.random() < TRUE else 1 - x,
    harmless=[
        (
            "exclusive or",
            lambda x, rng: x ^ int(rng.random() >= TRUE),
            "True with e/(1 + e).",
        ),
        (
            "by choice",
            lambda x, rng: int(rng.choice([x, 1 - x], p=[TRUE, 1 - TRUE])),
            "True with e/(1 + e).",
        ),
        (
            "by binomial",
            lambda x, rng: x if rng.binomial(1, TRUE) else 1 - x,
            "True with e/(1 + e).",
        ),
        (
            "turned first",
            lambda x, rng: 1 - x if rng.random() < 1 - TRUE else x,
            "True with e/(1 + e).",
        ),
        (
            "upper part",
            lambda x, rng: x if rng.random() > 1 - TRUE else 1 - x,
            "True with e/(1 + e).",
        ),
        (
            "chance of a one",
            lambda x, rng: int(rng.random() < (TRUE if x else 1 - TRUE)),
            "True with e/(1 + e).",
        ),
    ],
    worse=[
        (
            "true with .9",
            lambda x, rng: x if rng.random() < 0.9 else 1 - x,
            "It loses ln 9.",
        ),
        (
            "ones stay",
            lambda x, rng: x if x or rng.random() < TRUE else 1,
            "0 comes from 0 alone.",
        ),
        (
            "asked twice",
            lambda x, rng: [x ^ int(u >= TRUE) for u in rng.random(2)],
            "It loses 2.",
        ),
        (
            "sure at times",
            lambda x, rng: [
                b := int(rng.random() < 0.1),
                x ^ int(rng.random() > (0.99 if b else 0.7)),
            ],
            "99.",
        ),
    ],
)

changes(
    "choice",
    exactly(softmax([1.5, 1.0, 0.5]), softmax([1.0, 1.5, 0.5])),
    ([3, 2, 1], [2, 3, 1]),
    lambda s, rng: int(rng.choice(3, p=softmax([score / 2 for score in s]))),
    harmless=[
        (
            "gumbel",
            lambda s, rng: int(np.argmax(np.array(s) / 2 + rng.gumbel(size=3))),
            "The law of the largest.",
        ),
        (
            "race",
            lambda s, rng: int(np.argmin(rng.exponential(np.exp(-np.array(s) / 2)))),
            "The law of the first.",
        ),
        (
            "cumulated",
            lambda s, rng: int(
                np.searchsorted(np.cumsum(softmax(np.array(s) / 2)), rng.random())
            ),
            "A lookup.",
        ),
        (
            "from the last",
            lambda s, rng: 2 - int(rng.choice(3, p=softmax(np.array(s[::-1]) / 2))),
            "The same table.",
        ),
    ],
    worse=[
        (
            "without half",
            lambda s, rng: int(rng.choice(3, p=softmax(s))),
            "The exponent is doubled.",
        ),
        (
            "less gumbel noise",
            lambda s, rng: int(np.argmax(np.array(s) + rng.gumbel(size=3))),
            "The exponent is doubled.",
        ),
        (
            "the best at times",
            lambda s, rng: (
                int(np.argmax(s)) if rng.random() < 0.3 else int(rng.integers(3))
            ),
            ".533 or .233: ln 2.29.",
        ),
        (
            "with its score",
            lambda s, rng: [k := int(rng.choice(3, p=softmax(s))), s[k]],
            "The score is exact.",
        ),
    ],
)

changes(
    "number",
    PureDP(1.0),
    (3, 4),
    lambda n, rng: n + two_sided(1.0, rng),
    harmless=[
        ("mirrored", lambda n, rng: n - two_sided(1.0, rng), "It is symmetric."),
        (
            "without divisions",
            lambda n, rng: n + discrete_laplace(1, rng),
            "Discrete Laplace noise of scale 1.",
        ),
    ],
    worse=[
        (
            "another parameter",
            lambda n, rng: n + two_sided(2.0, rng),
            "The ratio is e².",
        ),
        (
            "one side",
            lambda n, rng: n + int(rng.geometric(1 - math.exp(-1))),
            "4 comes from 3 alone.",
        ),
    ],
)

changes(
    "flip",
    exactly(flipped([3, 2, 1]), flipped([2, 3, 1])),
    ([3, 2, 1], [2, 3, 1]),
    lambda s, rng: next(
        int(k)
        for k in rng.permutation(3)
        if rng.random() < math.exp((s[k] - max(s)) / 2)
    ),
    harmless=[
        (
            "exponential noise",
            lambda s, rng: int(np.argmax(s + rng.exponential(2.0, 3))),
            "The law of the largest.",
        )
    ],
    worse=[
        (
            "without half",
            lambda s, rng: int(np.argmax(s + rng.exponential(1.0, 3))),
            "The noise is halved.",
        )
    ],
)

BITS = ([1] + [0] * 7, [0] * 8)


def taking(way, scale=1.0):
    """Return a noisy sum of records that are taken in a way."""
    return lambda bits, rng: (
        sum(bits[int(k)] for k in TAKEN[way](8, rng)) + rng.laplace(scale=scale)
    )


changes(
    "batch by coins",
    amplified(0.25),
    BITS,
    taking("coins"),
    harmless=[
        (
            "binomial number",
            taking("a binomial number"),
            "Given its size, a batch by coins is any of that size.",
        ),
        ("one by one", taking("coins one by one"), "The same coins."),
        ("raw bits", taking("raw bits"), "Two bits are 0 with probability 1/4."),
    ],
    worse=[
        (
            "rate of one half",
            lambda b, rng: sum(np.array(b)[rng.random(8) < 0.5]) + rng.laplace(),
            "ln(1 + (e − 1)/2).",
        ),
        ("no sampling", lambda b, rng: sum(b) + rng.laplace(), "It loses 1."),
    ],
)
changes(
    "batch of two",
    amplified(0.25),
    BITS,
    taking("a choice"),
    harmless=[
        (
            "first of a permutation",
            taking("a permutation"),
            "Any two with the same chance.",
        ),
        ("first of a shuffle", taking("a shuffle"), "Any two with the same chance."),
        ("smallest keys", taking("smallest keys"), "Any two with the same chance."),
        ("reservoir", taking("a reservoir"), "Any two with the same chance."),
    ],
    worse=[
        (
            "the first two",
            lambda b, rng: sum(b[:2]) + rng.laplace(),
            "It loses 1 for the first record.",
        ),
        ("half the scale", taking("a choice", 0.5), "It loses ln(1 + (e² − 1)/4)."),
    ],
)
