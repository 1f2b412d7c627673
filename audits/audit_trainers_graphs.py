"""Pipelines of graphs by their own functions: GAP's aggregations, SAGE-DP's sums, DPAR's training, and Features.

Accounting for nodes takes it that a node changes nothing in the arcs of the others. Where arcs are sampled, so that a node
sends to D others at most, a new neighbour displaces an arc of each node that had D already.
"""

import math

import numpy as np

from auditdp import ApproxDP, Audit, Edges, GaussianDP, Pair, audit
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.forecaster import Scored
from audits.trainers import ensembles

GAP = "Sajadmanesh et al. 2023 (GAP), arXiv:2203.00949"
SAGE = "Daigavane et al. 2021, arXiv:2111.15521"
DPAR = "Zhang et al. 2024 (DPAR), arXiv:2210.04442"


def pipelines():
    """Return the mechanisms of pipelines, or skip where torch is missing."""
    ensembles()
    from gnn.ensembles import pipelines

    return pipelines


def hub(count, leaves):
    """Return the pair of a graph with and without a hub.

    Each of them has one more neighbour, which has leaves. Ids: the hub, its nodes, their neighbours, and the leaves.
    """
    nodes = 1 + 2 * count + leaves * count
    graph = np.zeros((nodes, nodes), np.int8)
    for k in range(count):
        first = 1 + 2 * count + leaves * k
        graph[0, 1 + k] = graph[1 + k, 1 + count + k] = 1
        graph[1 + count + k, first : first + leaves] = 1
    graph |= graph.T
    without = graph.copy()
    without[0] = without[:, 0] = 0
    return Pair(graph, without, f"a hub of {count} nodes | no hub")


def aggregated(pair, basis):
    """Return rows to aggregate: (0, 1) of ids from ``basis`` on, which make sums long, and (1, 0) of the others."""
    import torch

    rows = torch.zeros(len(pair.data), 2)
    rows[:basis, 0] = 1
    rows[basis:, 1] = 1
    return rows


def edge(leaves):
    """Return the pair of two stars with and without an edge between their centres."""
    without = np.zeros((2 + 2 * leaves,) * 2, np.int8)
    without[0, 2 : 2 + leaves] = without[1, 2 + leaves :] = 1
    without |= without.T
    graph = without.copy()
    graph[0, 1] = graph[1, 0] = 1
    return Pair(graph, without, "an edge | none")


def gap_on_an_edge(sigma, reach, leaves=8, controls=True):
    """Return the audit of a noisy hop on one edge that is there or not, with noise for a change of the sums."""
    room, pair = pipelines(), edge(leaves)
    x = aggregated(pair, 2)
    return Audit(
        mechanism=room.GAPAggregations(x, 1, sigma * reach, reach),
        claim=GaussianDP(1 / sigma),
        pairs=pair,
        controls=[
            room.GAPAggregations(
                x, 1, sigma * reach / 2, reach / 2, label="half the noise"
            )
        ]
        if controls
        else [],
        forecasters=[Scored()],
        calls=20_000,
        exhaustive=False,
    )


@audit(
    source=f"{GAP}, edge level, for undirected graphs; derived here: √2",
    row="GAP",
    reading="aggregations of an undirected graph, noise for √2",
    repairs="gap_edge_as_one_arc",
)
def gap_edge(sigma=1.0):
    """A noisy hop of GAP with noise √2·λ is 1/λ-Gaussian DP for an undirected edge, which is two arcs."""
    return gap_on_an_edge(sigma, math.sqrt(2))


@audit(
    source=f"a reading of ours: {GAP}, edge level, with the noise of one arc; its code, gap_edp.py",
    expect="violation",
    row="GAP",
    reading="aggregations of an undirected graph, noise for one arc",
)
def gap_edge_as_one_arc(sigma=1.0, leaves=3):
    """A noisy hop of GAP with noise λ is 1/λ-Gaussian DP for an undirected edge. False: it changes two sums."""
    return gap_on_an_edge(sigma, 1.0, leaves, controls=False)


