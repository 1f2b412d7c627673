"""Correct mechanisms with exact claims: whatever an auditor says against one of them is false.

Unless another pair is given, a mechanism gets 0 or 1. Most of them draw ordinary noise in unusual ways.
"""

from __future__ import annotations

import copy
import json
import math
import random
import secrets
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, permutations
from threading import Thread

import numpy as np
import pandas as pd
import scipy.stats

from auditdp import AccountedDP, ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from auditdp.accountants.laplace import LaplaceUpper
from benchmarks.sound.case import (
    UP,
    Known,
    KnownCases,
    exactly,
    gaussian_statement,
    laplace_divergence,
    laplace_rho,
    laplace_statement,
    rdp,
    response_divergence,
    response_rho,
    sampled_gaussian_statement,
    softmax,
)

CORRECT = KnownCases()
holds, rows = CORRECT.holds, CORRECT.rows
FOUR = AccountedDP(LaplaceUpper(1.0, count=4), quoted=1e-3)
LAPLACE, NORMAL = PureDP(1.0), GaussianDP(1.0)
TRUE = math.e / (1 + math.e)
"""The chance of a true answer in randomised response that loses 1."""


# Laplace noise of scale 1, drawn in many ways, for a number that moves by 1.

rows(
    LAPLACE,
    ("laplace", lambda x, rng: x + rng.laplace(), "Laplace noise of scale 1."),
    ("laplace around the value", lambda x, rng: rng.laplace(x), "Laplace noise of scale 1."),
    ("laplace subtracted", lambda x, rng: x - rng.laplace(), "Laplace noise is symmetric."),
    ("difference of exponentials", lambda x, rng: x + rng.exponential() - rng.exponential(), "It is Laplace."),
    ("exponential with a coin", lambda x, rng: x + rng.exponential() * rng.choice([-1, 1]), "It is Laplace."),
    ("exponential with an event", lambda x, rng: x + rng.exponential() * (1 if rng.random() < 0.5 else -1), "Laplace."),
    ("exponential with a bit", lambda x, rng: x + (2 * rng.integers(2) - 1) * rng.standard_exponential(), "Laplace."),
)
rows(
    laplace_statement(1.0, 0.5),  # the curve of Laplace noise
    ("mixture of normals", lambda x, rng: x + math.sqrt(2 * rng.exponential()) * rng.normal(), "√(2E)·N is Laplace."),
    ("scale drawn first", lambda x, rng: x + rng.normal(0, math.sqrt(2 * rng.exponential())), "√(2E)·N is Laplace."),
    (
        "logarithm of a ratio",
        lambda x, rng: x + math.log((1 - rng.random()) / (1 - rng.random())),
        "−ln U is exponential.",
    ),
    (
        "products of normals",
        lambda x, rng: x + rng.normal() * rng.normal() + rng.normal() * rng.normal(),
        "It is Laplace.",
    ),
    ("difference of gammas", lambda x, rng: x + rng.gamma(1.0) - rng.gamma(1.0), "A gamma of shape 1 is exponential."),
    (
        "thirds of gammas",
        lambda x, rng: x + (rng.gamma(1 / 3, size=3) - rng.gamma(1 / 3, size=3)).sum(),
        "Shapes add up.",
    ),
    ("difference of squares", lambda x, rng: x + (rng.chisquare(2) - rng.chisquare(2)) / 2, "χ²₂/2 is exponential."),
)
rows(
    ZeroConcentratedDP(laplace_rho(1.0) * UP),
    ("weibull", lambda x, rng: x + rng.weibull(1.0) - rng.weibull(1.0), "A Weibull of shape 1 is exponential."),
    ("folded and unfolded", lambda x, rng: x + abs(rng.laplace()) * rng.choice([-1.0, 1.0]), "Its sign is fair."),
    ("sign by the data", lambda x, rng: x + (1 if x > 0.5 else -1) * rng.laplace(), "Either sign of it is Laplace."),
    ("sign of another normal", lambda x, rng: x + np.sign(rng.normal()) * rng.exponential(), "Its sign is fair."),
    ("by scipy", lambda x, rng: x + scipy.stats.laplace.rvs(random_state=rng), "Laplace noise of scale 1."),
    ("quantile", lambda x, rng: x + scipy.stats.laplace.ppf(rng.random()), "The quantile of a uniform number."),
)
rows(
    rdp(2.0, laplace_divergence(1.0, 2.0)),
    ("child generator", lambda x, rng: x + rng.spawn(1)[0].laplace(), "A child is a generator of its own."),
    ("seeded by a draw", lambda x, rng: x + np.random.default_rng(rng.integers(2**63)).laplace(), "A fresh seed."),
    ("one of four noises", lambda x, rng: x + rng.laplace(size=4)[rng.integers(4)], "Each of them is Laplace."),
    ("shuffled noises", lambda x, rng: x + rng.permutation(rng.laplace(size=3))[0], "Each of them is Laplace."),
)
rows(
    LAPLACE,
    (
        "antithetic pair",
        lambda x, rng: ((x + (z := rng.normal())) + (x - z)) / 2 + rng.laplace(),
        "Only the last stays.",
    ),
    ("control variate", lambda x, rng: (x + (z := rng.normal(0, 3))) - z + rng.laplace(), "Only the last noise stays."),
    (
        "cancelled and added",
        lambda x, rng: (x + (z := rng.laplace())) - z + rng.laplace(),
        "Only the last noise stays.",
    ),
    ("mask of a server", lambda x, rng: (x + (m := rng.uniform(0, 100)) + rng.laplace()) - m, "The mask cancels."),
    ("formatted", lambda x, rng: f"{x + rng.laplace():.3f}", "Post-processing, and loss 1 on either side."),
    ("rounded", lambda x, rng: round(x + rng.laplace()), "Post-processing; integers below 0 lose 1."),
    ("clipped", lambda x, rng: float(np.clip(x + rng.laplace(), -2, 2)), "Post-processing; −2 loses 1."),
    ("threshold", lambda x, rng: bool(x + rng.laplace() > 0), "Post-processing; no loses 1."),
    ("sign", lambda x, rng: int(np.sign(x + rng.laplace())), "Post-processing; −1 loses 1."),
    ("positive part", lambda x, rng: max(0.0, x + rng.laplace()), "Post-processing; 0 loses 1."),
    ("with its scale", lambda x, rng: [b := int(rng.integers(1, 3)), x + rng.laplace(0, b)], "Scale 1 or 2, known."),
)
rows(
    rdp(4.0, laplace_divergence(1.0, 4.0)),
    ("as json", lambda x, rng: json.dumps({"noisy": x + rng.laplace(), "unit": "g"}), "Text of a noisy number."),
    ("as a series", lambda x, rng: pd.Series({"noisy": x + rng.laplace()}), "A noisy number."),
    ("with public words", lambda x, rng: {"name": "sum", "value": x + rng.laplace(), "of": [1, 2]}, "A noisy number."),
)


