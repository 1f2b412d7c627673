"""Ordinary code with one fault each, of kinds that public bug reports describe, and correct code: what a trace proposes.

A broken function is found with a reason and, where a line is to blame, at that line, which ends with ``# here``. A
correct one is not proposed. Functions are traced on the pair that is given, with three seeds and in both orders.
"""

import inspect
import json
import math
import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from auditdp.claims.curves import ZeroConcentratedDP
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.tracing import Trace, compare

BROKEN, CORRECT = [], []


@dataclass(frozen=True)
class Case:
    function: Any
    claim: Any
    pair: tuple
    kind: str = ""
    extent: str = "full"


def broken(claim, pair, kind, extent="full"):
    return lambda function: (
        BROKEN.append(Case(function, claim, pair, kind, extent)) or function
    )


def correct(claim, pair, extent="full"):
    return lambda function: (
        CORRECT.append(Case(function, claim, pair, extent=extent)) or function
    )


def two_sided(epsilon, rng):
    p = -math.expm1(-epsilon)
    return int(rng.geometric(p)) - int(rng.geometric(p))


# -- broken: how much noise ----------------------------------------------------------------------------------------------


@broken(
    PureDP(1.0),
    ([("ann", 5), ("bob", 1)], [("ann", 5), ("ann", 5), ("ann", 5), ("bob", 1)]),
    "loss",
)
def user_cap_dropped(visits, rng):
    """A user may have many rows, and the noise is for one."""
    total = sum(min(spent, 10) for _, spent in visits)
    return total + rng.laplace(scale=5.0)  # here


@broken(PureDP(1.0), ([3, 4], [3, 4, 5]), "loss")
def halved_noise(rows, rng):
    noise = 0.5 * rng.laplace(scale=1.0)
    return len(rows) + noise  # here


@broken(PureDP(1.0), ({"a": 3, "b": 4}, {"a": 4, "b": 5}), "loss")
def budget_not_split(counts, rng):
    return {name: counts[name] + rng.laplace(scale=1.0) for name in ("a", "b")}  # here


@broken(GaussianDP(1.0), (np.zeros(9), np.ones(9)), "loss")
def norm_of_one_coordinate(vector, rng):
    return np.clip(vector, -1, 1) + rng.normal(size=9)  # here


@broken(ApproxDP(1.0, 1e-6), ([1.0], [2.0]), "loss")
def variance_for_deviation(values, rng):
    sigma = math.sqrt(2 * math.log(1.25e6))
    return sum(values) + rng.normal(0.0, math.sqrt(sigma))  # here


@broken(ZeroConcentratedDP(0.1), ([0.2], [0.2, 1.0]), "loss")
def concentrated_sum(values, rng):
    return float(np.sum(values) + rng.normal(scale=1.0))  # here


@broken(PureDP(1.0), ([1, 2, 3], [1, 2, 3, 4]), "loss")
def location_in_the_call(rows, rng):
    return rng.laplace(loc=2 * len(rows), scale=1.0)  # here


@broken(PureDP(1.0), ([1.0, 2.0], [1.0, 2.0, 3.0]), "scale")
def scale_from_the_data(values, rng):
    return len(values) + rng.laplace(scale=1 / len(values))  # here


@broken(PureDP(1.0), ([2], [7]), "loss")
def counts_of_all_bits(values, rng):
    bits = [sum(value >> k & 1 for value in values) for k in range(3)]
    return [count + two_sided(1.0, rng) for count in bits]  # here


@broken(PureDP(1.0), ([5, 5, 9], [5, 9]), "loss")
def joined_rows(keys, rng):
    """Every row of a key meets every other one."""
    pairs = sum(n * n for n in Counter(keys).values())
    return pairs + rng.laplace(scale=1.0)  # here