@audit(source="derived here: all sums of neighbours, without noise")
def gap_edge_sums(nodes=4):
    """The sums of rows of norm 1 over neighbours change by √2 at most where an undirected edge is there or not."""
    import torch

    room = pipelines()
    rows = torch.randn(nodes, 3, generator=torch.Generator().manual_seed(0))
    return Audit(
        mechanism=room.GAPAggregations(rows, 1, 1.0, math.sqrt(2) * (1 + 1e-6)),
        claim=GaussianDP(1.0),
        pairs=Edges(nodes),
        controls=[
            room.GAPAggregations(rows, 1, 1.0, 1.0, label="the noise of one arc")
        ],
        evidence=("sensitivity",),
    )


@audit(
    source=f"{GAP}, node level, with arcs that are sampled: its code, gap_ndp.py",
    expect="miscalibration",
    row="GAP",
    reading="node level, arcs sampled: the sums before the noise",
    smallest={"count": range(1, 4)},
)
def gap_node_arcs(count=1):
    """Sums over arcs of which a node sends one change by 1 for a node that is there or not, its own row left out."""
    room, pair = pipelines(), hub(count, 0)
    return Audit(
        mechanism=room.GAPAggregations(
            aggregated(pair, 1 + 2 * count), 1, 1.0, 1.0, out_degree=1, unseen=0
        ),
        claim=GaussianDP(1.0),
        pairs=pair,
        evidence=("sensitivity",),
        exhaustive=False,
    )


@audit(
    source=f"{GAP}, node level, with arcs that are sampled: its code, gap_ndp.py",
    expect="violation",
    row="GAP",
    reading="node level, arcs sampled: the noisy aggregations",
)
def gap_node_displaced(sigma=1.0, count=9):
    """A hop of GAP on arcs of which a node sends one, with noise λ, is 1/λ-Gaussian DP for a node, its own row left out.

    False: the node takes the place of arcs that other nodes had sent.
    """
    room, pair = pipelines(), hub(count, 0)
    return Audit(
        mechanism=room.GAPAggregations(
            aggregated(pair, 1 + 2 * count), 1, sigma, 1.0, out_degree=1, unseen=0
        ),
        claim=GaussianDP(1 / sigma),
        pairs=pair,
        forecasters=[Scored()],
        calls=2_000,
        exhaustive=False,
        evidence=("game",),
    )


@audit(
    source=f"{GAP}, node level, in a graph whose degrees are bounded",
    row="GAP",
    reading="node level, a graph of bounded degrees",
    repairs="gap_node_displaced",
)
def gap_node_bounded(sigma=1.0, count=4, leaves=3):
    """The same with D at the largest degree and noise √D·λ, so that no arc is displaced, is 1/λ-Gaussian DP."""
    room, pair = pipelines(), hub(count, leaves)
    x, most = aggregated(pair, 1 + 2 * count), leaves + 1
    reach = math.sqrt(most)

    def released(scale, label=""):
        return room.GAPAggregations(
            x, 1, scale * reach * sigma, scale * reach, most, unseen=0, label=label
        )

    return Audit(
        mechanism=released(1.0),
        claim=GaussianDP(1 / sigma),
        pairs=pair,
        controls=[released(0.4, "two fifths of the noise")],
        forecasters=[Scored()],
        calls=20_000,
        exhaustive=False,
    )


def sage_sums(noise, count, out_degree):
    """Return the sums of a step of SAGE-DP on the graph of a hub, with noise for 1 + K nodes."""
    import torch

    from gnn.training import PrivateSettings

    room, _, _ = ensembles()
    nodes = 1 + 2 * count
    model = torch.nn.Linear(2, 2, dtype=torch.float64)
    for weight in model.parameters():
        torch.nn.init.zeros_(weight)
    reach = 2.0 * (1 + out_degree)
    settings = PrivateSettings(
        steps=1,
        noise_multiplier=noise * reach,
        clipping_norm=1.0,
        batch=float(nodes),
        rate=1.0,
        optimiser="sgd",
        gradients="layers",
    )
    x = torch.zeros(nodes, 1, dtype=torch.float64)
    x[1 : 1 + count] = 1e3
    targets = torch.zeros(nodes, dtype=torch.long)
    targets[0] = 1  # what the hub receives turns the sum as what the others lack does

    def released(twin=None):
        trainer = room.Trainer(model, room.CrossEntropy(), settings)
        return pipelines().SampledSums(
            trainer=room.twins(trainer)[twin] if twin else trainer,
            reach=reach,
            label=twin or "",
            x=x,
            targets=targets,
            out_degree=out_degree,
        )

    return released