@holds(LAPLACE)
def inverse_of_the_distribution(x, rng):
    """−sign(u) ln(1 − 2|u|) of a uniform u in ±1/2 is Laplace."""
    u = rng.random() - 0.5
    return x - math.copysign(1.0, u) * math.log1p(-2 * abs(u))


@holds(LAPLACE)
def raw_bits(x, rng):
    """53 raw bits make a uniform number, and its quantile is Laplace."""
    u = ((rng.bit_generator.random_raw() >> 11) + 0.5) / 2**53
    return x + (math.log(2 * u) if u < 0.5 else -math.log(2 - 2 * u))


@holds(LAPLACE)
def raw_bytes(x, rng):
    """52 bits of a string of bytes make a uniform number, and its quantile is Laplace."""
    u = ((int.from_bytes(rng.bytes(7), "big") >> 4) + 0.5) / 2**52
    return x + (math.log(2 * u) if u < 0.5 else -math.log(2 - 2 * u))


@holds(LAPLACE)
def in_a_pool(x, rng):
    """A thread draws the noise."""
    with ThreadPoolExecutor(1) as pool:
        return x + pool.submit(rng.laplace).result()


@holds(LAPLACE)
def in_a_thread(x, rng):
    """A thread writes the noise into a list."""
    drawn = []
    worker = Thread(target=lambda: drawn.append(rng.laplace()))
    worker.start()
    worker.join()
    return x + drawn[0]


@holds(LAPLACE)
def copied_and_put_back(x, rng):
    """The copy draws, and the generator goes on from where the copy is."""
    twin = copy.deepcopy(rng)
    noisy = x + twin.laplace()
    rng.bit_generator.state = twin.bit_generator.state
    return noisy


@holds(LAPLACE)
def of_the_standard_library(x, rng):
    """A generator of the standard library with a fresh seed."""
    own = random.Random(int(rng.integers(2**62)))
    return x + own.expovariate(1.0) - own.expovariate(1.0)


@holds(LAPLACE)
def of_the_system(x, rng):
    """The system's secrets are uniform bits."""
    u = (secrets.randbits(52) + 0.5) / 2**52
    return x + (math.log(2 * u) if u < 0.5 else -math.log(2 - 2 * u))


@holds(LAPLACE)
def drawn_in_either_branch(x, rng):
    """Both branches have the same law."""
    if x > 0.5:
        return 1 + rng.exponential() - rng.exponential()
    return x + rng.laplace()


@holds(LAPLACE)
def by_rejection(x, rng):
    """A fair coin, which does not look at the number, decides whether it is kept."""
    while True:
        z = rng.exponential()
        if rng.random() < 0.5:
            break
    return x + z * rng.choice([-1, 1])


@holds(LAPLACE, ((0, 0), (0, 1)))
def sum_of_two_servers(values, rng):
    """Additive shares hide the values from each server, and the noise is added to one."""
    masks = rng.normal(scale=50.0, size=len(values))
    return float((values - masks).sum()) + float(masks.sum() + rng.laplace())


@holds(LAPLACE, ([3.0, 1.0, 2.0], [3.0, 1.0, 3.0]))
def noise_in_sorted_order(values, rng):
    """Independent noise may be added in any order."""
    values = np.array(values)
    order = np.argsort(values)
    out = np.empty(len(values))
    out[order] = values[order] + rng.laplace(size=len(values))
    return out


