"""Refusals of mechanisms, with a fragment of each message: the value, or the remedy."""

import math

import numpy as np
import pytest
from scipy import sparse

from auditdp.errors import MechanismError
from mechanisms import classic, features, hierarchy, node_level, pagerank
from mechanisms.backend import backend_of
from mechanisms.cells import distinct_cells
from mechanisms.classic import BatchSums
from mechanisms.edges import (
    DPRR,
    Customised,
    EdgeRand,
    LapGraph,
    LocalLaplaceMessage,
    LocalLaplaceMessages,
    LocalLaplaceRow,
    RandomisedResponse,
    RandomisedResponseGraph,
)
from mechanisms.edges.graph_pub import GraphPub
from mechanisms.edges.graph_pub_response import GraphPubList, GraphPubResponse
from mechanisms.features import (
    FeatureRR,
    LinearExtractor,
    MinMaxScaled,
    MultiBit,
    RecordFeatureRR,
)
from mechanisms.graphs import (
    DirectedGraph,
    Graph,
    barabasi_albert,
    erdos_renyi,
    load_graph,
    load_graphs,
)
from mechanisms.hierarchy import DendrogramStep, Thresholds
from mechanisms.hierarchy.dendrogram import Dendrogram, children_of
from mechanisms.hierarchy.dendrogram_step import RepeatedMoves
from mechanisms.hierarchy.exact_chain import states
from mechanisms.hierarchy.likelihood import sensitivity
from mechanisms.labels import LabelRR
from mechanisms.link_ldp import LinkMessage, LinkMessages
from mechanisms.message_passing import (
    ContractiveIterations,
    NeighbourEmbedding,
    NoisyHop,
)
from mechanisms.neighbour_lists import PackedLists
from mechanisms.numeric import Duchi, GaussianFeatures, NumericVector, Piecewise
from mechanisms.pagerank import DPApprEM, GivenRows, NoisyRows, PublicRows, ista
from mechanisms.rounding import keep_probability, laplace_scale, portion, remaining
from mechanisms.top_k_law import plackett_luce, set_epsilon, unordered_top_k
from tests.statistical.stated_laws import arcs, matrix

parametrize = pytest.mark.parametrize

RNG = np.random.default_rng
ONES = np.ones((4, 4))
EDGE = np.array([[0, 1], [1, 0]])
UPPER = np.triu(ONES, 1)
IDENTITY = LinearExtractor(((1.0, 0.0), (0.0, 1.0)))


def of_list(mechanism, size):
    return mechanism.distribution(np.zeros(size, np.int8))


def of_graph(mechanism, nodes):
    return of_list(mechanism, (nodes, nodes))


def run(mechanism, data):
    return mechanism(np.asarray(data), 1, rng=RNG(0))


def perturb(mechanism, values):
    return mechanism.perturb(np.asarray(values), rng=RNG(0))


def select(rows, **options):
    return DPApprEM(1.0, 1, rows, **options)


def noisy_rows(**options):
    return NoisyRows(6.48, 1e-4, PublicRows(2), **options)


def with_values(budget):
    return pagerank.DPApprEMValues(select(GivenRows(3)), budget)


ONE_FEATURE = FeatureRR(1.0, (1.0,), 2)
RECORD = RecordFeatureRR(1.0, IDENTITY, 2)
TWO_USERS = features.Everybody(MultiBit(1.0, 1), 2)
LIST = GraphPubList(1.0, 1.0, 3)
BALL = node_level.WithinBall(node_level.SymmetricLaplace(1.0, 3), 1.0)


