"""The exact law of the K largest of numbers with independent Gumbel noise of one scale, in ball arithmetic.

With weights w_i = e^(x_i/scale) the order of the noisy numbers has the law of Plackett and Luce: the largest is i with
probability w_i/Σw, the next one is drawn so among the others, and so on (Luce 1959, "Individual Choice Behavior";
Yellott 1977, J. Math. Psychology 15).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from flint import arb

Law = dict[tuple[int, ...], arb]


def ordered_top_k(weights: Mapping[int, arb], k: int) -> Law:
    """Return P(these indices are the k largest, in this order) for k distinct indices; all of them where there are fewer."""
    if not k or not weights:
        return {(): arb(1)}
    total = sum(weights.values(), arb(0))
    return {
        (first, *rest): weight / total * probability
        for first, weight in weights.items()
        for rest, probability in ordered_top_k({i: w for i, w in weights.items() if i != first}, k - 1).items()
    }


def unordered_top_k(weights: Mapping[int, arb], k: int) -> Law:
    """Return P(these are the k largest) for every set of k indices, ascending; the set of all where there are fewer.

    Set by set, from small to large: the last of a set S is drawn after the others, so
    P(S) = Σ_{i∈S} P(S∖i) w_i / (total − w(S∖i)).
    """
    total = sum(weights.values(), arb(0))
    law: Law = {(): arb(1)}
    for size in range(1, min(k, len(weights)) + 1):
        before = {chosen: p / (total - sum((weights[i] for i in chosen), arb(0))) for chosen, p in law.items()}
        law = {
            chosen: sum((before[(*chosen[:j], *chosen[j + 1 :])] * weights[i] for j, i in enumerate(chosen)), arb(0))
            for chosen in combinations(sorted(weights), size)
        }
    return law
