"""What mechanisms refuse, with a fragment of each message: the value, or the remedy."""

import math

import numpy as np
import pytest
from scipy import sparse

from auditdp.errors import MechanismError
from mechanisms.backend import backend_of
from mechanisms.cells import distinct_cells
from mechanisms.classic import (
    SVT1,
    SVT6,
    BatchSums,
    Gaussian,
    LaplaceParallel,
    LaplaceSum,
    NaiveLaplace,
    NoisyMax1,
    OneTimeRappor,
    Rappor,
    TruncatedGeometric,
)
from mechanisms.edges import (
    DPRR,
    Customised,
    EdgeRand,
    LapGraph,
    LapGraphNoisy,
    LocalLaplaceGraph,
    LocalLaplaceMessage,
    LocalLaplaceMessages,
    LocalLaplaceRow,
    RandomisedResponse,
    RandomisedResponseGraph,
)
from mechanisms.edges.graph_pub import GraphPub
from mechanisms.edges.graph_pub_response import GraphPubList, GraphPubResponse
from mechanisms.features import (
    Everybody,
    ExtractedFeatureRR,
    FeatureRR,
    LinearExtractor,
    MinMaxScaled,
    MultiBit,
    RecordFeatureRR,
    safe_budget,
)
from mechanisms.graphs import (
    DirectedGraph,
    Graph,
    barabasi_albert,
    erdos_renyi,
    load_graph,
    load_graphs,
)
from mechanisms.hierarchy import DendrogramStep, PrivHRG, Thresholds
from mechanisms.hierarchy.dendrogram import Dendrogram, children_of
from mechanisms.hierarchy.dendrogram_step import ManyPublicMoves
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
from mechanisms.node_level import ClippedAtPercentile, SymmetricLaplace, WithinBall
from mechanisms.numeric import (
    Duchi,
    GaussianFeatures,
    Hybrid,
    LaplaceFeature,
    NumericVector,
    Piecewise,
    PMSub,
    ThreeOutput,
)
from mechanisms.pagerank import (
    DPApprEM,
    DPApprEMValues,
    DPApprGM,
    GivenRows,
    NoisyRows,
    PublicRows,
    SampledRows,
    entry_epsilon,
    ista,
    row_epsilon,
)
from mechanisms.rounding import keep_probability, laplace_scale, portion, remaining
from mechanisms.top_k_law import plackett_luce, set_epsilon, unordered_top_k

ONES = np.ones((4, 4))
EDGE = np.array([[0, 1], [1, 0]])
LIST = np.array([1, 0, 1, 0])
UPPER = np.triu(ONES, 1)
NOISY = NoisyRows(6.48, 1e-4, PublicRows(2))


def of_list(mechanism, size):
    return mechanism.distribution(np.zeros(size, np.int8))


def of_graph(mechanism, nodes):
    return mechanism.distribution(np.zeros((nodes, nodes), np.int8))


def run(mechanism, data):
    return mechanism(np.asarray(data), 1, rng=np.random.default_rng(0))


def perturb(mechanism, values):
    return mechanism.perturb(np.asarray(values), rng=np.random.default_rng(0))


def identity(features):
    return LinearExtractor(tuple(map(tuple, np.eye(features))))


BUDGETS = [
    LaplaceSum,
    RandomisedResponse,
    lambda epsilon: EdgeRand(epsilon, 3),
    lambda epsilon: DPRR(epsilon, 1.0),
    lambda epsilon: DPRR(1.0, epsilon),
    LocalLaplaceRow,
    lambda epsilon: LocalLaplaceGraph(epsilon, 4),
    lambda epsilon: LapGraph(epsilon, 4),
    lambda epsilon: LapGraphNoisy(epsilon, 4),
    lambda epsilon: LocalLaplaceMessages(epsilon, 4),
    lambda epsilon: GraphPub(epsilon, 3, np.ones((3, 3))),
    lambda epsilon: GraphPub(1.0, 3, np.ones((3, 3)), degree_epsilon=epsilon),
    lambda epsilon: MultiBit(epsilon, 2),
    lambda epsilon: LabelRR(epsilon, 3),
    lambda epsilon: FeatureRR(epsilon, (1.0,), 2),
    lambda epsilon: safe_budget(epsilon, 2, 2),
    lambda epsilon: NumericVector(Duchi, epsilon, 2),
    *(Duchi, Piecewise, PMSub, Hybrid, ThreeOutput, LaplaceFeature),
    lambda epsilon: DendrogramStep(epsilon, 4),
    Thresholds,
    lambda epsilon: DPApprEM(epsilon, 1, GivenRows(3)),
    lambda epsilon: ista(EDGE, [0], rho=epsilon),
    LinkMessage,
]