@parametrize(
    "build",
    [
        classic.LaplaceSum,
        RandomisedResponse,
        lambda epsilon: EdgeRand(epsilon, 3),
        lambda epsilon: DPRR(epsilon, 1.0),
        lambda epsilon: DPRR(1.0, epsilon),
        LocalLaplaceRow,
        lambda epsilon: LapGraph(epsilon, 4),
        lambda epsilon: GraphPub(epsilon, 4, ONES),
        lambda epsilon: GraphPub(1.0, 4, ONES, degree_epsilon=epsilon),
        lambda epsilon: MultiBit(epsilon, 2),
        lambda epsilon: LabelRR(epsilon, 3),
        lambda epsilon: FeatureRR(epsilon, (1.0,), 2),
        lambda epsilon: features.safe_budget(epsilon, 2, 2),
        lambda epsilon: NumericVector(Duchi, epsilon, 2),
        Duchi,
        lambda epsilon: DendrogramStep(epsilon, 4),
        Thresholds,
        lambda epsilon: DPApprEM(epsilon, 1, GivenRows(3)),
        lambda epsilon: ista(EDGE, [0], rho=epsilon),
        LinkMessage,
    ],
)
def test_a_budget_is_a_finite_number_above_zero(build):
    for wrong in (0.0, math.inf, math.nan, "1"):
        with pytest.raises(MechanismError, match="a finite number > 0, got"):
            build(wrong)


@parametrize(
    "build",
    [
        lambda stop: classic.SVT1(1.0, stop),
        lambda nodes: LocalLaplaceMessages(1.0, nodes),
        lambda nodes: GraphPub(1.0, nodes, ONES),
        lambda dimension: MultiBit(1.0, dimension),
        lambda classes: LabelRR(1.0, classes),
        lambda bins: FeatureRR(1.0, (1.0,), bins),
        lambda dimension: NumericVector(Duchi, 1.0, dimension),
        lambda sampled: NumericVector(Duchi, 1.0, 3, sampled),
        lambda nodes: DendrogramStep(1.0, nodes),
        lambda k: pagerank.DPApprGM(noisy_rows(), k),
        lambda k: DPApprEM(1.0, k, GivenRows(3)),
        lambda count: pagerank.SampledRows(3, count),
    ],
)
def test_a_count_is_an_integer_above_zero(build):
    for wrong in (0, 2.0, True):
        with pytest.raises(MechanismError, match=r"an integer >= [12], got"):
            build(wrong)