@holds(LAPLACE, ([3.0, 1.0, 2.0], [3.0, 1.0, 3.0]))
def noise_from_the_largest_on(values, rng):
    """Independent noise may be added in the order of the data."""
    noisy = {}
    for k in sorted(range(len(values)), key=lambda k: -values[k]):
        noisy[k] = values[k] + rng.laplace()
    return [noisy[k] for k in range(len(values))]


@holds(LAPLACE, ([1.0, 2.0, 5.0], [1.0, 2.0, 4.0]))
def in_a_random_order_and_back(values, rng):
    """The order is public, and is taken back."""
    order = rng.permutation(len(values))
    noisy = np.array(values)[order] + rng.laplace(size=len(values))
    return noisy[np.argsort(order)]


@holds(LAPLACE, ({"a": 3, "b": 1}, {"a": 3, "b": 2}))
def dictionary_by_value(counts, rng):
    """Noise is independent, and keys come out in their own order."""
    noisy = {key: count + rng.laplace() for key, count in sorted(counts.items(), key=lambda item: item[1])}
    return {key: noisy[key] for key in sorted(noisy)}


@holds(LAPLACE, ([1, 0, 1, 1], [1, 0, 0, 1]))
def prefix_sums(bits, rng):
    """Every prefix is a sum of noisy values, and a value is used once."""
    return list(accumulate(bit + rng.laplace() for bit in bits))


@holds(LAPLACE, ([1, 0, 1, 1], [1, 0, 1, 0]))
def state_with_noise(bits, rng):
    """The newest bit has noise of scale 1, and what earlier noise is left has lighter tails."""
    state = 0.0
    for bit in bits:
        state = 0.5 * state + bit + rng.laplace()
    return state


@holds(PureDP(1.0), (["a", "b", "b"], ["a", "b", "a"]))
def histogram_of_replaced_records(names, rng):
    """A replaced record moves two counts by 1."""
    return [names.count(name) + rng.laplace(scale=2.0) for name in "ab"]


@holds(PureDP(1.0), ([2.0, 5.0], [2.0]))
def sum_and_number(values, rng):
    """A number within 0..5 moves the sum by 5 and the number by 1, each for half."""
    return sum(values) + rng.laplace(scale=10.0), len(values) + rng.laplace(scale=2.0)


@holds(PureDP(1.0), ([0.5, 0.1, 0.2], [0.0, 0.4, 0.0]))
def vector_of_norm_one(vector, rng):
    """The vector moves by 1 in the sum of absolute values."""
    return np.array(vector) + rng.laplace(size=3)


@holds(
    PureDP(1.0),
    (pd.DataFrame({"city": ["A", "B"], "paid": [1.0, 2.0]}), pd.DataFrame({"city": ["A", "B"], "paid": [1.0, 1.0]})),
)
def totals_of_cities(frame, rng):
    """A payment within 0..1 more is in one total."""
    totals = frame.groupby("city").paid.sum().reindex(["A", "B"], fill_value=0.0)
    return totals + rng.laplace(size=2)


# Integers.


def two_sided(epsilon, rng):
    """Return a difference of geometric numbers: P(z) is proportional to e^(−ε|z|)."""
    p = -math.expm1(-epsilon)
    return int(rng.geometric(p)) - int(rng.geometric(p))


def discrete_laplace(scale, rng):
    """Return discrete Laplace noise of an integer scale (Canonne, Kamath & Steinke 2020, arXiv:2004.00010, Algorithm 2)."""
    while True:
        low = int(rng.integers(scale))
        if rng.random() >= math.exp(-low / scale):
            continue
        high = 0
        while rng.random() < math.exp(-1):
            high += 1
        size, negative = low + scale * high, rng.random() < 0.5
        if not (negative and size == 0):
            return -size if negative else size


def discrete_gaussian(sigma, rng):
    """Return discrete Gaussian noise (Canonne, Kamath & Steinke 2020, Algorithm 3)."""
    scale = math.floor(sigma) + 1
    while True:
        z = discrete_laplace(scale, rng)
        if rng.random() < math.exp(-((abs(z) - sigma**2 / scale) ** 2) / (2 * sigma**2)):
            return z


rows(
    PureDP(1.0),
    ("geometric", lambda x, rng: int(x) + two_sided(1.0, rng), "The ratio of neighbouring integers is e."),
    (
        "geometric and clipped",
        lambda x, rng: min(max(int(x) + two_sided(1.0, rng), 0), 5),
        "Post-processing; 0 loses 1.",
    ),
    ("laplace and floor", lambda x, rng: math.floor(x + rng.laplace()), "Post-processing; below 0 it loses 1."),
    ("laplace to halves", lambda x, rng: round(2 * (x + rng.laplace())) / 2, "Post-processing; below 0 it loses 1."),
)


@holds(PureDP(0.5), (3, 4))
def discrete_laplace_by_rejection(count, rng):
    """Discrete Laplace noise of scale 2 has ratios of e^(1/2)."""
    return count + discrete_laplace(2, rng)