@audit(
    source=f"{SAGE}, with arcs that are sampled",
    expect="miscalibration",
    row="SAGE-DP",
    reading="arcs sampled: the sum before the noise",
    smallest={"count": range(1, 6)},
)
def sage_node_arcs(count=4):
    """A sum of clipped gradients on arcs of which a node sends one changes by 2C(1 + 1) for a node that is there or not."""
    return Audit(
        mechanism=sage_sums(1.0, count, 1)(),
        claim=GaussianDP(1.0),
        pairs=hub(count, 0),
        evidence=("sensitivity",),
        exhaustive=False,
    )


@audit(
    source=f"{SAGE}, with arcs that are sampled",
    expect="violation",
    row="SAGE-DP",
    reading="arcs sampled: the noised sum of a step",
)
def sage_node_displaced(noise=1.0, count=9):
    """A step of SAGE-DP on arcs of which a node sends one, with noise λ for 1 + 1 nodes, is 1/λ-Gaussian DP for a node.

    False: the node takes the place of arcs that other nodes had sent, whose gradients turn.
    """
    return Audit(
        mechanism=sage_sums(noise, count, 1)(),
        claim=GaussianDP(1 / noise),
        pairs=hub(count, 0),
        forecasters=[ViewExperts()],
        calls=2_000,
        exhaustive=False,
        evidence=("game",),
    )


@audit(
    source=f"{SAGE}, in a graph whose degrees are bounded",
    row="SAGE-DP",
    reading="a graph of bounded degrees",
    repairs="sage_node_displaced",
)
def sage_node_bounded(noise=1.0, count=3):
    """The same with K at the largest degree and noise for 1 + K nodes, so that no arc is displaced, is 1/λ-Gaussian DP."""
    released = sage_sums(noise, count, count)
    return Audit(
        mechanism=released(),
        claim=GaussianDP(1 / noise),
        pairs=hub(count, 0),
        controls=[released("no clipping")],
        forecasters=[ViewExperts()],
        calls=800,
        exhaustive=False,
    )


@audit(
    source=f"the baseline Features of {DPAR}, Section 4; Abadi et al. 2016, arXiv:1607.00133v2, Algorithm 1",
    row="Features",
    reading="as deployed: features and labels in, model out",
)
def features_model(epsilon=0.5, delta=1e-2, width=16):
    """The model that Features returns after one step is (ε, δ)-DP for a node that is there or not, its edges unread.

    The step is so long that nothing is left of the first weights, and in proportion to the noised sum: Adam's first step is
    learning_rate·g/(|g| + 1e-8), and clipping keeps a gradient far below 1e-8.
    """
    ensembles()
    import torch
    from torch_geometric.data import Data

    from gnn.ensembles import trained as room
    from gnn.pipelines.features import FeaturesParameters, fit_features

    no_arcs = torch.empty(2, 0, dtype=torch.long)
    x, y = np.zeros((4, width), np.float32), np.zeros(4, np.int64)
    x[3] = 1.0
    along = np.concatenate([np.repeat([1.0, -1.0], width), np.zeros(2)])

    def released(budget, label=""):
        parameters = FeaturesParameters(
            epsilon=budget,
            delta=delta,
            batch=4,
            epochs=1,
            clipping_norm=1e-12,
            learning_rate=1e9,
            hidden=1,
            layers=1,
        )

        def weights(data, generator):
            features, classes = (torch.from_numpy(np.array(each)) for each in data)
            given = Data(
                x=features, y=classes, edge_index=no_arcs, num_nodes=len(features)
            )
            return room.weights_row(
                fit_features(given, parameters, classes=2, generator=generator)[0]
            )

        return room.Trained(
            weights, along, label or f"Features (ε = {budget:g}, δ = {delta:g})"
        )

    return Audit(
        mechanism=released(epsilon),
        claim=ApproxDP(epsilon, delta),
        pairs=Pair((x, y), (x[:3], y[:3]), "four nodes | three"),
        controls=[released(24 * epsilon, "noise for twenty-four times ε")],
        forecasters=[Scored()],
        calls=150,
        exhaustive=False,
    )


