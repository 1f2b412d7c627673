"""Correct mechanisms with Laplace noise, drawn and added in many ways; see ``correct``."""

from __future__ import annotations

import copy
import json
import math
import random
import secrets
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from threading import Thread

import numpy as np
import pandas as pd
import scipy.stats

from auditdp import PureDP, ZeroConcentratedDP
from benchmarks.sound.case import UP, KnownCases
from benchmarks.sound.laws import (
    laplace_divergence,
    laplace_rho,
    laplace_statement,
    rdp,
)

LAPLACE_CASES = KnownCases()
holds, rows = LAPLACE_CASES.holds, LAPLACE_CASES.rows
LAPLACE = PureDP(1.0)


# Laplace noise of scale 1, drawn in many ways, for a number that moves by 1.

rows(
    LAPLACE,
    ("laplace", lambda x, rng: x + rng.laplace(), "Laplace noise of scale 1."),
    (
        "laplace around the value",
        lambda x, rng: rng.laplace(x),
        "Laplace noise of scale 1.",
    ),
    (
        "laplace subtracted",
        lambda x, rng: x - rng.laplace(),
        "Laplace noise is symmetric.",
    ),
    (
        "difference of exponentials",
        lambda x, rng: x + rng.exponential() - rng.exponential(),
        "It is Laplace.",
    ),
    (
        "exponential with a coin",
        lambda x, rng: x + rng.exponential() * rng.choice([-1, 1]),
        "It is Laplace.",
    ),
    (
        "exponential with an event",
        lambda x, rng: x + rng.exponential() * (1 if rng.random() < 0.5 else -1),
        "Laplace.",
    ),
    (
        "exponential with a bit",
        lambda x, rng: x + (2 * rng.integers(2) - 1) * rng.standard_exponential(),
        "Laplace.",
    ),
)
rows(
    laplace_statement(1.0, 0.5),  # the curve of Laplace noise
    (
        "mixture of normals",
        lambda x, rng: x + math.sqrt(2 * rng.exponential()) * rng.normal(),
        "√(2E)·N is Laplace.",
    ),
    (
        "scale drawn first",
        lambda x, rng: x + rng.normal(0, math.sqrt(2 * rng.exponential())),
        "√(2E)·N is Laplace.",
    ),
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
    (
        "difference of gammas",
        lambda x, rng: x + rng.gamma(1.0) - rng.gamma(1.0),
        "A gamma of shape 1 is exponential.",
    ),
    (
        "thirds of gammas",
        lambda x, rng: x + (rng.gamma(1 / 3, size=3) - rng.gamma(1 / 3, size=3)).sum(),
        "Shapes add up.",
    ),
    (
        "difference of squares",
        lambda x, rng: x + (rng.chisquare(2) - rng.chisquare(2)) / 2,
        "χ²₂/2 is exponential.",
    ),
)
rows(
    ZeroConcentratedDP(laplace_rho(1.0) * UP),
    (
        "weibull",
        lambda x, rng: x + rng.weibull(1.0) - rng.weibull(1.0),
        "A Weibull of shape 1 is exponential.",
    ),
    (
        "folded and unfolded",
        lambda x, rng: x + abs(rng.laplace()) * rng.choice([-1.0, 1.0]),
        "Its sign is fair.",
    ),
    (
        "sign by the data",
        lambda x, rng: x + (1 if x > 0.5 else -1) * rng.laplace(),
        "Either sign of it is Laplace.",
    ),
    (
        "sign of another normal",
        lambda x, rng: x + np.sign(rng.normal()) * rng.exponential(),
        "Its sign is fair.",
    ),
    (
        "by scipy",
        lambda x, rng: x + scipy.stats.laplace.rvs(random_state=rng),
        "Laplace noise of scale 1.",
    ),
    (
        "quantile",
        lambda x, rng: x + scipy.stats.laplace.ppf(rng.random()),
        "The quantile of a uniform number.",
    ),
)
rows(
    rdp(2.0, laplace_divergence(1.0, 2.0)),
    (
        "child generator",
        lambda x, rng: x + rng.spawn(1)[0].laplace(),
        "A child is a generator of its own.",
    ),
    (
        "seeded by a draw",
        lambda x, rng: x + np.random.default_rng(rng.integers(2**63)).laplace(),
        "A fresh seed.",
    ),
    (
        "one of four noises",
        lambda x, rng: x + rng.laplace(size=4)[rng.integers(4)],
        "Each of them is Laplace.",
    ),
    (
        "shuffled noises",
        lambda x, rng: x + rng.permutation(rng.laplace(size=3))[0],
        "Each of them is Laplace.",
    ),
)
rows(
    LAPLACE,
    (
        "antithetic pair",
        lambda x, rng: ((x + (z := rng.normal())) + (x - z)) / 2 + rng.laplace(),
        "Only the last stays.",
    ),
    (
        "control variate",
        lambda x, rng: (x + (z := rng.normal(0, 3))) - z + rng.laplace(),
        "Only the last noise stays.",
    ),
    (
        "cancelled and added",
        lambda x, rng: (x + (z := rng.laplace())) - z + rng.laplace(),
        "Only the last noise stays.",
    ),
    (
        "mask of a server",
        lambda x, rng: (x + (m := rng.uniform(0, 100)) + rng.laplace()) - m,
        "The mask cancels.",
    ),
    (
        "formatted",
        lambda x, rng: f"{x + rng.laplace():.3f}",
        "Post-processing, and loss 1 on either side.",
    ),
    (
        "rounded",
        lambda x, rng: round(x + rng.laplace()),
        "Post-processing; integers below 0 lose 1.",
    ),
    (
        "clipped",
        lambda x, rng: float(np.clip(x + rng.laplace(), -2, 2)),
        "Post-processing; −2 loses 1.",
    ),
    (
        "threshold",
        lambda x, rng: bool(x + rng.laplace() > 0),
        "Post-processing; no loses 1.",
    ),
    (
        "sign",
        lambda x, rng: int(np.sign(x + rng.laplace())),
        "Post-processing; −1 loses 1.",
    ),
    (
        "positive part",
        lambda x, rng: max(0.0, x + rng.laplace()),
        "Post-processing; 0 loses 1.",
    ),
    (
        "with its scale",
        lambda x, rng: [b := int(rng.integers(1, 3)), x + rng.laplace(0, b)],
        "Scale 1 or 2, known.",
    ),
)
rows(
    rdp(4.0, laplace_divergence(1.0, 4.0)),
    (
        "as json",
        lambda x, rng: json.dumps({"noisy": x + rng.laplace(), "unit": "g"}),
        "Text of a noisy number.",
    ),
    (
        "as a series",
        lambda x, rng: pd.Series({"noisy": x + rng.laplace()}),
        "A noisy number.",
    ),
    (
        "with public words",
        lambda x, rng: {"name": "sum", "value": x + rng.laplace(), "of": [1, 2]},
        "A noisy number.",
    ),
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
    noisy = {
        key: count + rng.laplace()
        for key, count in sorted(counts.items(), key=lambda item: item[1])
    }
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
    (
        pd.DataFrame({"city": ["A", "B"], "paid": [1.0, 2.0]}),
        pd.DataFrame({"city": ["A", "B"], "paid": [1.0, 1.0]}),
    ),
)
def totals_of_cities(frame, rng):
    """A payment within 0..1 more is in one total."""
    totals = frame.groupby("city").paid.sum().reindex(["A", "B"], fill_value=0.0)
    return totals + rng.laplace(size=2)
