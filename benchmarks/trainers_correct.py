"""Is a correct trainer accused on neighbours that ``audit_training`` derives? Ten trainers for each kind of given pair.

Every row has a claim that is exact for pairs that differ as the given one does, and its argument. Most would be false if
more changed: public features, labels and edges are released as they are, and noise is for one edge or one field alone.

``python -m benchmarks.trainers_correct`` audits each with ten seeds and prints how many games accused one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from auditdp import GaussianDP, Pair, PureDP, audit_training
from benchmarks.parts import Bar, Options, Result
from benchmarks.trainer_cases import (
    POISSON,
    POISSON_NOISE,
    SHARE,
    STEPS_OF_EPOCHS,
    clipped,
    gradients,
    people,
)

SEEDS, CALLS = 10, 300
"""Games of each trainer, and trainings of each game."""
ROW = "derived neighbours of a correct trainer, "
STEPS, NOISE, RATE = 4, 4.0, 0.05
KINDS = (
    "record added",
    "record replaced",
    "edge added",
    "node added or changed",
    "user added",
)
Trained = tuple[Callable[..., Any], Any]
"""A trainer and its claim."""


@dataclass(frozen=True)
class Case:
    """A correct trainer.

    Attributes:
        kind: The kind of pair that its user gives.
        name: What it does.
        pair: The pair that its user gives.
        trained: The trainer and its claim.
        why: Why the claim is true.
    """

    kind: str
    name: str
    pair: Pair
    trained: Trained
    why: str


def noised(
    statistic: Callable[[Any], Any], moves: float, noise: float = 2.0
) -> Trained:
    """Release a statistic with Gaussian noise, relative to its Euclidean sensitivity."""

    def train(data: Any, rng: np.random.Generator) -> Any:
        value = np.asarray(statistic(data), float)
        return value + rng.normal(scale=noise * moves, size=value.shape)

    return train, GaussianDP(1 / noise)


def counted(statistic: Callable[[Any], Any], moves: float) -> Trained:
    """Release a statistic with Laplace noise, relative to its l1 sensitivity: 1-DP."""

    def train(data: Any, rng: np.random.Generator) -> Any:
        value = np.asarray(statistic(data), float)
        return value + rng.laplace(scale=moves, size=value.shape)

    return train, PureDP(1.0)


def descended(
    gradient: Callable[[Any, Any], Any],
    moves: float,
    finish: Callable[[Any], Any] = lambda all_: all_[-1],
) -> Trained:
    """Descend along a gradient with known sensitivity; each step is 1/noise-Gaussian DP."""

    def train(data: Any, rng: np.random.Generator) -> Any:
        weights = [np.zeros(3)]
        for _ in range(STEPS):
            weights.append(
                weights[-1]
                - RATE
                * (
                    gradient(weights[-1], data)
                    + rng.normal(scale=NOISE * moves, size=3)
                )
            )
        return finish(weights)

    return train, GaussianDP(STEPS**0.5 / NOISE)


def beside(trained: Trained, public: Callable[[Any], Any]) -> Trained:
    """Release a common part of both neighbours in addition to the model."""
    train, claim = trained
    return lambda data, rng: [train(data, rng), public(data)], claim


def unit(rows: Any) -> Any:
    """Return rows divided by their lengths."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def example_gradients(weights: Any, data: Any, norm: float = 1.0) -> Any:
    """Return the sum of gradients, each cut to a norm."""
    return clipped(gradients(weights, *data[:2]), norm).sum(0)


def by_layer(weights: Any, data: Any) -> Any:
    """Return the same sum where weights and bias are cut by themselves, to 0.6 and 0.8."""
    raw = gradients(weights, *data)
    return np.concatenate(
        [clipped(raw[:, :2], 0.6), clipped(raw[:, 2:], 0.8)], axis=1
    ).sum(0)