REFUSED = {
    # Classic mechanisms.
    "0 <= f < 1": lambda: classic.Rappor(f=1.0),
    "p < q": lambda: classic.Rappor(p=0.6, q=0.5),
    "Gaussian: expected delta": lambda: classic.Gaussian(1.0, 0.0),
    "calibration": lambda: classic.Gaussian(1.0, 0.1, "wrong"),
    "float32": lambda: classic.NaiveLaplace(1.0, "float16"),
    "sampling": lambda: BatchSums(1.0, 4, "fixed"),
    "2\\^63": lambda: classic.TruncatedGeometric(1e-6, 5),
    "count in 0..5": lambda: classic.TruncatedGeometric(0.1).distribution([6.0]),
    "integer value": lambda: classic.OneTimeRappor().bloom([0.5]),
    r"2\^20 outcomes; use at most 12": lambda: of_list(classic.OneTimeRappor(), 1),
    "finite": lambda: classic.SVT1(1.0).distribution([np.nan]),
    "2048 outcomes": lambda: classic.SVT6(0.5).distribution(np.arange(11.0)),
    "one-dimensional": lambda: classic.NoisyMax1(1.0).distribution(ONES),
    "expected 1 answers": lambda: of_list(classic.LaplaceParallel(), 2),
    "multiple of 2 records": lambda: BatchSums(1.0, 2, "poisson").log_prob(
        np.zeros((1, 2)), np.ones(3)
    ),
    "all records but one agree": lambda: BatchSums(0.7, 2, "shuffled").log_prob(
        np.zeros((1, 2)), np.array([1.0, 1.0, -1.0, -1.0])
    ),
    # Edges.
    "a neighbour list, .* got \\[\\]": lambda: run(RandomisedResponse(1.0), []),
    "a neighbour list, .* got \\[0,2\\]": lambda: run(DPRR(0.1, 0.9), [0, 2]),
    "at most 16 bits": lambda: of_list(RandomisedResponse(1.0), 17),
    "DPRR.* at most 12 bits": lambda: of_list(DPRR(0.1, 0.9), 13),
    "impossible": lambda: DPRR(0.1, 0.9).law(5, 2).log_prob([3], [0]),
    "degree from 0 to 5": lambda: DPRR(0.1, 0.9).law(5, 6),
    "alpha strictly": lambda: DPRR.allocated(1.0, 100, alpha=1.0),
    "n_max >= 34": lambda: DPRR.allocated_within(0.5, 33),
    r"shape \(4, 4\), got \(3, 3\)": lambda: run(EdgeRand(0.9, 4), UPPER[:3, :3]),
    "at most 65536": lambda: of_graph(RandomisedResponseGraph(1.0, 5), 5),
    "a graph of 4 nodes": lambda: RandomisedResponseGraph(1.0, 4).whole_graph(
        Graph(3, np.empty((2, 0), int)), rng=RNG(0)
    ),
    "private ids": lambda: Customised(RandomisedResponse(1.0), 4, private=(4,)),
    "users 0 to 4": lambda: of_list(LocalLaplaceMessage(1.0, user=5), 4),
    "symmetric matrix": lambda: LocalLaplaceMessages(1.0, 4).distribution(UPPER),
    "share strictly": lambda: LapGraph(1.0, 4, share=1.0),
    "use at most 10 cells": lambda: of_graph(LapGraph(1.0, 6), 6),
    r"\(3, 3\), got shape \(4, 4\)": lambda: GraphPub(1.0, 3, ONES),
    "one of .*, got 'up'": lambda: GraphPub(1.0, 4, ONES, "up"),
    "one of .*, got 'best'": lambda: GraphPub(1.0, 4, ONES, choice="best"),
    r"matrix of shape \(4, 4\)": lambda: run(GraphPub(1.0, 4, ONES), EDGE),
    "combinations, at most 4096": lambda: GraphPub(
        1.0, 6, np.ones((6, 6)), "random", "uniformly"
    ).distribution(np.ones((6, 6)) - np.eye(6)),
    r"in \(0, 2\], half the nodes": lambda: GraphPubResponse(1.0, 4, ONES, 2.5),
    "> 0 off the diagonal": lambda: GraphPubResponse(1.0, 4, 0 * ONES, 1.0),
    "the law of 15 bits": lambda: of_graph(
        GraphPubResponse(1.0, 6, np.ones((6, 6)), 1.0), 6
    ),
    r"2 scores > 0, got \(1": lambda: GraphPubList(1.0, 1.0, 3, scores=(1.0,)),
    "list of 2 bits, got 3": lambda: run(LIST, [0, 0, 0]),
    # Features and labels.
    r"low < high, got 1\.0 and 1\.0": lambda: MultiBit(1.0, 2, 1.0, 1.0),
    "sampled <= dimension=2, got 3": lambda: MultiBit(1.0, 2, sampled=3),
    r"in \[0, 1\].*clip them": lambda: perturb(MultiBit(1.0, 2), [[0.0, 1.5]]),
    r"\(n, 2\), got \(1, 3\)": lambda: run(MultiBit(1.0, 2), np.zeros(3)),
    "4096; use log_prob": lambda: of_list(MultiBit(1.0, 20, sampled=9), 20),
    "bounds 0 and 1": lambda: MinMaxScaled(MultiBit(1.0, 1, -1.0, 1.0), 2),
    "'drop', got 'zero'": lambda: MinMaxScaled(MultiBit(1.0, 1), 2, "zero"),
    r"\(2, 1\), got shape \(3, 1\)": lambda: run(TWO_USERS, np.zeros((3, 1))),
    "finite raw features": lambda: run(TWO_USERS, [[np.inf], [0.0]]),
    r"epsilon >= 2\^-22": lambda: LabelRR(1e-9, 3),
    "at most 32768 classes": lambda: LabelRR(1.0, 2**16),
    "got .*number the classes from 0": lambda: run(LabelRR(1.0, 3), 3),
    "integers from 0 to 2": lambda: perturb(LabelRR(1.0, 3), [-1]),
    "not all 0, got .*; for equal shares": lambda: FeatureRR(1.0, (0.0, 0.0), 2),
    "shares, finite numbers >= 0": lambda: FeatureRR(1.0, (1.0, -1.0), 2),
    r"60\.0 is too large.*at most 30": lambda: FeatureRR(60.0, (1.0,), 2).steps,
    r"in \[0, 1\].*scale and clip": lambda: run(ONE_FEATURE, [1.5]),
    r"\(n, 1\), got \(1, 2\)": lambda: run(ONE_FEATURE, [0.0, 0.0]),
    "100000 outputs": lambda: of_list(FeatureRR(1.0, (1.0,) * 5, 10), 5),
    "finite weights": lambda: LinearExtractor(((1.0,), (2.0, 3.0))),
    r"from 0 to 0, got \(1,\)": lambda: LinearExtractor(((1.0,),), sensitive=(1,)),
    "1 coefficients": lambda: LinearExtractor(((1.0,),), coefficients=(1.0, 2.0)),
    r"gamma .*got 2\.0": lambda: RecordFeatureRR(1.0, IDENTITY, 2, gamma=2.0),
    "2 shares, one a feature": lambda: features.ExtractedFeatureRR(
        IDENTITY, ONE_FEATURE
    ),
    r"records in \[0, 1\]": lambda: run(RECORD, [2.0, 0.0]),
    r"records of shape \(n, 2\)": lambda: run(RECORD, np.zeros(3)),
    # Numbers and budgets.
    "epsilon >= 9.3e-10, got 1e-12": lambda: Duchi(1e-12),
    "a record of 1 numbers": lambda: run(Duchi(1.0), np.zeros(2)),
    "a record of 3 numbers": lambda: run(GaussianFeatures(1.0, 0.1, 3), np.zeros(2)),
    r"got shape \(3,": lambda: perturb(GaussianFeatures(1.0, 0.1, 3), np.zeros(3)),
    "got 4; a feature is sampled at most": lambda: NumericVector(Duchi, 1.0, 3, 4),
    "use fewer features": lambda: NumericVector(Duchi, 1.0, 9).law(np.zeros(9)),
    "more than 10,000": lambda: NumericVector(Piecewise, 1.0, 1).law([0.0]),
    r"\(n, 2\), got shape": lambda: perturb(NumericVector(Duchi, 1.0, 2), [0.0, 1]),
    "a record of 2": lambda: run(NumericVector(Duchi, 1.0, 2), np.zeros(3)),
    "finite epsilon >= 0": lambda: keep_probability(-1e-9),
    "> 0, got .*0.0": lambda: laplace_scale(1, 0.0),
    "> 0, got .*inf": lambda: laplace_scale(1, math.inf),
    "larger epsilon": lambda: laplace_scale(1, 5e-324),
    "nothing is left": lambda: remaining(1.0, 0.5, 0.5),
    "between 0 and 1, got 1$": lambda: portion(1.0, 1),
    # Dendrograms.
    "use at most 4": lambda: of_graph(hierarchy.PrivHRG(0.5, 0.5, 5), 5),
    "tau1 > 0": lambda: Thresholds(1.0, tau1=0),
    "draws one of": lambda: Thresholds(1.0, draws="two"),
    "at most 6, or play": lambda: states(7),
    "'19' or '15'": lambda: sensitivity(4, "17"),
    "moves='alternating'": lambda: RepeatedMoves(1.0, 3),
    "private_moves.*got 0": lambda: RepeatedMoves(1.0, 3, private_moves=0),
    # PageRank and top-k.
    "a symmetric matrix of zeros and ones": lambda: ista(np.eye(3, k=1), [0]),
    "expected a graph.*got .0": lambda: ista(np.zeros(3), [0]),
    "expected a graph": lambda: ista(sparse.csr_array(np.eye(3, k=1)), [0]),
    "node ids from 0 to 1": lambda: ista(EDGE, [2]),
    r"rho in \(0, 1\), got 1\.0": lambda: ista(EDGE, [0], alpha=1.0),
    "expected tolerance": lambda: ista(EDGE, [0], tolerance=0.0),
    "expected clip, .*got 0": lambda: noisy_rows(clip=0.0),
    "expected apart": lambda: noisy_rows(apart=-1.0),
    "'classic', got 'laplace'": lambda: noisy_rows(calibration="laplace"),
    r"in \(0, 1\), got 0": lambda: NoisyRows(1.0, 0.0, PublicRows(2)).sigma,
    "k of at most 2 ids, got 3": lambda: pagerank.DPApprGM(noisy_rows(), 3),
    "expected clip, .*got -1": lambda: select(GivenRows(3), clip=-1.0),
    "'present', got 'all'": lambda: select(GivenRows(3), candidates="all"),
    "125970 choices": lambda: of_list(DPApprEM(1.0, 8, GivenRows(20)), 20),
    "1 rows of 3 numbers": lambda: run(select(GivenRows(3)), np.zeros(4)),
    "rows of 2 numbers >= 0": lambda: run(select(GivenRows(2)), [-1.0, 0]),
    "3 ids, got one of 4": lambda: run(select(PublicRows(3)), ONES),
    "'universe', got 'all'": lambda: pagerank.SampledRows(3, 1, "all"),
    "value_epsilon": lambda: with_values(0.0),
    "of 2 numbers, got 3": lambda: with_values(1.0).log_prob(np.ones((5, 3)), ONES[0]),
    r"in \(0, 1\), got 1\.0": lambda: pagerank.row_epsilon(1.0, 1, 1.0),
    "expected row": lambda: pagerank.entry_epsilon(0.0, 1, 0.1),
    r"in 0\.\.5, .*got count=6": lambda: unordered_top_k(np.zeros(5), 6),
    "at most 200,000; use fewer": lambda: plackett_luce(np.zeros(40), 5),
    r"finite eta > 0, got eta=0\.0": lambda: set_epsilon(3, 1, 0.0),
    r"count in 0\.\.3": lambda: set_epsilon(3, 4, 1.0),
    # Node-level and local mechanisms.
    "strictly between 0 and 1, got 1.5": lambda: LinkMessage(1.0, 1.5),
    "nodes, an integer >= 2, got 1": lambda: LinkMessages(LinkMessage(1.0), 1),
    "884736": lambda: of_graph(LinkMessages(LinkMessage(1.0), 5), 5),
    "expected lipschitz": lambda: ContractiveIterations(1.0, 1.0, 1.0, 2),
    r"share in \(0, 1\]": lambda: NoisyHop(1.0, 2, share=1.5),
    "at most 1 ones": lambda: NeighbourEmbedding(1.0, 1.0, 1).distribution(ONES[0, :2]),
    "3 dimensions, got 2": lambda: node_level.WithinBall(
        node_level.SymmetricLaplace(1.0, 2), 1.0
    ),
    "0 or a distance > 1.0": lambda: BALL.distribution(0.5),
    "expected noise, a": lambda: node_level.ClippedAtPercentile(0.0, 1.0),
    # Graphs, cells and generators.
    "nodes, an integer >= 0, got -1": lambda: Graph(-1, EDGE[:, :1]),
    "zero diagonal": lambda: Graph.from_matrix(np.eye(3)),
    "symmetric": lambda: Graph.from_matrix(UPPER),
    "without loops": lambda: DirectedGraph(3, arcs("00")),
    "probability": lambda: erdos_renyi(5, 1.5, RNG(0)),
    "nodes, an integer >= 4, got 3": lambda: barabasi_albert(3, 3, RNG(0)),
    "number of targets, 3": lambda: PackedLists(np.arange(3), np.arange(3)),
    "row 0 has 3 free cells": lambda: distinct_cells(
        [4], 4, RNG(0), taken=np.array([2])
    ),
    "got None; write numpy.random.default_rng": lambda: backend_of(None),
    "got 7; write numpy.random.default_rng": lambda: backend_of(7),
    "got RandomState": lambda: backend_of(np.random.RandomState(0)),
}