@holds(PureDP(1.0), (3, 4))
def geometric_by_size_and_sign(count, rng):
    """A size and a sign, drawn again where it is −0, make the two-sided geometric law."""
    while True:
        size, negative = int(rng.geometric(-math.expm1(-1.0))) - 1, rng.random() < 0.5
        if size or not negative:
            return count - size if negative else count + size


@holds(PureDP(1.0))
def staircase(x, rng):
    """The density falls by the factor e after every step of 1 (Geng & Viswanath 2014, arXiv:1212.1186), γ = 1/2."""
    step = int(rng.geometric(-math.expm1(-1.0))) - 1
    outer = rng.random() < math.exp(-1.0) / (1 + math.exp(-1.0))
    z = step + (0.5 + 0.5 * rng.random() if outer else 0.5 * rng.random())
    return x + (z if rng.random() < 0.5 else -z)


@holds(PureDP(1.0), ((0, 0, 1), (0, 1, 1)))
def modular_shares(bits, rng):
    """Shares modulo 2^20 hide the bits from each party, and the sum has geometric noise."""
    masks = rng.integers(2**20, size=len(bits))
    first, second = (
        sum(int(mask) for mask in masks),
        sum(int(bit - mask) for bit, mask in zip(bits, masks, strict=True)),
    )
    return (first + second + two_sided(1.0, rng)) % 2**20


@holds(PureDP(0.0), (0, 1))
def one_time_pad(bit, rng):
    """A bit under a fair bit is fair."""
    return bit ^ int(rng.integers(2))


@holds(PureDP(0.0), (3, 8))
def share_of_one_party(digit, rng):
    """A digit plus a uniform one, modulo 10, is uniform."""
    return (digit + int(rng.integers(10))) % 10


# Randomised response and choices.

rows(
    PureDP(1.0 * UP),
    ("response", lambda x, rng: int(x) if rng.random() < TRUE else 1 - int(x), "True with e/(1 + e)."),
    ("response by exclusive or", lambda x, rng: int(x) ^ int(rng.random() >= TRUE), "Turned with 1/(1 + e)."),
    ("response by choice", lambda x, rng: int(rng.choice([x, 1 - x], p=[TRUE, 1 - TRUE])), "True with e/(1 + e)."),
    ("response by binomial", lambda x, rng: int(x) if rng.binomial(1, TRUE) else 1 - int(x), "True with e/(1 + e)."),
)

rows(
    PureDP(math.log(3) * UP),
    ("two coins", lambda x, rng: int(x) if rng.integers(2) else int(rng.integers(2)), "True with 3/4."),
    ("one die of four", lambda x, rng: 1 - int(x) if rng.integers(4) == 0 else int(x), "Turned with 1/4."),
    ("two coins at once", lambda x, rng: int(c[1]) if (c := rng.integers(2, size=2))[0] else int(x), "True with 3/4."),
    ("raw bits of a coin", lambda x, rng: int(x) ^ int(rng.bit_generator.random_raw() >> 62 == 0), "Turned with 1/4."),
)


@holds(PureDP(math.log(5) * UP), (2, 0))
def response_of_four_values(value, rng):
    """The value with 5/8, any other with 1/8."""
    return value if rng.random() < 0.5 else int(rng.integers(4))


@holds(PureDP(2.0 * UP), (0, 3))
def unary_encoding(value, rng):
    """Two bits differ, each with odds e."""
    bits = np.arange(4) == value
    return (bits ^ (rng.random(4) >= TRUE)).astype(int)


@holds(PureDP(1.0 * UP), (0, 3))
def optimised_unary_encoding(value, rng):
    """A 1 stays with 1/2, a 0 becomes 1 with 1/(1 + e): both bits together lose 1."""
    p = np.where(np.arange(4) == value, 0.5, 1 / (1 + math.e))
    return (rng.random(4) < p).tolist()


@holds(exactly([0.625**2], [0.375**2]), (0, 2))
def permanent_and_instantaneous(value, rng):
    """Each of two bits that differ is turned with 1/4 twice, so that it stays with 5/8."""
    memory = (np.arange(3) == value) ^ (rng.random(3) < 0.25)
    return (memory ^ (rng.random(3) < 0.25)).astype(int)


@holds(PureDP(1.0 * UP), ([0, 1, 1], [0, 1, 0]))
def sum_of_responses(bits, rng):
    """Post-processing of responses; all zero, or all one, loses 1 in the factor of the bit."""
    return sum(bit if rng.random() < TRUE else 1 - bit for bit in bits)


@holds(exactly(softmax([1.5, 1.0, 0.5]), softmax([1.0, 1.5, 0.5])), ([3, 2, 1], [2, 3, 1]))
def exponential_mechanism(scores, rng):
    """Both tables are known."""
    return int(rng.choice(3, p=softmax([score / 2 for score in scores])))


@holds(exactly(softmax([1.5, 1.0, 0.5]), softmax([1.0, 1.5, 0.5])), ([3, 2, 1], [2, 3, 1]))
def largest_with_gumbel_noise(scores, rng):
    """The place of the largest is that of the exponential mechanism."""
    return int(np.argmax(np.array(scores) / 2 + rng.gumbel(size=3)))