def logistic(weights: Any, data: Any) -> Any:
    """Return the gradient of a logistic regression on features of norm 1 at most, without a constant."""
    features, signs = clipped(data[0]), np.sign(data[1])
    errors = -signs / (1 + np.exp(signs * (features @ weights[:2])))
    return np.append((errors[:, None] * features).sum(0), 0.0)


def moments(data: Any) -> Any:
    """Return sums of products of records that are cut to norm 1, features with features and with labels."""
    rows = clipped(np.column_stack(data))
    return rows.T @ rows


def sampled(data: Any, rng: np.random.Generator) -> Any:
    """Descend by batches of Poisson sampling, as ``POISSON`` describes them."""
    weights = np.zeros(3)
    for _ in range(STEPS_OF_EPOCHS):
        batch = rng.random(len(data[1])) < SHARE
        noise = rng.normal(scale=POISSON_NOISE, size=3)
        weights = weights - RATE * (
            example_gradients(weights, (data[0][batch], data[1][batch])) + noise
        )
    return weights


def by_torch(data: Any) -> Any:
    """Release the clipped gradient of each record at 0, summed by torch, with noise from its global generator."""
    import torch

    weights = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    total = torch.zeros(2, dtype=torch.float64)
    for x, y in zip(*map(torch.as_tensor, data), strict=True):
        (slope,) = torch.autograd.grad((x @ weights - y) ** 2, weights)
        total += slope / slope.norm().clamp(min=1.0)
    return total + 2 * torch.randn(2, dtype=torch.float64)


def received(values: Any, edges: Any) -> Any:
    """Return the sums of the values of nodes that send to each."""
    total = np.zeros(np.shape(values))
    np.add.at(total, edges[1], values[edges[0]])
    return total


def two_hops(graph: Any, rng: np.random.Generator) -> Any:
    """Yield sums over neighbours, and over theirs, of directions with noise for two rows in each."""
    values = graph.x
    for _ in range(2):
        values = received(unit(values), graph.edges)
        values = values + rng.normal(scale=NOISE * 2**0.5, size=values.shape)
        yield values


def matrix(edges: Any) -> Any:
    """Return the adjacency matrix of edges."""
    made = np.zeros((NODES, NODES))
    made[tuple(edges)] = 1
    return made


def links(weights: Any, graph: Any) -> Any:
    """Return the sum of clipped gradients of a regression on the ends of each edge."""
    ends = graph.edges[:, graph.edges[0] < graph.edges[1]]
    return clipped(
        gradients(weights, graph.x[ends[0]] * graph.x[ends[1]], np.ones(len(ends[0])))
    ).sum(0)


def of_sums(weights: Any, graph: Any, norm: float) -> Any:
    """Return the sum of clipped gradients of nodes on their own and their neighbours' features."""
    return example_gradients(
        weights, (graph.x + received(graph.x, graph.edges), graph.y), norm
    )


def updates(weights: Any, users: Any) -> Any:
    """Return the sum of users' clipped updates by two steps on their own rows."""
    moved = []
    for x, y in users:
        own = weights - RATE * gradients(weights, x, y).sum(0)
        moved.append(weights - own + RATE * gradients(own, x, y).sum(0))
    return clipped(np.array(moved)).sum(0)