@pytest.mark.parametrize("build", BUDGETS)
def test_a_budget_is_a_finite_number_above_zero(build):
    for wrong in (0.0, math.inf, math.nan, "1"):
        with pytest.raises(MechanismError, match="a finite number > 0, got"):
            build(wrong)


COUNTS = [
    lambda stop: SVT1(1.0, stop),
    lambda nodes: LocalLaplaceGraph(1.0, nodes),
    lambda nodes: GraphPub(1.0, nodes, ONES),
    lambda dimension: MultiBit(1.0, dimension),
    lambda classes: LabelRR(1.0, classes),
    lambda bins: FeatureRR(1.0, (1.0,), bins),
    lambda dimension: NumericVector(Duchi, 1.0, dimension),
    lambda sampled: NumericVector(Duchi, 1.0, 3, sampled),
    lambda nodes: DendrogramStep(1.0, nodes),
    lambda k: DPApprGM(NOISY, k),
    lambda k: DPApprEM(1.0, k, GivenRows(3)),
    lambda count: SampledRows(3, count),
]


@pytest.mark.parametrize("build", COUNTS)
def test_a_count_is_an_integer_above_zero(build):
    for wrong in (0, 2.0, True):
        with pytest.raises(MechanismError, match=r"an integer >= [12], got"):
            build(wrong)