@holds(exactly(softmax([1.5, 1.0, 0.5]), softmax([1.0, 1.5, 0.5])), ([3, 2, 1], [2, 3, 1]))
def race_of_exponentials(scores, rng):
    """The first of exponential clocks is drawn by their rates."""
    clocks = [rng.exponential(math.exp(-score / 2)) for score in scores]
    return clocks.index(min(clocks))


@holds(exactly(softmax([1.5, 1.0, 0.5]), softmax([1.0, 1.5, 0.5])), ([3, 2, 1], [2, 3, 1]))
def cumulated_table(scores, rng):
    """A uniform number is looked up in the cumulated table."""
    return int(np.searchsorted(np.cumsum(softmax([score / 2 for score in scores])), rng.random()))


@holds(exactly(softmax([1.5, 1.0, 0.5]), softmax([1.0, 1.5, 0.5])), ([3, 2, 1], [2, 3, 1]))
def accepted_candidate(scores, rng):
    """A candidate is accepted in proportion to its weight."""
    while True:
        k = int(rng.integers(3))
        if rng.random() < math.exp((scores[k] - 3) / 2):
            return k


def flipped(scores):
    """Return the table of permute-and-flip (McKenna & Sheldon 2020, arXiv:2010.12603): all orders, one coin each."""
    table = [0.0] * len(scores)
    coins = [math.exp((score - max(scores)) / 2) for score in scores]
    for order in permutations(range(len(scores))):
        left = 1.0 / math.factorial(len(scores))
        for k in order:
            table[k] += left * coins[k]
            left *= 1 - coins[k]
    return table


@holds(exactly(flipped([3, 2, 1]), flipped([2, 3, 1])), ([3, 2, 1], [2, 3, 1]))
def permute_and_flip(scores, rng):
    """All orders and coins are known."""
    for k in rng.permutation(3):
        if rng.random() < math.exp((scores[k] - max(scores)) / 2):
            return int(k)
    return None


@holds(exactly(flipped([3, 2, 1]), flipped([2, 3, 1])), ([3, 2, 1], [2, 3, 1]))
def largest_with_exponential_noise(scores, rng):
    """It has the law of permute-and-flip (Ding et al. 2021, arXiv:2105.07260)."""
    return int(np.argmax([score + rng.exponential(2.0) for score in scores]))


def ahead(gap):
    """Return P(z₂ − z₁ < gap) for Laplace noise of scale 2: the difference has density (2 + |z|)e^(−|z|/2)/16."""
    tail = math.exp(-abs(gap) / 2) * (0.5 + abs(gap) / 8)
    return 1 - tail if gap > 0 else tail


@holds(exactly([ahead(1), ahead(-1)], [ahead(-1), ahead(1)]), ([4, 3], [3, 4]))
def largest_with_laplace_noise(scores, rng):
    """Two scores change places: the probabilities are known."""
    return int(np.argmax(np.array(scores) + rng.laplace(scale=2.0, size=2)))


@holds(PureDP(1.0), ([0, 1, 0], [0, 0, 0]), truth=0.0)
def sparse_vector(answers, rng):
    """Algorithm 1 of Lyu, Su & Li (2017, arXiv:1603.01699): half of ε for the threshold, half for one answer above it."""
    threshold = 1 + rng.laplace(scale=2.0)
    for k, answer in enumerate(answers):
        if answer + rng.laplace(scale=4.0) >= threshold:
            return k
    return None


# Sampled records: a difference by one record is seen as seldom as the record is taken.


def amplified(q):
    """Return the claim of a record that is taken with probability q and then loses 1: ln(1 + q (e − 1))."""
    return PureDP(math.log1p(q * math.expm1(1.0)) * UP)


def reservoir(n, rng):
    """Return two of n places, each pair as likely as any other."""
    kept = [0, 1]
    for k in range(2, n):
        if (place := int(rng.integers(k + 1))) < 2:
            kept[place] = k
    return kept


def in_shuffled_order(items, rng):
    """Return the items in random order."""
    rng.shuffle(items)
    return items


TAKEN = {
    "coins": lambda n, rng: np.flatnonzero(rng.random(n) < 0.25),
    "coins one by one": lambda n, rng: [k for k in range(n) if rng.random() < 0.25],
    "raw bits": lambda n, rng: [k for k in range(n) if rng.bit_generator.random_raw() >> 62 == 0],
    "a choice": lambda n, rng: rng.choice(n, 2, replace=False),
    "a permutation": lambda n, rng: rng.permutation(n)[:2],
    "a shuffle": lambda n, rng: in_shuffled_order(list(range(n)), rng)[:2],
    "smallest keys": lambda n, rng: np.argsort(rng.random(n))[:2],
    "a reservoir": reservoir,
    "a binomial number": lambda n, rng: rng.choice(n, rng.binomial(n, 0.25), replace=False),
}
"""Ways in which each of n records is taken with probability 1/4, independently of the data."""


def summed_after(take):
    """Return a noisy sum of the records that are taken."""
    return lambda bits, rng: sum(bits[int(k)] for k in take(len(bits), rng)) + rng.laplace()