def pagerank_trainer(rows, most_rows, reach, tau=1.0):
    """Return DPAR's trainer, from weights of zero, and a function for its worlds."""
    import torch

    from gnn.pipelines.dpar.matrix import PageRankMatrix, capped, normalised
    from gnn.training import PrivateSettings

    room, pipeline = ensembles()[0], pipelines()
    owners = np.arange(1, rows + 1)
    ids = np.stack([np.zeros(rows, dtype=np.int64), owners], axis=1)
    matrix = PageRankMatrix(owners, ids, np.tile([0.5, 0.5], (rows, 1)), rows + 1)
    if most_rows is not None:
        matrix = capped(matrix, most_rows, rng=np.random.default_rng(0))
    model = torch.nn.Linear(1, 2, dtype=torch.float64)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    settings = PrivateSettings(
        steps=1,
        noise_multiplier=reach,
        clipping_norm=1.0,
        batch=rows,
        rate=1.0,
        optimiser="sgd",
        gradients="functorch",
    )
    worlds = pipeline.PageRankWorlds(
        normalised(matrix, tau, "clipped"), torch.zeros(rows, dtype=torch.long)
    )
    return room.Trainer(model, pipeline.mixed_loss, settings), worlds


def steepest(trainer, worlds, rows):
    """Return the pair of features of node 0 to which gradient ascent comes, the others' features being free as well."""
    import torch

    from gnn.ensembles.ascent import ascend, change_of

    def features(numbers):
        return [torch.cat([numbers[k : k + 1], numbers[2:]])[:, None] for k in (0, 1)]

    start = torch.linspace(-0.1, 0.1, rows + 2, dtype=torch.float64)
    found = ascend(
        change_of(trainer, lambda numbers: tuple(map(worlds, features(numbers)))),
        [start],
    )
    return Pair(
        *(each.numpy() for each in features(found.at)), "found by gradient ascent"
    )


def pagerank_sums(rows, most_rows, reach):
    """Return the audit of the first sum of DPAR's clipped gradients, where a node of all rows has other features."""
    trainer, worlds = pagerank_trainer(rows, most_rows, reach)
    x = np.full((rows + 1, 1), 1.0)
    far = [
        np.where(np.arange(rows + 1)[:, None] == 0, value, x) for value in (1e6, -1e6)
    ]
    return Audit(
        mechanism=ensembles()[0].NoisedSums(trainer, world=worlds, reach=reach),
        claim=GaussianDP(1.0),
        pairs=[steepest(trainer, worlds, rows), Pair(*far, "far apart")],
        evidence=("sensitivity",),
        exhaustive=False,
    )


@audit(
    source=f"{DPAR}, Theorem 2: sensitivity τC",
    expect="miscalibration",
    row="DPAR training (Alg. 2)",
    reading="the sum of gradients before the noise",
)
def dpar_gradients(rows=3):
    """DPAR's sum of clipped gradients changes by τC at most, τ the norm of a column.

    False: it changes by 2C in each row.
    """
    return pagerank_sums(rows, None, 1.0)


@audit(
    source="derived here: 2C in each row that a node is in",
    row="DPAR training (Alg. 2)",
    reading="the sum of gradients before the noise, a node in R rows at most",
    repairs="dpar_gradients",
)
def dpar_gradients_capped(rows=3, most_rows=1):
    """The same sum changes by 2RC at most where a node is in R rows."""
    return pagerank_sums(rows, most_rows, 2.0 * most_rows)