@broken(PureDP(0.31), ((1, 0, 0), (0, 0, 1)), "loss")
def utility_moves_twice(votes, rng):
    """The exponential mechanism: .31-DP where a vote is added, and a vote that is changed moves two scores."""
    weights = np.exp(np.array(votes) * 0.5)
    return int(rng.choice(3, p=weights / weights.sum()))  # here


@broken(PureDP(1.0), ([2.0, 1.0, 1.0], [2.0, 5.0, 1.0]), "loss")
def noisy_winner(scores, rng):
    return int(np.argmax(np.array(scores) + rng.gumbel(size=3)))  # here


@broken(PureDP(math.log(2)), (0, 1), "loss")
def coin_by_the_data(bit, rng):
    return bool(rng.random() < (0.9 if bit else 0.1))  # here


@broken(PureDP(1.0), (10, 12), "loss")
def uniform_noise(count, rng):
    return count + rng.uniform(-5, 5)  # here


@broken(PureDP(1.0), (3, 4), "loss")
def noise_of_one_sign(count, rng):
    return count + rng.exponential(1.0)  # here


@broken(PureDP(1.0), ([0.5, 0.5], [0.5, math.nan]), "number")
def clamp_lets_nan_through(values, rng):
    return float(np.sum(np.clip(values, 0, 1))) + rng.laplace(scale=1.0)  # here


@broken(PureDP(1.0), ([1, 2, 4], [1, 2, 5]), "whole")
def whole_noise_on_a_mean(values, rng):
    return sum(values) / 3 + two_sided(1.0, rng)  # here


# -- broken: which noise -------------------------------------------------------------------------------------------------


@broken(PureDP(1.0), ([(1, 9)], [(1, 9), (2, 3)]), "reuse")
def one_seed_for_two(rows, rng):
    seed = int(rng.integers(2**31))

    def noisy(column):
        return sum(column) + np.random.default_rng(seed).laplace(scale=20.0)  # here

    return [noisy([row[j] for row in rows]) for j in range(2)]


@broken(PureDP(1.0), ((3.0, 4.0), (3.0, 5.0)), "reuse")
def one_noise_for_all_entries(counts, rng):
    return np.array(counts) + rng.laplace(scale=1.0)  # here


@broken(PureDP(1.0), (20, 21), "reuse")
def noise_beside_the_answer(count, rng):
    noise = rng.laplace(scale=1.0)  # here
    return {"answer": count + noise, "noise": noise}


@broken(PureDP(1.0), ([5], [6]), "seed")
def seed_from_the_rows(rows, rng):
    source = np.random.default_rng(sum(rows))  # here
    return len(rows) + source.laplace(scale=1.0)


@broken(PureDP(1.0), ([0, 1], [0, 1, 1]), "loss")
def global_state(rows, rng):
    return len(rows) + np.random.laplace(0.0, 0.5)  # noqa: NPY002  # here


@broken(PureDP(1.0), ([0, 1], [0, 1, 1]), "loss")
def standard_library(rows, rng):
    return len(rows) + random.expovariate(2.0) - random.expovariate(2.0)  # here


# -- broken: what got round it -------------------------------------------------------------------------------------------


@broken(PureDP(1.0), (["x", "y"], ["x"]), "round")
def domain_from_the_data(rows, rng):
    return {key: n + rng.laplace(scale=1.0) for key, n in Counter(rows).items()}


@broken(PureDP(2.0), (["b", "b", "a"], ["b", "a", "a"]), "round")
def order_of_exact_counts(rows, rng):
    """Keys are public, and they leave in the order of their exact counts."""
    counts = {name: rows.count(name) for name in ("a", "b")}
    noisy = {name: counts[name] + rng.laplace(scale=1.0) for name in counts}
    return [(name, noisy[name]) for name in sorted(counts, key=counts.get)]


@broken(PureDP(1.0), ([7, 8], [7, 8, 9]), "round")
def raw_count_beside_the_noisy_sum(values, rng):
    return json.dumps(
        {
            "sum": sum(min(v, 10) for v in values) + rng.laplace(scale=10.0),
            "rows": len(values),
        }
    )