@parametrize("message", REFUSED)
def test_the_message_has_the_value_or_the_remedy(message):
    with pytest.raises(MechanismError, match=message):
        REFUSED[message]()


@parametrize(
    ("edges", "message"),
    [
        (arcs("10"), "with i < j"),
        (arcs("11"), "with i < j"),
        (arcs("01 01"), "each edge once"),
        (arcs("12 01"), "in ascending order"),
        (arcs("04"), "from 0 to 3"),
        (-arcs("10"), "from 0 to 3"),
        (arcs("01").T, r"shape \(2, count\)"),
        (1.0 * arcs("01"), "an integer array"),
    ],
)
def test_edges_are_ordered_pairs_of_nodes_and_stand_once(edges, message):
    with pytest.raises(MechanismError, match=message):
        Graph(4, edges)


@parametrize(
    ("readings", "message"),
    [
        ({"moves": "alternating", "nodes": 7}, "give steps"),
        ({"steps": 1, "nodes": 7}, "at most 6"),
        ({"factor": 3}, "factor one of"),
        ({"equation": "16"}, "equation one of"),
        ({"moves": "both"}, "moves one of"),
        ({"private_nodes": "some"}, "'data' or node ids"),
        ({"private_nodes": (0, 4)}, "private nodes below 4"),
        ({"public": ((1, 0),)}, "public edges"),
        ({"start": ((0, 1), 2)}, "a start with 4 leaves"),
    ],
)
def test_readings_of_a_step_are_checked(readings, message):
    given = {"nodes": 4} | readings
    with pytest.raises(MechanismError, match=message):
        of_graph(DendrogramStep(1.0, **given), given["nodes"])