CORRECT.extend(
    Known(
        f"taken by {name}", summed_after(take), amplified(0.25), [([1] + [0] * 7, [0] * 8)], amplified(0.25).level, ""
    )
    for name, take in TAKEN.items()
)


@holds(PureDP(3 * math.log1p(math.expm1(1.0) / 8) * UP), ([1] + [0] * 7, [0] * 8))
def drawn_with_replacement(bits, rng):
    """The record is drawn a binomial number of times, k times for e^k: (1 + (e − 1)/8)³."""
    return sum(bits[int(k)] for k in rng.integers(len(bits), size=3)) + rng.laplace()


@holds(exactly([0.25 * TRUE + 0.75 * (1 - TRUE)], [1 - TRUE]), (1, 0))
def response_of_few(bit, rng):
    """Who is not asked counts as 0: a 1 is seen with a chance of (e/4 + 3/4)/(1 + e)."""
    bit = bit if rng.random() < 0.25 else 0
    return bit if rng.random() < TRUE else 1 - bit


@holds(sampled_gaussian_statement(1.0, 0.25, 0.5), ([1] + [0] * 7, [0] * 8))
def sampled_gaussian(bits, rng):
    """N(0, 1) against a mixture with N(1, 1), weight 1/4, exactly."""
    return sum(bit for bit in bits if rng.random() < 0.25) + rng.normal()


@holds(sampled_gaussian_statement(2.0, 0.25, 0.5), ([1] + [0] * 7, [0] * 8))
def sampled_gaussian_of_fixed_size(bits, rng):
    """N(0, 1) against a mixture with N(2, 1), weight 1/4, exactly."""
    return np.array(bits)[rng.choice(8, 2, replace=False)].sum() + rng.normal(scale=0.5)


@holds(sampled_gaussian_statement(1.0, 0.5, 0.25), (1.0, 0.0))
def step_of_a_batch_of_one(x, rng):
    """A record is in the only batch with probability 1/2, and its gradient is at most 1."""
    weight = 0.0
    weight -= 0.1 * ((min(x, 1.0) if rng.random() < 0.5 else 0.0) + rng.normal())
    return weight


# Gaussian noise of deviation 1, drawn in many ways, for a number that moves by 1.

rows(
    NORMAL,
    ("gaussian", lambda x, rng: x + rng.normal(), "Deviation 1."),
    ("two halves", lambda x, rng: x + (rng.normal() + rng.normal()) / math.sqrt(2), "Variances add up."),
    (
        "four in the mean",
        lambda x, rng: np.mean([x + rng.normal(0, 2.0) for _ in range(4)]),
        "The mean has variance 1.",
    ),
    (
        "by polar coordinates",
        lambda x, rng: x + math.sqrt(2 * rng.exponential()) * math.cos(rng.uniform(0, math.tau)),
        "Box and Muller.",
    ),
    ("chi with a coin", lambda x, rng: x + math.sqrt(rng.chisquare(1)) * rng.choice([-1, 1]), "It is normal."),
)
rows(
    gaussian_statement(1.0, 1.0),
    ("quantile of a uniform", lambda x, rng: x + scipy.stats.norm.ppf(rng.random()), "It is normal."),
    ("difference of two", lambda x, rng: (x + rng.normal(0, 0.6)) - rng.normal(0, 0.8), "Variances add up to 1."),
    ("of many only one", lambda x, rng: (np.array([x, 0.0, 5.0]) + rng.normal(size=3))[0], "One entry is shown."),
    ("product of noise", lambda x, rng: (np.array([x, x]) @ [0.5, 0.5]) + rng.normal(size=2) @ [0.6, 0.8], "Norm 1."),
    ("antithetic and anew", lambda x, rng: ((x + (z := rng.laplace())) + (x - z)) / 2 + rng.normal(), "z cancels."),
)
rows(
    ZeroConcentratedDP(0.5),
    ("sign by the value", lambda x, rng: x + (-1) ** int(x) * rng.normal(), "Normal noise is symmetric."),
    ("deviation of a child", lambda x, rng: rng.spawn(2)[1].normal(x), "A child is a generator of its own."),
    ("walk of nine steps", lambda x, rng: x + rng.normal(size=9).cumsum()[-1] / 3, "Nine steps of variance 1/9."),
    ("shown with a twin", lambda x, rng: [x + rng.normal(), rng.normal()], "The second is noise alone."),
    ("normal and rounded text", lambda x, rng: str(round(x + rng.normal(), 6)), "Rounding to 1e-6 hides nothing."),
)


@holds(GaussianDP(2**0.5 * UP))
def two_releases(x, rng):
    """Two releases of 1-GDP."""
    return [x + rng.normal(), x + rng.normal()]


@holds(GaussianDP(2**0.5 * UP))
def second_release_by_the_first(x, rng):
    """The second query is chosen by the first answer, and moves by 1 either way."""
    first = x + rng.normal()
    return first, (x if first > 0 else 3 - x) + rng.normal()


@holds(NORMAL, ((1.0, 2.0, 0.5, 0.0), (1.0, 2.0, 1.5, 0.0)))
def shares_of_four_parties(values, rng):
    """Each party adds a quarter of the variance."""
    return sum(value + rng.normal(scale=0.5) for value in values)