CLASSIC = [
    (lambda: Rappor(f=1.0), "0 <= f < 1"),
    (lambda: Rappor(p=0.6, q=0.5), "p < q"),
    (lambda: Gaussian(1.0, 0.0), "delta"),
    (lambda: Gaussian(1.0, 0.1, "wrong"), "calibration"),
    (lambda: NaiveLaplace(1.0, "float16"), "float32"),
    (lambda: BatchSums(1.0, 4, "fixed"), "sampling"),
    (lambda: TruncatedGeometric(1e-6, 5), "2\\^63"),
    (lambda: TruncatedGeometric(0.1).distribution([6.0]), "count in 0..5"),
    (lambda: OneTimeRappor().bloom(np.array([0.5])), "integer value"),
    (lambda: OneTimeRappor().distribution(np.array([0.0])), "at most 12 bits"),
    (lambda: SVT1(1.0).distribution(np.array([np.nan])), "finite"),
    (lambda: SVT6(0.5).distribution(np.arange(11.0)), "2048 outcomes"),
    (lambda: NoisyMax1(1.0).distribution(ONES), "one-dimensional"),
    (lambda: LaplaceParallel().distribution(np.ones(2)), "expected 1 answers"),
    (
        lambda: BatchSums(1.0, 2, "poisson").log_prob(np.zeros((1, 2)), np.ones(3)),
        "multiple of 2 records",
    ),
    (
        lambda: BatchSums(0.7, 2, "shuffled").log_prob(
            np.zeros((1, 2)), np.array([1.0, 1.0, -1.0, -1.0])
        ),
        "all records but one agree",
    ),
]
EDGES = [
    (lambda: run(RandomisedResponse(1.0), []), "neighbour list"),
    (lambda: run(DPRR(0.1, 0.9), [0, 2]), "neighbour list"),
    (lambda: of_list(RandomisedResponse(1.0), 17), "at most 16 bits"),
    (lambda: of_list(DPRR(0.1, 0.9), 13), "at most 12"),
    (lambda: DPRR(0.1, 0.9).law(5, 2).log_prob([3], [0]), "impossible"),
    (lambda: DPRR(0.1, 0.9).law(5, 6), "degree from 0 to 5"),
    (lambda: DPRR.allocated(1.0, 100, alpha=1.0), "alpha"),
    (lambda: DPRR.allocated_within(0.5, 33), "n_max >= 34"),
    (lambda: run(EdgeRand(0.9, 4), np.zeros((3, 3))), "shape"),
    (lambda: of_graph(RandomisedResponseGraph(1.0, 5), 5), "outcomes, at most"),
    (
        lambda: RandomisedResponseGraph(1.0, 4).whole_graph(
            Graph(3, np.empty((2, 0), int)), rng=np.random.default_rng(0)
        ),
        "a graph of 4 nodes",
    ),
    (lambda: Customised(RandomisedResponse(1.0), 4, private=(4,)), "from 0 to 3"),
    (lambda: LocalLaplaceMessage(1.0, user=5).distribution(LIST), "users 0 to 4"),
    (lambda: LocalLaplaceMessages(1.0, 4).distribution(UPPER), "symmetric"),
    (lambda: LapGraph(1.0, 4, share=1.0), "share strictly between"),
    (lambda: of_graph(LapGraph(1.0, 6), 6), "2\\^15 outcomes; use at most 10"),
    (lambda: GraphPub(1.0, 3, np.ones((2, 2))), r"\(3, 3\), got shape \(2, 2\)"),
    (lambda: GraphPub(1.0, 4, ONES, "up"), "one of .*, got 'up'"),
    (lambda: GraphPub(1.0, 4, ONES, choice="best"), "one of .*, got 'best'"),
    (lambda: run(GraphPub(1.0, 4, ONES), EDGE), r"matrix of shape \(4, 4\)"),
    (
        lambda: GraphPub(1.0, 6, np.ones((6, 6)), "random", "uniformly").distribution(
            np.ones((6, 6)) - np.eye(6)
        ),
        "combinations, at most 4096; use fewer nodes",
    ),
    (lambda: GraphPubResponse(1.0, 4, ONES, 2.5), r"in \(0, 2\], half the nodes"),
    (lambda: GraphPubResponse(1.0, 4, 0 * ONES, 1.0), "> 0 off the diagonal"),
    (
        lambda: of_graph(GraphPubResponse(1.0, 6, np.ones((6, 6)), 1.0), 6),
        "use at most 12 bits",
    ),
    (lambda: GraphPubList(1.0, 1.0, 3, scores=(1.0,)), r"2 scores > 0, got \(1"),
    (lambda: run(GraphPubList(1.0, 1.0, 3), [0, 0, 0]), "list of 2 bits, got 3"),
]
FEATURES = [
    (lambda: MultiBit(1.0, 2, 1.0, 1.0), r"low < high, got 1\.0 and 1\.0"),
    (lambda: MultiBit(1.0, 2, sampled=3), "sampled <= dimension=2, got 3"),
    (lambda: perturb(MultiBit(1.0, 2), [[0.0, 1.5]]), r"in \[0, 1\].*clip them"),
    (lambda: run(MultiBit(1.0, 2), np.zeros(3)), r"shape \(n, 2\), got \(1, 3\)"),
    (lambda: of_list(MultiBit(1.0, 20, sampled=9), 20), "at most 4096; use log_prob"),
    (lambda: MinMaxScaled(MultiBit(1.0, 1, -1.0, 1.0), 2), "bounds 0 and 1"),
    (lambda: MinMaxScaled(MultiBit(1.0, 1), 2, "zero"), "'drop', got 'zero'"),
    (
        lambda: run(Everybody(MultiBit(1.0, 1), 2), np.zeros((3, 1))),
        r"\(2, 1\), got shape \(3, 1\)",
    ),
    (lambda: run(MinMaxScaled(MultiBit(1.0, 1), 1), [[np.inf]]), "finite raw features"),
    (lambda: LabelRR(1e-9, 3), r"epsilon >= 2\^-22"),
    (lambda: LabelRR(1.0, 2**16), "at most 32768 classes"),
    (lambda: run(LabelRR(1.0, 3), 3), "from 0 to 2, got .*number the classes from 0"),
    (lambda: perturb(LabelRR(1.0, 3), [-1]), "integers from 0 to 2"),
    (lambda: FeatureRR(1.0, (0.0, 0.0), 2), "not all 0, got .*; for equal shares"),
    (lambda: FeatureRR(1.0, (1.0, -1.0), 2), "shares, finite numbers >= 0"),
    (lambda: FeatureRR(60.0, (1.0,), 2).steps, r"60\.0 is too large.*at most 30"),
    (lambda: run(FeatureRR(1.0, (1.0,), 2), [1.5]), r"in \[0, 1\].*scale and clip"),
    (lambda: run(FeatureRR(1.0, (1.0,), 2), [0.0, 0.0]), r"\(n, 1\), got \(1, 2\)"),
    (lambda: of_list(FeatureRR(1.0, (1.0,) * 5, 10), 5), "100000 outputs, at most"),
    (lambda: LinearExtractor(((1.0,), (2.0, 3.0))), "matrix of finite weights"),
    (lambda: LinearExtractor(((1.0,),), sensitive=(1,)), r"from 0 to 0, got \(1,\)"),
    (lambda: LinearExtractor(((1.0,),), coefficients=(1.0, 2.0)), "1 coefficients"),
    (lambda: RecordFeatureRR(1.0, identity(2), 2, gamma=2.0), r"gamma .*got 2\.0"),
    (
        lambda: ExtractedFeatureRR(identity(2), FeatureRR(1.0, (1.0,), 2)),
        "2 shares, one a feature",
    ),
    (lambda: run(RecordFeatureRR(1.0, identity(2), 2), [2.0, 0.0]), r"in \[0, 1\]"),
    (
        lambda: run(RecordFeatureRR(1.0, identity(2), 2), np.zeros(3)),
        r"\(n, 2\), got \(1, 3\)",
    ),
]
NUMBERS = [
    *(
        (lambda kind=kind: kind(1e-12), "epsilon >= 9.3e-10, got 1e-12")
        for kind in (Duchi, Piecewise, PMSub, Hybrid, ThreeOutput, LaplaceFeature)
    ),
    (lambda: run(Duchi(1.0), np.zeros(2)), "a record of 1 numbers"),
    (lambda: run(GaussianFeatures(1.0, 1e-3, 3), np.zeros(2)), "of 3 numbers"),
    (lambda: perturb(GaussianFeatures(1.0, 1e-3, 3), np.zeros(3)), r"got shape \(3,"),
    (lambda: NumericVector(Duchi, 1.0, 3, 4), "got 4; a feature is sampled at most"),
    (lambda: NumericVector(Duchi, 1.0, 9).law(np.zeros(9)), "use fewer features"),
    (lambda: NumericVector(Piecewise, 1.0, 1).law([0.0]), "more than 10,000 outcomes"),
    (lambda: perturb(NumericVector(Duchi, 1.0, 2), [0.0, 1]), r"\(n, 2\), got shape"),
    (lambda: run(NumericVector(Duchi, 1.0, 2), np.zeros(3)), "a record of 2 numbers"),
    (lambda: keep_probability(-1e-9), "finite epsilon >= 0"),
    (lambda: laplace_scale(1, 0.0), "> 0"),
    (lambda: laplace_scale(1, math.inf), "> 0"),
    (lambda: laplace_scale(1, 5e-324), "larger epsilon"),
    (lambda: remaining(1.0, 0.5, 0.5), "nothing is left"),
    (lambda: portion(1.0, 1), "strictly between 0 and 1"),
]
HIERARCHY = [
    (lambda: of_graph(PrivHRG(0.5, 0.5, 5), 5), "at most 4"),
    (lambda: of_graph(DendrogramStep(0.5, 7, steps=1), 7), "at most 6"),
    (lambda: DendrogramStep(0.5, 7, moves="alternating"), "give steps"),
    (lambda: DendrogramStep(1.0, 4, factor=3), "factor one of"),
    (lambda: DendrogramStep(1.0, 4, equation="16"), "equation one of"),
    (lambda: DendrogramStep(1.0, 4, moves="both"), "moves one of"),
    (lambda: DendrogramStep(1.0, 4, private_nodes="some"), "'data' or node ids"),
    (lambda: DendrogramStep(1.0, 4, private_nodes=(0, 4)), "private nodes below 4"),
    (lambda: DendrogramStep(1.0, 4, public=((1, 0),)), "public edges"),
    (lambda: DendrogramStep(1.0, 4, start=((0, 1), 2)), "a start with 4 leaves"),
    (lambda: Thresholds(1.0, tau1=0), "tau1 > 0"),
    (lambda: Thresholds(1.0, draws="two"), "draws one of"),
    (lambda: states(7), "at most 6"),
    (lambda: sensitivity(4, "17"), "'19' or '15'"),
    (lambda: ManyPublicMoves(1.0, 3), "moves='alternating'"),
    *(
        (lambda nested=nested: children_of(nested), "expected")
        for nested in (0, (0, 2), ((0, 1), 1), (0, 1, 2), ((0, "1"), 2))
    ),
    *(
        (lambda children=children: Dendrogram(children), "one child of one node")
        for children in (
            [(0, 1), (1, 3)],
            [(0, 1), (2, 4)],
            [(0, 0), (2, 3)],
            [(0, 1), (4, 2), (5, 3), (6, 6)],
        )
    ),
]
PAGERANK = [
    (lambda: ista(np.eye(3, k=1), [0]), "a symmetric matrix of zeros and ones"),
    (lambda: ista(np.zeros(3), [0]), "expected a graph"),
    (lambda: ista(sparse.csr_array(np.eye(3, k=1)), [0]), "expected a graph"),
    (lambda: ista(EDGE, [2]), "node ids from 0 to 1"),
    (lambda: ista(EDGE, [0], alpha=1.0), r"alpha and rho in \(0, 1\), got 1\.0"),
    (lambda: ista(EDGE, [0], tolerance=0.0), "expected tolerance"),
    (lambda: NoisyRows(6.48, 1e-4, PublicRows(2), clip=0.0), "expected clip, a finite"),
    (lambda: NoisyRows(6.48, 1e-4, PublicRows(2), apart=-1.0), "expected apart"),
    (
        lambda: NoisyRows(6.48, 1e-4, PublicRows(2), calibration="laplace"),
        "'analytic' or 'classic', got 'laplace'",
    ),
    (lambda: NoisyRows(1.0, 0.0, PublicRows(2)).sigma, r"delta in \(0, 1\), got 0"),
    (lambda: DPApprGM(NOISY, 3), "k of at most 2 ids, got 3"),
    (lambda: DPApprEM(1.0, 1, GivenRows(3), clip=-1.0), "expected clip"),
    (lambda: DPApprEM(1.0, 1, GivenRows(3), candidates="all"), "'present', got 'all'"),
    (lambda: of_list(DPApprEM(1.0, 8, GivenRows(20)), 20), "125970 choices"),
    (lambda: run(DPApprEM(1.0, 1, GivenRows(3)), np.zeros(4)), "1 rows of 3 numbers"),
    (lambda: run(DPApprEM(1.0, 1, GivenRows(2)), [-1.0, 0]), "rows of 2 numbers >= 0"),
    (lambda: run(DPApprEM(1.0, 1, PublicRows(3)), ONES), "3 ids, got one of 4"),
    (lambda: SampledRows(3, 1, "all"), "'universe', got 'all'"),
    (lambda: DPApprEMValues(DPApprEM(1.0, 1, GivenRows(3)), 0.0), "value_epsilon"),
    (
        lambda: DPApprEMValues(DPApprEM(1.0, 1, GivenRows(3)), 1.0).log_prob(
            np.zeros((5, 3)), np.zeros(3)
        ),
        "outputs of 2 numbers, got 3",
    ),
    (lambda: row_epsilon(1.0, 1, 1.0), r"delta in \(0, 1\), got 1\.0"),
    (lambda: entry_epsilon(0.0, 1, 0.1), "expected row"),
    (lambda: unordered_top_k(np.zeros(5), 6), r"in 0\.\.5, .*got count=6"),
    (lambda: plackett_luce(np.zeros(40), 5), "outcomes, at most 200,000; use fewer"),
    (lambda: set_epsilon(3, 1, 0.0), r"finite eta > 0, got eta=0\.0"),
    (lambda: set_epsilon(3, 4, 1.0), r"count in 0\.\.3"),
]
NEWER = [
    (lambda: LinkMessage(1.0, 1.5), "expected"),
    (lambda: LinkMessages(LinkMessage(1.0), 1), "expected"),
    (lambda: of_graph(LinkMessages(LinkMessage(1.0), 5), 5), "expected"),
    (lambda: ContractiveIterations(1.0, 1.0, 1.0, 2), "expected"),
    (lambda: NoisyHop(1.0, 2, share=1.5), "expected"),
    (lambda: NeighbourEmbedding(1.0, 1.0, 1).distribution(np.ones(2)), "expected"),
    (lambda: WithinBall(SymmetricLaplace(1.0, 2), 1.0), "expected"),
    (lambda: WithinBall(SymmetricLaplace(1.0, 3), 1.0).distribution(0.5), "expected"),
    (lambda: ClippedAtPercentile(0.0, 1.0), "expected"),
]
GRAPHS = [
    (lambda: Graph(4, np.array([[1], [0]])), "i < j"),
    (lambda: Graph(4, np.array([[1], [1]])), "i < j"),
    (lambda: Graph(4, np.array([[0, 0], [1, 1]])), "i < j"),
    (lambda: Graph(4, np.array([[1, 0], [2, 1]])), "ascending"),
    (lambda: Graph(4, np.array([[0], [4]])), "from 0 to 3"),
    (lambda: Graph(4, np.array([[-1], [2]])), "from 0 to 3"),
    (lambda: Graph(4, np.array([[0, 1, 2]])), "shape"),
    (lambda: Graph(4, np.array([[0.0], [1.0]])), "integer"),
    (lambda: Graph(-1, np.array([[0], [1]])), "nodes"),
    (lambda: Graph.from_matrix(np.eye(3)), "zero diagonal"),
    (lambda: Graph.from_matrix(UPPER), "symmetric"),
    (lambda: DirectedGraph(3, np.array([[0], [0]])), "without loops"),
    (lambda: erdos_renyi(5, 1.5, np.random.default_rng(0)), "probability"),
    (lambda: barabasi_albert(3, 3, np.random.default_rng(0)), "nodes"),
    (lambda: PackedLists(np.arange(3), np.arange(3)), "number of targets, 3"),
    (
        lambda: distinct_cells(
            np.array([4]), 4, np.random.default_rng(0), taken=np.array([2])
        ),
        "row 0 has 3 free cells, asked for 4",
    ),
    *(
        (lambda wrong=wrong: backend_of(wrong), "write numpy.random.default_rng")
        for wrong in (None, 7, np.random.RandomState(0))
    ),
]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        *CLASSIC,
        *EDGES,
        *FEATURES,
        *NUMBERS,
        *HIERARCHY,
        *PAGERANK,
        *NEWER,
        *GRAPHS,
    ],
)
def test_the_message_has_the_value_or_the_remedy(build, message):
    with pytest.raises(MechanismError, match=message):
        build()