def test_the_leaves_of_a_dendrogram_are_numbered_once():
    for nested in (0, (0, 2), ((0, 1), 1), (0, 1, 2), ((0, "1"), 2)):
        with pytest.raises(MechanismError, match="expected"):
            children_of(nested)


@parametrize(
    "children",
    [
        [(0, 1), (1, 3)],
        [(0, 1), (2, 4)],
        [(0, 0), (2, 3)],
        [(0, 1), (4, 2), (5, 3), (6, 6)],
    ],
    ids=str,
)
def test_a_node_is_a_child_of_one_node(children):
    with pytest.raises(MechanismError, match="one child of one node"):
        Dendrogram(children)


def test_private_edges_that_are_public_or_outside_are_refused():
    step = DendrogramStep(1.0, 4, public=((0, 1),), private_nodes=(0, 1, 2))
    for pair in ("01", "23"):
        with pytest.raises(MechanismError, match="may not have a private edge"):
            step.distribution(matrix(4, pair))


@parametrize(
    "row",
    [
        RandomisedResponse(1.0),
        DPRR(0.5, 1.0),
        LocalLaplaceRow(1.0),
    ],
    ids=lambda m: m.name,
)
def test_users_of_a_whole_graph_are_checked(row):
    graph = barabasi_albert(30, 2, RNG(0))
    with pytest.raises(MechanismError, match="user ids from 0 to 29"):
        row.whole_graph(graph, rng=RNG(0), users=[30])


def test_the_loader_names_the_fault_of_a_file(tmp_path):
    with pytest.raises(MechanismError, match="no such file"):
        load_graph(tmp_path / "nothing.npz")
    path = tmp_path / "graph.npz"
    np.savez(path, x=np.zeros(3))
    with pytest.raises(MechanismError, match="lacks kind"):
        load_graph(path)
    np.savez(
        path,
        kind="node",
        num_nodes=4,
        edge_index=arcs("01 12 23"),
        edges_stored="once_u_lt_v",
    )
    assert load_graph(path).nodes == 4
    with pytest.raises(MechanismError, match="use load_graph"):
        load_graphs(path)