@holds(NORMAL, ((1.0, 2.0, 0.5), (1.0, 2.0, 1.5)))
def masks_that_cancel(values, rng):
    """Masks of pairs of parties cancel in the sum, and one noise stays."""
    n = len(values)
    masks = rng.normal(scale=100.0, size=(n, n))
    shares = [values[k] + masks[k].sum() - masks[:, k].sum() for k in range(n)]
    return round(sum(shares) + rng.normal(), 6)


@holds(NORMAL, ((0.6, 0.8), (0.0, 0.0)))
def vector_of_length_one(vector, rng):
    """The vector moves by 1."""
    return np.array(vector) + rng.normal(size=2)


@holds(NORMAL, ((0.6, 0.8), (0.0, 0.0)))
def rotated(vector, rng):
    """A rotation of the noise has the same law."""
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    return np.array(vector) + turn @ rng.normal(size=2)


@holds(GaussianDP(math.sqrt(1 / 0.75) * UP), ((1.0, 0.0), (0.0, 0.0)))
def correlated_noise(vector, rng):
    """Covariance [[1, 1/2], [1/2, 1]] has 4/3 as the first entry of its inverse."""
    return rng.multivariate_normal(vector, [[1.0, 0.5], [0.5, 1.0]])


@holds(GaussianDP(math.sqrt(1 / 0.75) * UP), ((1.0, 0.0), (0.0, 0.0)))
def correlated_by_a_factor(vector, rng):
    """The same covariance by its factor."""
    return np.array(vector) + np.linalg.cholesky([[1.0, 0.5], [0.5, 1.0]]) @ rng.normal(size=2)


@holds(GaussianDP(math.sqrt(1.390625) * UP), ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0]))
def factored_prefix_sums(values, rng):
    """Prefix sums are the square of this root, and the noise is inside: its first column has norm² 1 + 1/4 + 9/64."""
    root = np.array([[1, 0, 0], [0.5, 1, 0], [0.375, 0.5, 1]])
    return root @ (root @ np.array(values) + rng.normal(size=3))


@holds(GaussianDP(math.sqrt(3) * UP), ([1, 0, 0, 0], [0, 0, 0, 0]))
def tree_of_sums(values, rng):
    """A value is in three nodes."""
    nodes = [sum(values[k : k + length]) for length in (1, 2, 4) for k in range(0, 4, length)]
    return np.array(nodes) + rng.normal(size=7)


@holds(GaussianDP((1 - 2.0**-8) / math.sqrt(0.25 * (1 - 4.0**-8) / 0.75) * UP))
def noisy_descent(x, rng):
    """The last of eight iterates is normal: its mean moves by 1 − 2^−8, its variance is (1 − 4^−8)/3."""
    weight = 0.0
    for _ in range(8):
        weight -= 0.5 * (weight - x + rng.normal())
    return weight


@holds(GaussianDP(2.0 * UP))
def averaged_iterates(x, rng):
    """Four noisy gradients of the same loss are averaged: deviation 1/2."""
    return np.mean([x + rng.normal() for _ in range(4)])


@holds(GaussianDP(3.0 / math.sqrt(1 + 4 + 1) * UP))
def weighted_sum(x, rng):
    """The sum moves by 1 − 2 + 4 = 3, and its noise has variance 1 + 4 + 1."""
    return (x + rng.normal()) - 2 * (x + rng.normal()) + 4 * x + rng.normal()


@holds(GaussianDP(math.sqrt(5) * UP))
def momentum(x, rng):
    """The first step moves by 1, and the difference of both by 2, each with noise of its own."""
    first = x + rng.normal()
    return first, first + 2 * x + rng.normal()


# Statements (ε, δ), exact at their ε.


@holds(gaussian_statement(1.0, 1.0))
def gaussian_at_one(x, rng):
    """Normal noise of deviation 1."""
    return x + rng.normal()


@holds(gaussian_statement(2**0.5, 2.0))
def two_gaussians_at_two(x, rng):
    """Two releases of normal noise of deviation 1."""
    return x + rng.normal(), x - rng.normal()


@holds(gaussian_statement(0.5, 0.3))
def gaussian_by_parties(x, rng):
    """Four parties of variance 1 each."""
    return x + sum(rng.normal() for _ in range(4))


@holds(laplace_statement(1.0, 0.5))
def laplace_at_half(x, rng):
    """The curve of Laplace noise."""
    return x + rng.laplace()


@holds(laplace_statement(2.0, 0.5))
def exponential_difference_at_half(x, rng):
    """The curve of Laplace noise of scale 1/2."""
    return x + rng.exponential(0.5) - rng.exponential(0.5)


@holds(FOUR, truth=3.984)
def four_laplace_releases(x, rng):
    """The exact curve of four releases, bounded from above."""
    return [x + rng.laplace() for _ in range(4)]


@holds(ApproxDP(3.0, LaplaceUpper(1.0, count=8).delta_at(3.0)), truth=2.999)
def eight_laplace_numbers(x, rng):
    """The exact statement at ε = 3 of eight releases, bounded from above."""
    return (x + rng.laplace(size=8)).tolist()