@broken(PureDP(1.0), ([1, 2, 3], [1, 2]), "round")
def small_groups_left_out(rows, rng):
    noisy = len(rows) + rng.laplace(scale=1.0)
    return None if len(rows) < 3 else noisy


@broken(PureDP(1.0), (0.0, 1.0), "round")
def exact_once_in_a_thousand(value, rng):
    if rng.random() < 0.001:
        return value
    return value + rng.laplace(scale=1.0)


@broken(PureDP(1.0), ((4.0, 0.0), (4.0, 1.0)), "round")
def empty_cells_stay_empty(cells, rng):
    cells = np.array(cells)
    return np.where(cells > 0, cells + rng.laplace(scale=1.0, size=2), 0.0)


@broken(ApproxDP(1.0, 0.01), (["q", "q"], ["q", "q", "r"]), "round")
def threshold_met_by_equality(rows, rng):
    """A new key has a count of 1 and is shown from 1 + T on, T being the last count that is as likely as it may be."""
    out = []
    for key, n in sorted(Counter(rows).items()):
        noisy = n + two_sided(1.0, rng)  # here
        if noisy >= 4:
            out.append((key, noisy))
    return out


@broken(PureDP(1.0), ([(0, 0), (2, 1)], [(9, 0), (0, 0), (2, 1)]), "loss")
def even_table_before_the_shuffle(rows, rng):
    rows = rows[: len(rows) // 2 * 2]
    order = rng.permutation(len(rows))
    shuffled = [rows[k] for k in order]
    up = sum(b[1] > a[1] for a, b in zip(shuffled[::2], shuffled[1::2], strict=True))
    near = sum(
        abs(b[0] - a[0]) < 5 for a, b in zip(shuffled[::2], shuffled[1::2], strict=True)
    )
    return up + rng.laplace(scale=2.0), near + near + rng.laplace(scale=1.0)  # here


@broken(PureDP(1.0), ([0], [1]), "round")
def one_sided_response(bits, rng):
    return [1 if bit and rng.random() < 0.5 else 0 for bit in bits]


# -- correct -------------------------------------------------------------------------------------------------------------


@correct(PureDP(1.0), ([("ann", 9), ("bob", 1)], [("ann", 9), ("ann", 9), ("bob", 1)]))
def capped_by_user(visits, rng):
    spent = defaultdict(int)
    for user, amount in visits:
        spent[user] = min(spent[user] + amount, 10)
    return sum(spent.values()) + rng.laplace(scale=10.0)


@correct(PureDP(1.0), (["x", "y"], ["x"]))
def public_domain(rows, rng):
    return {key: rows.count(key) + rng.laplace(scale=1.0) for key in ("x", "y", "z")}


@correct(PureDP(math.log(3)), (0, 1))
def truth_or_lie(bit, rng):
    return bit if rng.random() < 0.75 else 1 - bit


@correct(PureDP(2 * math.log(3)), ([1, 0, 1, 1, 0, 0], [0, 1, 1, 1, 0, 0]))
def bits_turned_round(bits, rng):
    keep = rng.random(len(bits)) < 0.75
    return np.where(keep, bits, 1 - np.array(bits)).tolist()


@correct(PureDP(math.log(3)), ("no", "yes"))
def asked_twice(answer, rng):
    """Half of the people say the truth, the others what a coin says."""
    if rng.random() < 0.5:
        return answer
    return "yes" if rng.random() < 0.5 else "no"


@correct(PureDP(1.0), (3, 4))
def retried_until_positive(count, rng):
    """A noisy count, in post-processing no smaller than 0."""
    return max(0, count + two_sided(1.0, rng))


@correct(PureDP(1.0), ((3.0, 1.0, 1.0), (2.0, 1.0, 1.0)))
def best_of_three(scores, rng):
    return ("a", "b", "c")[
        int(np.argmax(np.array(scores) + rng.gumbel(scale=2.0, size=3)))
    ]


@correct(PureDP(1.0), ({"a": 3, "b": 1}, {"a": 2, "b": 1}))
def best_by_max(votes, rng):
    return max(votes, key=lambda name: votes[name] + rng.gumbel(scale=1.0))


@correct(PureDP(1.0), ((3, 1, 2), (2, 1, 2)))
def ticket(votes, rng):
    weights = [2**v for v in votes]
    drawn = int(rng.integers(sum(weights)))
    for name, weight in enumerate(weights):
        if drawn < weight:
            return name
        drawn -= weight
    return None


@correct(ApproxDP(1.0, 1e-5), ([1.0], [1.0, 1.0]))
def gaussian_sum(values, rng):
    return sum(values) + rng.normal(scale=4.0)


@correct(GaussianDP(1.0), (np.zeros((2, 2)), np.full((2, 2), 0.5)))
def sum_of_two_draws(table, rng):
    noise = rng.normal(size=(2, 2)) * 0.6 + 0.8 * rng.normal(size=(2, 2))
    return (table + noise).round(3)


@correct(ApproxDP(1.0, 0.02), (["q", "q"], ["q", "q", "r"]))
def threshold_exceeded(rows, rng):
    noisy = {key: n + two_sided(1.0, rng) for key, n in Counter(rows).items()}
    return sorted((key, n) for key, n in noisy.items() if n > 4)


@correct(PureDP(1.0), ([3, 4], [3, 5]))
def halves_of_the_budget(values, rng):
    low, high = (sum(f(v, 4) for v in values) for f in (min, max))
    return [low + rng.laplace(scale=2.0), high + rng.laplace(scale=2.0)]


@correct(ApproxDP(0.5, 0.01), (5, 6))
def exact_within_delta(count, rng):
    return count if rng.random() < 0.01 else count + two_sided(0.5, rng)


@correct(PureDP(1.0), ([1, 1, 0, 1], [1, 1, 0, 0]))
def other_people_draw(bits, rng):
    """Padding by a number that does not depend on the data."""
    return [sum(bits) + two_sided(1.0, rng)] + ["-"] * int(rng.integers(3))


def traced(case):
    """Every pair trace of a case: three seeds, both orders."""
    trace = Trace(case.function)
    for seed in range(3):
        for data, neighbour in (case.pair, case.pair[::-1]):
            yield compare(
                trace, data, neighbour, np.random.default_rng(seed), claim=case.claim
            )


def line_of(case):
    """The line that ends with the mark; None where no line is to blame."""
    lines, start = inspect.getsourcelines(case.function)
    return next((start + k for k, line in enumerate(lines) if "# here" in line), None)


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.function.__name__)
def test_a_broken_function_is_proposed_with_the_reason_and_the_line(case):
    proposals = [
        finding
        for pair in traced(case)
        for finding in pair.findings
        if finding.is_read_off
    ]
    found = [finding for finding in proposals if finding.kind == case.kind]
    assert found, proposals
    line = line_of(case)
    assert line is None or any(finding.site.line == line for finding in found)
    assert line is None or any(
        f"line {line} " in finding.sentence or f"line {line}:" in finding.sentence
        for finding in found
    )


@pytest.mark.parametrize("case", CORRECT, ids=lambda case: case.function.__name__)
def test_a_correct_function_is_not_proposed(case):
    wrong = [
        finding
        for pair in traced(case)
        for finding in pair.findings
        if finding.is_read_off
    ]
    assert not wrong


def test_how_much_of_it_is_traced():
    """Figures of the table above: all of it in full, in part, and not at all."""
    extents = Counter(next(iter(traced(case))).extent for case in (*BROKEN, *CORRECT))
    assert len(BROKEN) >= 20
    assert len(CORRECT) >= 10
    assert extents["none"] == 0
    assert extents["full"] >= 0.9 * extents.total()
