"""Trees, synthesizers of three columns, federated rounds, loops of DP-SGD and local protocols: broken ones."""

from __future__ import annotations

import math
import secrets
from collections import Counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from auditdp import AnyValues, GaussianDP, PureDP
from benchmarks.ordinary_case import Rng
from benchmarks.traced_case import LOSS, REUSE, ROUND, SCALE, TracedCases

TREES = TracedCases("trees")
SYNTHESIZERS = TracedCases("synthesizers")
FEDERATED = TracedCases("federated rounds")
TRAINING = TracedCases("DP-SGD loops")
LOCAL = TracedCases("local protocols")
POINTS = np.array([[0.1, 0.2], [0.8, 0.9], [0.7, 0.1], [0.2, 0.6]])
PEOPLE = [("f", "no", 3), ("m", "no", 1), ("f", "se", 2), ("f", "no", 2)]
UPDATES = np.array([[1.0, 1.0, 1.0, 1.0], [0.5, -0.5, 0.2, 0.1]])
EXAMPLES = np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 4.0]])


@TREES.broken(
    PureDP(1.0),
    [(POINTS, POINTS[:3])],
    LOSS,
    why="A point is in a cell of each of two levels, each for ε.",
)
def quadtree(points: NDArray[Any], rng: Rng) -> dict[str, float]:
    """Return noisy counts of the cells of a quadtree of two levels."""
    counts: dict[str, float] = {}

    def visit(part: NDArray[Any], corner: NDArray[Any], side: float, name: str) -> None:
        counts[name] = len(part) + rng.laplace(scale=1.0)  # here
        if side > 0.5:
            for k in range(4):
                low = corner + side / 2 * np.array([k % 2, k // 2])
                inside = np.all((part >= low) & (part < low + side / 2), axis=1)
                visit(part[inside], low, side / 2, f"{name}{k}")

    visit(points, np.zeros(2), 1.0, "r")
    return counts


@TREES.broken(
    PureDP(1.0),
    [([(0, 1, 1), (1, 0, 1), (0, 0, 0)], [(0, 1, 1), (0, 0, 0)])],
    ROUND,
    why="The split is the best one of the data.",
)
def stump(rows: list[tuple[int, int, int]], rng: Rng) -> tuple[int, float, float]:
    """Return the feature that agrees best with the label, and noisy counts of both leaves."""
    best = max(range(2), key=lambda k: sum(row[k] == row[2] for row in rows))
    leaves = Counter(row[best] for row in rows)
    return best, leaves[0] + rng.laplace(), leaves[1] + rng.laplace()


@TREES.broken(
    PureDP(1.0),
    [([(1, 1), (0, 1)], [(1, 1), (0, 1), (1, 1)])],
    LOSS,
    why="Each of three trees sees the row and takes ε.",
)
def forest(rows: list[tuple[int, int]], rng: Rng) -> list[list[float]]:
    """Return the noisy leaves of three random trees of one split."""
    trees = []
    for _ in range(3):
        cut = rng.integers(0, 2)
        leaves = [sum(x > cut for x, _ in rows), sum(x <= cut for x, _ in rows)]
        trees.append([leaf + rng.laplace(scale=1.0) for leaf in leaves])  # here
    return trees


@TREES.broken(
    PureDP(1.0),
    [([4, 2], [4, 3])],
    ROUND,
    why="Children are scaled so that they add up to the exact root.",
)
def consistent(leaves: list[int], rng: Rng) -> list[float]:
    """Return noisy leaves that add up to the root."""
    noisy = np.array(leaves) + rng.laplace(scale=1.0, size=len(leaves))
    return list(noisy + (sum(leaves) - noisy.sum()) / len(leaves))


@TREES.broken(
    PureDP(1.0),
    [(list("aaab"), list("aab")), (list("aaaabb"), list("aaabb"))],
    ROUND,
    why="Whether a node splits depends on its exact count.",
)
def prefix_tree(words: list[str], rng: Rng) -> dict[str, float]:
    """Return noisy counts of prefixes, which are extended where four rows have them."""
    found = {"": len(words) + rng.laplace(scale=2.0)}
    if len(words) >= 4:
        for letter in "ab":
            found[letter] = words.count(letter) + rng.laplace(scale=2.0)
    return found


@SYNTHESIZERS.broken(
    PureDP(1.0),
    [(PEOPLE, PEOPLE[1:])],
    LOSS,
    why="A row is in three tables of two columns, each for ε.",
)
def pairwise_tables(
    rows: list[tuple[str, str, int]], rng: Rng
) -> list[dict[Any, float]]:
    """Return noisy tables of every two of three columns."""
    values = (("f", "m"), ("no", "se"), (1, 2, 3))
    tables = []
    for i, j in ((0, 1), (0, 2), (1, 2)):
        counts = Counter((row[i], row[j]) for row in rows)
        tables.append(
            {
                (a, b): counts[a, b] + rng.laplace(scale=1.0)
                for a in values[i]
                for b in values[j]
            }
        )  # here
    return tables


@SYNTHESIZERS.broken(
    PureDP(1.0),
    [(PEOPLE[2:3], [])],
    LOSS,
    why="The conditional table is the exact one.",
)
def chain(rows: list[tuple[str, str, int]], rng: Rng) -> list[tuple[str, str]]:
    """Return eight synthetic rows: a sex from a noisy table, and a country given the sex."""
    noisy = np.array(
        [
            max(sum(row[0] == sex for row in rows) + rng.laplace(scale=1.0), 0.1)
            for sex in "fm"
        ]
    )
    made = []
    for _ in range(8):
        sex = rng.choice(["f", "m"], p=noisy / noisy.sum())
        given = np.array(
            [
                1 + sum(row[:2] == (sex, country) for row in rows)
                for country in ("no", "se")
            ]
        )
        made.append(
            (str(sex), str(rng.choice(["no", "se"], p=given / given.sum())))
        )  # here
    return made


@SYNTHESIZERS.broken(
    PureDP(1.0),
    [([1.0, 2.0, 3.0], [1.0, 2.0, 9.0])],
    LOSS,
    SCALE,
    why="Mean and deviation are those of the data.",
)
def normal_column(values: list[float], rng: Rng) -> list[float]:
    """Return five synthetic values."""
    return [
        float(x) for x in rng.normal(np.mean(values), np.std(values), size=5)
    ]  # here


@SYNTHESIZERS.broken(
    PureDP(1.0),
    [(PEOPLE[2:], PEOPLE[3:])],
    LOSS,
    ROUND,
    why="Two of the three columns are those of a row that was drawn.",
)
def resampled(
    rows: list[tuple[str, str, int]], rng: Rng
) -> list[tuple[str, str, float]]:
    """Return two rows that are drawn from the data, with noise on the number."""
    made = []
    for _ in range(2):
        sex, country, number = rows[int(rng.integers(len(rows)))]
        made.append((sex, country, number + rng.laplace(scale=10.0)))
    return made


@SYNTHESIZERS.broken(
    PureDP(1.0),
    [([2.0, 4.0, 5.0], [2.0, 4.0])],
    SCALE,
    ROUND,
    why="The range, and the noise with it, is that of the data.",
)
def rescaled(values: list[float], rng: Rng) -> float:
    """Return the mean of a column after it was scaled to 0..1, in its own unit."""
    low, high = min(values), max(values)
    share = np.mean([(value - low) / (high - low) for value in values])
    return float(low + (high - low) * (share + rng.laplace(scale=1 / 2)))  # here


@FEDERATED.broken(
    GaussianDP(1.0),
    [(UPDATES, UPDATES[1:])],
    LOSS,
    why="Entries are clipped to 1 each, so that an update has norm 2.",
)
def clipped_by_entry(updates: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """Return the noisy sum of clipped updates."""
    return np.clip(updates, -1, 1).sum(axis=0) + rng.standard_normal(4)  # here


CLIENTS = [(3, np.array([0.6, 0.8])), (1, np.array([0.0, 1.0]))]


@FEDERATED.broken(
    GaussianDP(1.0),
    [(CLIENTS, CLIENTS[1:])],
    LOSS,
    why="A client with three examples counts three times.",
)
def weighted(clients: list[tuple[int, NDArray[Any]]], rng: Rng) -> NDArray[Any]:
    """Return the noisy sum of updates of norm 1, weighted by examples."""
    total = np.zeros(2)
    for examples, update in clients:
        total += examples * update
    return total + rng.normal(0.0, 1.0, 2)  # here


@FEDERATED.broken(
    GaussianDP(1.0),
    [(UPDATES / 2, np.vstack([np.zeros(4), UPDATES[1:] / 2]))],
    LOSS,
    why="Each of two clients adds noise of a half of the variance that it has to.",
)
def distributed_noise(updates: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """Return the sum of updates, to each of which its client has added a share of the noise."""
    shares = [
        update / max(1.0, np.linalg.norm(update)) + rng.normal(scale=0.25, size=4)
        for update in updates
    ]  # here
    return np.sum(shares, axis=0)


@FEDERATED.broken(
    GaussianDP(1.0),
    [(UPDATES / 2, UPDATES[1:] / 2)],
    ROUND,
    why="Momentum is kept of the exact sum.",
)
def momentum(updates: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """Return the model after two rounds with momentum."""
    model, velocity = np.zeros(4), np.zeros(4)
    for _ in range(2):
        exact = updates.sum(axis=0)
        model = model + exact + rng.normal(scale=math.sqrt(2), size=4) + 0.5 * velocity
        velocity = 0.5 * velocity + exact
    return model


@TRAINING.broken(
    GaussianDP(1.0),
    [(torch.tensor(EXAMPLES), torch.tensor(EXAMPLES[:2]))],
    LOSS,
    why="The noise is divided by the batch size, the sum is not.",
)
def sum_for_mean(examples: Any) -> Any:
    """Return the weights after two steps on clipped examples."""
    weights = torch.zeros(2, dtype=torch.float64)
    for _ in range(2):
        clipped = examples / examples.norm(dim=1, keepdim=True).clamp(min=1.0)
        noise = torch.normal(0.0, 1.5, size=(2,), dtype=torch.float64)
        weights = weights - 0.1 * (clipped.sum(dim=0) + noise / 3)  # here
    return weights


@TRAINING.broken(
    GaussianDP(1.0),
    [(torch.tensor(EXAMPLES), torch.tensor(EXAMPLES[:2]))],
    ROUND,
    why="The bias gets no noise.",
)
def bias_without_noise(examples: Any) -> tuple[Any, Any]:
    """Return weight and bias after a step."""
    clipped = examples / examples.norm(dim=1, keepdim=True).clamp(min=1.0)
    weight = clipped.sum(dim=0) + torch.randn(2, dtype=torch.float64)
    return weight, clipped.sum()


@TRAINING.broken(
    GaussianDP(1.0),
    [(EXAMPLES / 5, EXAMPLES[:2] / 5)],
    REUSE,
    LOSS,
    why="The noise is drawn once for all steps.",
)
def noise_before_the_loop(examples: NDArray[Any], rng: Rng) -> list[NDArray[Any]]:
    """Return the weights after each of two steps."""
    noise, weights, seen = rng.normal(scale=2.0, size=2), np.zeros(2), []
    for step in range(2):
        gradient = (examples * (1 + step)).sum(axis=0) - weights
        weights = weights + 0.1 * (gradient + noise)  # here
        seen.append(weights.copy())
    return seen


@TRAINING.broken(
    GaussianDP(1.0),
    [(EXAMPLES / 5, EXAMPLES[:2] / 5)],
    ROUND,
    why="Whether training goes on is decided by the exact loss.",
)
def early_stop(examples: NDArray[Any], rng: Rng) -> tuple[int, NDArray[Any]]:
    """Return the step at which the loss is small, and the weights."""
    weights = np.zeros(2)
    for step in range(3):
        weights = weights + 0.2 * (examples.sum(axis=0) + rng.normal(scale=4.0, size=2))
        if np.square(examples).sum() < 1.0:
            return step, weights
    return 3, weights


@LOCAL.broken(
    PureDP(1.0),
    AnyValues((0, 1, 2, 3)),
    LOSS,
    why="Two bits differ between two values, each for ε.",
)
def unary(value: int, rng: Rng) -> list[int]:
    """Return the bits of a value in unary coding, each turned round for ε."""
    keep = math.e / (1 + math.e)
    return [int((k == value) == (rng.random() < keep)) for k in range(4)]  # here


@LOCAL.broken(
    PureDP(1.0),
    AnyValues(("a", "b", "c")),
    LOSS,
    why="The lie may be the truth, and is too seldom.",
)
def k_answers(value: str, rng: Rng) -> str:
    """Return the value, or else any value."""
    truth = math.e / (math.e + 2)
    others = ["a", "b", "c"]
    table = [truth * (other == value) + (1 - truth) / 3 for other in others]
    return str(rng.choice(others, p=table))  # here


@LOCAL.broken(
    PureDP(1.0), [(np.zeros(3), np.ones(3))], LOSS, why="Each of three entries takes ε."
)
def location(vector: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """Return a vector of entries in 0..1 with noise."""
    return vector + rng.exponential(1.0, 3) - rng.exponential(1.0, 3)  # here


@LOCAL.broken(
    PureDP(1.0),
    [(0.5, 2.5)],
    LOSS,
    ROUND,
    why="A value beyond the bound has probability 1.",
)
def one_bit(value: float, rng: Rng) -> int:
    """Return a bit whose mean is linear in a value of −1..1."""
    p = 0.5 + value * (math.e - 1) / (2 * (math.e + 1))
    return 1 if rng.uniform() < p else -1  # here


@LOCAL.broken(
    PureDP(1.0), AnyValues((0, 1)), LOSS, why="Of ten tickets one lies, for ε of ln 9."
)
def ticket(bit: int) -> int:
    """Return a bit, turned round by a ticket of ten."""
    return bit ^ (secrets.randbelow(10) == 0)  # here


BROKEN_MODELS = (*TREES, *SYNTHESIZERS, *FEDERATED, *TRAINING, *LOCAL)