@holds(ApproxDP(0.0, 0.1 * UP))
def uniform_noise(x, rng):
    """The intervals overlap in 9/10."""
    return x + rng.uniform(-5, 5)


@holds(ApproxDP(1.0 * UP, 0.05))
def seldom_in_the_open(x, rng):
    """The answer is open with probability 1/20, else it is randomised response."""
    if rng.random() < 0.05:
        return "open", int(x)
    return "hidden", int(x) if rng.random() < TRUE else 1 - int(x)


@holds(ApproxDP(0.0, 0.02), ([1, 2, 3], [1, 2, 4]))
def name_and_shame(records, rng):
    """The record that changes is shown with probability 1/50."""
    return records[2] if rng.random() < 0.02 else None


@holds(ApproxDP(1.0, 0.5 * math.exp(-2) * UP), (["a", "b"], ["a"]), truth=0.0)
def keys_above_a_threshold(names, rng):
    """A key of one record passes 3 with probability e^−2/2."""
    noisy = {name: names.count(name) + rng.laplace() for name in sorted(set(names))}
    return {name: value for name, value in noisy.items() if value > 3}


@holds(ApproxDP(1.0, (math.e - 1) / (math.exp(4) - 1) / 2 * UP))
def truncated_laplace(x, rng):
    """Noise within ±4: only the mass beyond the other interval is in excess of e."""
    while True:
        z = rng.laplace()
        if abs(z) <= 4:
            return x + z


# Concentrated and Rényi claims.

rows(
    ZeroConcentratedDP(laplace_rho(1.0) * UP),
    ("laplace concentrated", lambda x, rng: x + rng.laplace(), "ρ = ε − 1 + e^−ε for Laplace noise."),
    ("exponentials concentrated", lambda x, rng: x + rng.exponential() - rng.exponential(), "ρ = ε − 1 + e^−ε."),
    ("laplace vector concentrated", lambda x, rng: np.array([x, 2.0]) + rng.laplace(size=2), "One entry moves."),
)
rows(
    ZeroConcentratedDP(0.5),
    ("gaussian concentrated", lambda x, rng: x + rng.normal(), "ρ = 1/2 for deviation 1."),
    ("discrete gaussian", lambda x, rng: int(x) + discrete_gaussian(1.0, rng), "ρ = 1/2, at order 2 exactly."),
    ("noise of two parties", lambda x, rng: x + rng.normal(0, 0.6) + rng.normal(0, 0.8), "Variances add up to 1."),
    ("cancelled concentrated", lambda x, rng: (x + (z := rng.normal())) - z + rng.normal(), "The last noise stays."),
)


@holds(ZeroConcentratedDP(4 * laplace_rho(0.5) * UP))
def four_laplace_concentrated(x, rng):
    """Each of four releases has ρ = ε − 1 + e^−ε at ε = 1/2."""
    return [x + rng.laplace(scale=2.0) for _ in range(4)]


@holds(ZeroConcentratedDP(response_rho(1.0) * UP))
def response_concentrated(x, rng):
    """ρ = ε tanh(ε/2) for randomised response."""
    return int(x) if rng.random() < TRUE else 1 - int(x)


@holds(ZeroConcentratedDP((laplace_rho(1.0) + 0.5) * UP))
def laplace_and_gaussian_concentrated(x, rng):
    """The ρ of two releases add up."""
    return x + rng.laplace(), x + rng.normal()


@holds(ZeroConcentratedDP(0.125))
def discrete_gaussian_of_deviation_two(x, rng):
    """ρ = 1/8, as of normal noise."""
    return 7 - int(x) + discrete_gaussian(2.0, rng)


@holds(rdp(2.0, laplace_divergence(1.0, 2.0)))
def laplace_of_order_two(x, rng):
    """The divergence of Laplace noise is known."""
    return x + rng.laplace()


@holds(rdp(4.0, 2 * laplace_divergence(1.0, 4.0)))
def two_laplace_of_order_four(x, rng):
    """Divergences add up."""
    return x + rng.laplace(), 3 * x + rng.laplace(scale=3.0)


@holds(rdp(3.0, response_divergence(1.0, 3.0)))
def response_of_order_three(x, rng):
    """The divergence of randomised response is known."""
    return bool(x) ^ (rng.random() > TRUE)


@holds(rdp(2.0, 1.0))
def gaussian_of_order_two(x, rng):
    """αμ²/2 for normal noise."""
    return np.float64(x) + rng.normal()


@holds(rdp(8.0, 4.0))
def gaussian_of_parties_of_order_eight(x, rng):
    """αμ²/2 for the noise of four parties."""
    return sum(x / 4 + rng.normal(scale=0.5) for _ in range(4))


@holds(rdp(2.0, laplace_divergence(1.0, 2.0) + 1.0))
def laplace_and_gaussian_of_order_two(x, rng):
    """Divergences add up."""
    return {"laplace": x + rng.laplace(), "normal": x + rng.normal()}


@holds(rdp(2.0, laplace_divergence(1.0, 2.0)))
def mixture_of_order_two(x, rng):
    """√(2E)·N is Laplace."""
    return x + math.sqrt(2 * rng.standard_exponential()) * rng.standard_normal()