@pytest.mark.parametrize(
    "row",
    [
        RandomisedResponse(1.0),
        DPRR(0.5, 1.0),
        LocalLaplaceRow(1.0),
    ],
    ids=lambda m: m.name,
)
def test_users_of_a_whole_graph_are_checked(row):
    graph = barabasi_albert(30, 2, np.random.default_rng(0))
    with pytest.raises(MechanismError, match="user ids from 0 to 29"):
        row.whole_graph(graph, rng=np.random.default_rng(0), users=[30])


def test_private_edges_that_are_public_or_outside_are_refused():
    step = DendrogramStep(1.0, 4, public=((0, 1),), private_nodes=(0, 1, 2))
    for i, j in ((0, 1), (2, 3)):
        graph = np.zeros((4, 4), np.int8)
        graph[i, j] = graph[j, i] = 1
        with pytest.raises(MechanismError, match="may not have a private edge"):
            step.distribution(graph)


def test_the_loader_names_the_fault_of_a_file(tmp_path):
    with pytest.raises(MechanismError, match="no such file"):
        load_graph(tmp_path / "nothing.npz")
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(MechanismError, match="lacks kind"):
        load_graph(tmp_path / "other.npz")
    np.savez(
        tmp_path / "node.npz",
        kind="node",
        num_nodes=4,
        edge_index=np.array([[0, 1, 2], [1, 2, 3]]),
        edges_stored="once_u_lt_v",
    )
    assert load_graph(tmp_path / "node.npz").nodes == 4
    with pytest.raises(MechanismError, match="use load_graph"):
        load_graphs(tmp_path / "node.npz")