def each_user(made: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """Return the sum of a function of each user, clipped to norm 1."""
    return lambda users: clipped(np.array([made(*user) for user in users])).sum(0)


def by_user(weights: Any, users: Any) -> Any:
    """Return the sum of the gradients of users, each cut to norm 1."""
    return each_user(lambda x, y: gradients(weights, x, y).sum(0))(users)


def sampled_users(users: Any, rng: np.random.Generator) -> Any:
    """Descend by batches of users of Poisson sampling."""
    weights = np.zeros(3)
    for _ in range(STEPS_OF_EPOCHS):
        batch = [user for user in users if rng.random() < SHARE]
        total = by_user(weights, batch) if batch else 0.0
        weights = weights - RATE * (total + rng.normal(scale=POISSON_NOISE, size=3))
    return weights


def changed(
    data: tuple[Any, ...], part: int, value: Any, place: int = 7
) -> tuple[Any, ...]:
    """Return data in which one part of one record is another one."""
    other = data[part].copy()
    other[place] = value
    return (*data[:part], other, *data[part + 1 :])


FEATURES, LABELS = people()
SIGNS = np.sign(LABELS).astype(int)
SIGNED = FEATURES, SIGNS
WITHOUT = Pair((FEATURES, LABELS), (np.delete(FEATURES, 7, 0), np.delete(LABELS, 7)))
ANOTHER = Pair(
    (FEATURES, LABELS),
    changed(changed((FEATURES, LABELS), 0, FEATURES[0]), 1, LABELS[0]),
)
LABEL, FEATURE = (
    Pair(SIGNED, changed(SIGNED, 1, -SIGNS[7])),
    Pair(SIGNED, changed(SIGNED, 0, FEATURES[0])),
)
PAID = [(20 + age, float(pay)) for age, pay in enumerate(LABELS)]
PAY = Pair(PAID, [*PAID[:7], (27, 1.5), *PAID[8:]])
ABSENT = Pair(FEATURES, changed((FEATURES,), 0, 0.0)[0])

Graph = make_dataclass("Graph", ["x", "y", "edges"], frozen=True)
NODES, NODE = 12, 5
X, Y = people(NODES)
UPPER = np.argwhere(np.triu(np.random.default_rng(3).random((NODES, NODES)) < 0.3, 1)).T
BOTH = np.concatenate([UPPER, UPPER[::-1]], axis=1)
MOST = int(np.bincount(BOTH[0]).max())
"""The most neighbours of a node, which is public."""
KEPT, LAST = BOTH[:, (BOTH != NODE).all(axis=0)], UPPER[:, -1:]
BEFORE = np.concatenate([UPPER[:, :-1], UPPER[::-1, :-1]], axis=1)
EDGE, DIRECTED = (
    Pair(Graph(X, Y, BOTH), Graph(X, Y, BEFORE)),
    Pair((X, UPPER), (X, UPPER[:, :-1])),
)
MISSING = Pair(
    Graph(X, Y, BOTH),
    Graph(np.delete(X, NODE, 0), np.delete(Y, NODE), KEPT - (KEPT > NODE)),
)
LONELY = Pair(Graph(X, Y, KEPT), MISSING.neighbour)
LISTED = Pair(
    *(
        (each.x, each.y, sorted(map(tuple, each.edges.T.tolist())))
        for each in (MISSING.data, MISSING.neighbour)
    )
)
CUT = Pair(Graph(X, Y, BOTH), Graph(X, Y, KEPT))
OTHERS = np.array([[NODE, NODE], [0, 11]])
REWIRED = Pair(
    Graph(X, Y, BOTH), Graph(X, Y, np.concatenate([KEPT, OTHERS, OTHERS[::-1]], axis=1))
)
MOVED = Pair(Graph(X, Y, BOTH), Graph(*changed((X, Y, BOTH), 0, X[0], NODE)))
LABELLED = Pair(
    Graph(X, np.sign(Y), BOTH),
    Graph(*changed((X, np.sign(Y), BOTH), 1, -np.sign(Y[NODE]), NODE)),
)

ENDS = np.cumsum([0, 3, 1, 4, 2, 3, 2, 1, 4])
USERS = [(FEATURES[a:b], LABELS[a:b]) for a, b in pairwise(ENDS)]
USER = Pair(USERS, [*USERS[:3], *USERS[4:]])
NAMED = Pair(
    *([{"x": x, "y": y} for x, y in users] for users in (USER.data, USER.neighbour))
)
ONE_ROW = Pair(USERS, [*USERS[:3], (USERS[3][0][:1], USERS[3][1][:1]), *USERS[4:]])
WORDS = ["a", "b", "c", "d"]
SPOKEN = ["a b a", "c", "d d b a", "b c a d", "a c", "d"]
TEXTS = Pair(SPOKEN, [*SPOKEN[:3], *SPOKEN[4:]])


def signs(data: Any) -> Any:
    """Return the numbers of positive and of other labels."""
    return [np.sum(data[1] > 0), np.sum(data[1] <= 0)]


def edges_of(graph: Any) -> float:
    """Return the number of edges of an undirected graph."""
    return graph.edges.shape[1] / 2


def by_labels(graph: Any) -> Any:
    """Return the number of edges between nodes of each two signs."""
    ends = graph.y[graph.edges[:, graph.edges[0] < graph.edges[1]]] > 0
    return np.bincount(ends.sum(axis=0), minlength=3)


def words(texts: Any) -> Any:
    """Return, for each word, the number of texts with it among their first three words."""
    return [
        sum(word in [*dict.fromkeys(text.split())][:3] for text in texts)
        for word in WORDS
    ]


ROWS: Sequence[Sequence[tuple[str, Pair, Trained, str]]] = [
    [
        (
            "clipped gradients",
            WITHOUT,
            descended(example_gradients, 1),
            "a gradient has norm 1 at most",
        ),
        (
            "all steps",
            WITHOUT,
            descended(example_gradients, 1, list),
            "the theorem is about all steps",
        ),
        ("clipping by layer", WITHOUT, descended(by_layer, 1), "0.6² + 0.8² = 1"),
        (
            "mean iterate",
            WITHOUT,
            descended(example_gradients, 1, lambda all_: np.mean(all_, 0)),
            "post-processing",
        ),
        (
            "logistic regression",
            WITHOUT,
            descended(logistic, 1),
            "the loss has slope 1, and features norm 1, at most",
        ),
        (
            "directions",
            WITHOUT,
            noised(lambda data: unit(data[0]).sum(0), 1),
            "a direction has norm 1",
        ),
        ("moments", WITHOUT, noised(moments, 1), "|aaᵀ| = |a|² in the Frobenius norm"),
        ("signs counted", WITHOUT, counted(signs, 1), "a record is in one count"),
        (
            "Poisson batches",
            WITHOUT,
            (sampled, POISSON),
            "the accountant is told of this noise and this rate",
        ),
        (
            "loop of torch",
            WITHOUT,
            (by_torch, GaussianDP(0.5)),
            "a gradient has norm 1 at most",
        ),
    ],
    [
        (
            "clipped gradients",
            ANOTHER,
            descended(example_gradients, 2),
            "one gradient goes and one comes",
        ),
        (
            "mean gradient",
            ANOTHER,
            descended(lambda w, data: example_gradients(w, data) / len(data[1]), 0.1),
            "2 of 20",
        ),
        (
            "moments",
            ANOTHER,
            noised(moments, 2**0.5),
            "|aaᵀ - bbᵀ|² = |a|⁴ + |b|⁴ - 2⟨a, b⟩² ≤ 2",
        ),
        (
            "signs counted",
            ANOTHER,
            counted(signs, 2),
            "a record leaves one count for another",
        ),
        (
            "labels",
            LABEL,
            beside(noised(lambda d: clipped(d[0]).T @ d[1], 2), lambda d: d[0]),
            "features are public",
        ),
        (
            "signs by side",
            LABEL,
            beside(counted(lambda d: d[1][d[0][:, 0] > 0].sum(), 2), lambda d: d[0]),
            "-1 and 1",
        ),
        (
            "features",
            FEATURE,
            beside(noised(lambda d: clipped(d[0]).T @ d[1], 2), lambda d: d[1]),
            "labels are public",
        ),
        (
            "centre",
            FEATURE,
            beside(noised(lambda d: unit(d[0])[d[1] > 0].sum(0), 2), lambda d: d[1]),
            "two directions",
        ),
        (
            "pay",
            PAY,
            beside(
                noised(lambda d: np.clip([pay for _, pay in d], 0, 1).sum(), 1),
                lambda d: [age for age, _ in d],
            ),
            "ages are public",
        ),
        (
            "records put to 0",
            ABSENT,
            noised(lambda data: clipped(data).sum(0), 1),
            "one of the two is 0",
        ),
    ],
    [
        (
            "sums",
            EDGE,
            beside(
                noised(lambda g: received(unit(g.x), g.edges), 2**0.5), lambda g: g.x
            ),
            "two rows, by 1",
        ),
        (
            "two hops",
            EDGE,
            (two_hops, GaussianDP(2**0.5 / NOISE)),
            "two releases, each of two rows, by 1",
        ),
        (
            "edges counted",
            EDGE,
            beside(counted(edges_of, 1), lambda g: (g.x, g.y)),
            "there is one more",
        ),
        (
            "degrees",
            EDGE,
            noised(lambda g: np.bincount(g.edges[0], minlength=NODES), 2**0.5),
            "two of them, by 1",
        ),
        (
            "edges by labels",
            EDGE,
            beside(counted(by_labels, 1), lambda g: g.y),
            "an edge is in one count",
        ),
        (
            "link prediction",
            EDGE,
            descended(links, 1),
            "the gradient of an edge has norm 1 at most",
        ),
        (
            "directed sums",
            DIRECTED,
            noised(lambda g: received(unit(g[0]), g[1]), 1),
            "one row, by 1",
        ),
        (
            "means",
            EDGE,
            noised(
                lambda g: (
                    received(unit(g.x), g.edges)
                    / np.maximum(np.bincount(g.edges[0], minlength=NODES), 1)[:, None]
                ),
                2**0.5,
            ),
            "each of two means of directions moves by 1 where it is of one, and by 2/(d + 1) ≤ 1 beyond",
        ),
        (
            "triangles",
            EDGE,
            counted(
                lambda g: np.trace(np.linalg.matrix_power(matrix(g.edges), 3)) / 6,
                MOST - 1,
            ),
            "others",
        ),
        (
            "gradients of nodes",
            EDGE,
            descended(partial(of_sums, norm=0.25), 1),
            "two of them, each by 2/4",
        ),
    ],
    [
        ("nodes counted", MISSING, counted(lambda g: len(g.x), 1), "there is one more"),
        (
            "own gradients",
            MISSING,
            descended(lambda w, g: example_gradients(w, (g.x, g.y)), 1),
            "one of norm 1",
        ),
        (
            "gradients of sums",
            MISSING,
            descended(partial(of_sums, norm=1), 1 + 2 * MOST),
            "its own, and its neighbours', by 2",
        ),
        (
            "edges of a list",
            LISTED,
            counted(lambda g: len(g[2]) / 2, MOST),
            "it has so many at most",
        ),
        (
            "edges there or not",
            CUT,
            beside(counted(edges_of, MOST), lambda g: (g.x, g.y)),
            "it has so many at most",
        ),
        (
            "degrees",
            CUT,
            beside(
                noised(
                    lambda g: np.bincount(g.edges[0], minlength=NODES),
                    (MOST**2 + MOST) ** 0.5,
                ),
                lambda g: g.x,
            ),
            "its own, by MOST, and as many others, by 1",
        ),
        (
            "edges by labels",
            REWIRED,
            beside(counted(lambda g: by_labels(g)[1], MOST), lambda g: (g.x, g.y)),
            "0 to MOST",
        ),
        (
            "sums over public edges",
            MOVED,
            beside(
                noised(lambda g: received(unit(g.x), g.edges), 2 * MOST**0.5),
                lambda g: (g.y, g.edges),
            ),
            "MOST rows, each by 2",
        ),
        (
            "labels of public nodes",
            LABELLED,
            beside(counted(lambda g: signs((g.x, g.y)), 2), lambda g: (g.x, g.edges)),
            "a node leaves one count for another",
        ),
        (
            "sums beside a lonely node",
            LONELY,
            noised(lambda g: clipped(g.x + received(g.x, g.edges)).sum(0), 1),
            "its own",
        ),
    ],
    [
        (
            "gradients of users",
            USER,
            descended(by_user, 1),
            "a user's sum has norm 1 at most",
        ),
        (
            "local updates",
            USER,
            descended(updates, 1),
            "a user's update has norm 1 at most",
        ),
        (
            "means of users",
            USER,
            noised(each_user(lambda x, y: x.mean(0)), 1),
            "a mean has norm 1 at most",
        ),
        (
            "directions of users",
            USER,
            noised(each_user(lambda x, y: unit(x).mean(0)), 1),
            "so has one of directions",
        ),
        ("users counted", USER, counted(len, 1), "there is one more"),
        (
            "two rows each",
            USER,
            noised(lambda users: sum(clipped(x[:2]).sum(0) for x, _ in users), 2),
            "2 of norm 1",
        ),
        ("words", TEXTS, counted(words, 3), "a text is in three counts at most"),
        (
            "Poisson batches",
            USER,
            (sampled_users, POISSON),
            "the accountant is told of this noise and this rate",
        ),
        (
            "named parts",
            NAMED,
            noised(
                lambda users: sum(clipped(user["x"]).max(0) for user in users), 2**0.5
            ),
            "1 each",
        ),
        (
            "a row of a user",
            ONE_ROW,
            beside(
                noised(lambda users: sum(clipped(x).sum(0) for x, _ in users), 1), len
            ),
            "one row has norm 1 at most, and there are as many users",
        ),
    ],
]
CASES = {
    f"{kind}, {row[0]}": Case(kind, *row)
    for kind, rows in zip(KINDS, ROWS, strict=True)
    for row in rows
}


def accused(name: str, seeds: Sequence[int], calls: int = CALLS) -> Result:
    """Audit a trainer with each seed, and count how often it was accused."""
    case = CASES[name]
    train, claim = case.trained
    verdicts = [
        audit_training(train, claim, case.pair, seed=seed, calls=calls).verdict.value
        for seed in seeds
    ]
    return {
        "verdicts": verdicts,
        "accused": sum(verdict != "NOT_REFUTED" for verdict in verdicts),
    }


def units(options: Options) -> dict[str, partial[Result]]:
    """One unit for each trainer."""
    seeds = [
        options.seed + k
        for k in range(options.repeats or (1 if options.quick else SEEDS))
    ]
    return {f"{ROW}{name}": partial(accused, name, seeds) for name in CASES}


def bars(groups: Mapping[str, list[Result]]) -> list[Bar]:
    """Count accusations, by the kind of pair."""
    found = []
    for kind in KINDS:
        runs = [
            run
            for row, results in groups.items()
            if row.startswith(f"{ROW}{kind}, ")
            for run in results
        ]
        games, false = (
            sum(len(run["verdicts"]) for run in runs),
            sum(run["accused"] for run in runs),
        )
        number = sum(case.kind == kind for case in CASES.values())
        found.append(
            Bar(
                f"{number} correct trainers, {kind}, neighbours derived: none accused in {SEEDS} seeds",
                false == 0 if false or games == number * SEEDS else None,
                f"{false} of {games} games",
            )
        )
    return found


def main(arguments: Iterable[str] | None = None) -> None:
    """Print how many games of each kind accused a correct trainer, and which."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--only", default="")
    options = parser.parse_args(None if arguments is None else [*arguments])
    seeds = range(options.seed, options.seed + options.seeds)
    for kind in KINDS:
        names = [
            name
            for name, case in CASES.items()
            if case.kind == kind and options.only in name
        ]
        of_kind = {name: accused(name, seeds) for name in names}
        false = {
            name: result["verdicts"]
            for name, result in of_kind.items()
            if result["accused"]
        }
        print(
            f"{kind}: {sum(map(len, (r['verdicts'] for r in of_kind.values())))} games, accused {false or 'none'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
