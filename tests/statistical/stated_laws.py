"""The table of mechanisms with an input each and the law that is stated of the output.

A row without a law has the one that its mechanism states. ``of`` maps outputs to what
the law is about.
"""

from collections.abc import Callable
from math import comb, inf, log
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from auditdp.evidence.loss_of_laws import pair_loss
from auditdp.mechanism.laws import FiniteLaw, GaussianLaw, LaplaceLaw
from mechanisms.classic import (
    SVT1,
    SVT2,
    SVT3,
    SVT4,
    SVT5,
    SVT6,
    ExponentialMechanism,
    Gaussian,
    GaussianAbove,
    LaplaceParallel,
    LaplaceSum,
    NaiveLaplace,
    NoisyHistogram1,
    NoisyHistogram2,
    NoisyMax1,
    NoisyMax2,
    NoisyMax3,
    NoisyMax4,
    NumericSVT,
    OneTimeRappor,
    PrefixSum,
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
    NoisyDegree,
    PerUser,
    RandomisedResponse,
)
from mechanisms.edges.graph_pub import GraphPub, score_matrix
from mechanisms.edges.graph_pub_response import GraphPubList, GraphPubResponse
from mechanisms.features import (
    Everybody,
    ExtractedFeatureRR,
    FeatureRR,
    LinearExtractor,
    MinMaxScaled,
    MultiBit,
    OneBit,
    OneReport,
    PublicBounds,
    RecordFeatureRR,
)
from mechanisms.graphs import Graph
from mechanisms.hierarchy import DendrogramStep, NoisyCounts, PrivHRG, Thresholds
from mechanisms.labels import FeaturesAndLabel, LabelRR
from mechanisms.link_ldp import LinkMessage, LinkMessages
from mechanisms.message_passing import (
    AllIterations,
    ContractiveIterations,
    NeighbourEmbedding,
    NoisyHop,
)
from mechanisms.node_level import (
    Beyond,
    ClippedAtPercentile,
    SymmetricLaplace,
    WithinBall,
)
from mechanisms.node_level.thresholds import ClippedAtConstant
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
    GivenRows,
    NoisyRows,
    PublicRows,
    SampledRows,
    SelectedValues,
)


def law_of(mechanism, data):
    for name in ("distribution", "before_processing"):
        if hasattr(mechanism, name):
            return getattr(mechanism, name)(data)
    return mechanism.law(data)


def loss(mechanism, first, second, **at):
    """The exact privacy loss between the laws of two inputs."""
    laws = (law_of(mechanism, np.asarray(data)) for data in (first, second))
    return pair_loss(*laws, **at)


def outputs_of(mechanism, data, size):
    return mechanism(data, size, rng=np.random.default_rng(0))


def losses(mechanism, adjacency):
    """The exact loss of every pair."""
    pairs = adjacency.exhaustive()
    return [loss(mechanism, pair.data, pair.neighbour) for pair in pairs]


class Row(NamedTuple):
    mechanism: Any
    data: Any
    law: Any = None
    of: Callable = np.asarray

    @property
    def name(self):
        return getattr(self.mechanism, "name", type(self.mechanism).__name__)

    @property
    def stated(self):
        return law_of(self.mechanism, self.data) if self.law is None else self.law


ANSWERS = np.array([1.0, -0.5, 2.0, 0.7])
ONE = np.array([1.0])
LIST = np.array([1, 0, 0, 1, 0], np.int8)
RECORD = np.array([0.2, 0.9, 0.6])
POPULATION = np.array(
    [
        [0.0, 2.0],
        [1.0, 2.0],
        [5.0, 2.0],
    ]
)
CLIP = 0.001
ENTRIES = CLIP * np.array([0.0, 1.0, 0.3, 0.7, 5.0])
NEVER = {"tau1": inf, "tau2": inf}
TWO_PUBLIC = {"public": ((0, 4), (1, 3))}


def arcs(text):
    """Pairs of one-digit ids in two rows: [[0, 1], [1, 2]] of "01 12"."""
    return np.array([[int(node) for node in pair] for pair in text.split()]).T


def matrix(nodes, *pairs):
    """The graph of pairs like "01" or (0, 1)."""
    found = np.zeros((nodes, nodes), np.int8)
    for pair in pairs:
        i, j = map(int, pair)
        found[i, j] = found[j, i] = 1
    return found


PAW = matrix(4, "01", "02", "12", "23")
PATH = matrix(4, "01", "12", "23")
WEDGE = matrix(3, "02")
EDGE = matrix(2, "01")
HOUSE = matrix(5, "01", "12", "23", "03", "34")


def torch_generator(device, seed):
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    return torch.Generator(device).manual_seed(seed)


STAR = matrix(4, "01", "02") + np.diag(np.array([1, 1, 1, 0], np.int8))
"""Three nodes with self-loops, and one id whose node is not there."""
SMALL = Graph.from_matrix(PAW)


def laplace(location, scale):
    return LaplaceLaw(np.array(location), np.full(len(location), scale))


def laplace_of(x, scale):
    return stats.laplace(x, scale).cdf


def with_flags(mechanism):
    """The flags alone of a technique that releases numbers too."""
    law = mechanism.flags(ANSWERS)
    return Row(mechanism, ANSWERS, law, lambda outputs: outputs[:, : len(ANSWERS)])


def degree_law(mechanism, bits, degree):
    """The law of the number of ones, summed over classes with their multiplicities."""
    k1, k0 = np.indices((degree + 1, bits - degree + 1)).reshape(2, -1)
    logs = mechanism.law(bits, degree).log_prob(k1, k0)
    for place, (a, b) in enumerate(zip(k1, k0, strict=True)):
        # The logarithm of an integer, which may be too large for a float.
        logs[place] += log(comb(degree, a) * comb(bits - degree, b))
    return np.bincount(k1 + k0, np.exp(logs), bits + 1)


def noisy_degree(mechanism, bits, degree):
    law = degree_law(mechanism, bits, degree)
    data = (np.arange(bits) < degree).astype(np.int8)
    counted = FiniteLaw(np.arange(bits + 1), law / law.sum())
    return Row(NoisyDegree(mechanism), data, counted)


SIGMA = Gaussian(1.0, 1e-3)
GAUSSIAN = Row(SIGMA, ANSWERS, GaussianLaw(ANSWERS, SIGMA.sigma))
LAPLACE = Row(LaplaceSum(0.5, 3.0), ANSWERS, laplace([3.2], 6.0))
CLASSIC = [
    Row(SVT1(0.8, 1, 0.5), ANSWERS),
    Row(SVT1(0.8, 2, 0.5), ANSWERS),
    Row(SVT2(0.8, 2, 0.5), ANSWERS),
    Row(SVT4(0.8, 3, 0.5), ANSWERS),
    Row(SVT5(0.8, 0.5), ANSWERS),
    Row(SVT6(0.8, 0.5), ANSWERS),
    with_flags(SVT3(0.8, 2, 0.5)),
    with_flags(NumericSVT(0.8, 2, 0.5)),
    Row(NoisyMax1(0.8), ANSWERS),
    Row(NoisyMax2(0.8), ANSWERS),
    *(
        Row(each, ANSWERS, lambda y, each=each: each.cdf(y, ANSWERS))
        for each in (NoisyMax3(0.5), NoisyMax4(0.5))
    ),
    Row(ExponentialMechanism(0.8), ANSWERS),
    Row(TruncatedGeometric(0.1, 5), [2.0]),
    Row(TruncatedGeometric(0.1, 5, "natural"), [0.0]),
    Row(OneTimeRappor(2, 6, 0.7), [3.0]),
    Row(Rappor(3, 6, 0.5, 0.2, 0.9), [4.0]),
    Row(GaussianAbove(Gaussian(1.0, 0.1)), ONE),
    LAPLACE,
    Row(LaplaceParallel(0.5, 3), ONE, laplace([1.0] * 3, 2.0)),
    Row(NoisyHistogram1(0.5), ANSWERS, laplace(ANSWERS, 2.0)),
    Row(NoisyHistogram2(0.5), ANSWERS, laplace(ANSWERS, 0.5)),
    GAUSSIAN,
    Row(
        PrefixSum(0.5),
        ANSWERS,
        laplace(ANSWERS, 2.0),
        lambda outputs: np.diff(outputs, axis=1, prepend=0.0),
    ),
    *(
        Row(NaiveLaplace(0.5, each), ONE, laplace_of(1.0, 2.0), np.float64)
        for each in ("float32", "float64")
    ),
]
EDGES = [
    Row(RandomisedResponse(0.8), LIST),
    Row(DPRR(0.3, 0.9), LIST),
    Row(DPRR(0.3, 0.9, clip_degree=False), LIST),
    Row(DPRR(3.0, 2.0), LIST),
    noisy_degree(DPRR(0.2, 1.1), 40, 2),
    noisy_degree(DPRR(0.2, 1.1, clip_degree=False), 40, 30),
    Row(PerUser(RandomisedResponse(0.8), 4), PAW),
    Row(PerUser(DPRR(0.5, 1.0), 3), WEDGE),
    Row(EdgeRand(0.7, 4), PAW),
    Row(LapGraph(4.0, 4, share=0.5), PAW),
    Row(LapGraphNoisy(0.7, 4), PAW),
    Row(LocalLaplaceGraph(3.0, 4, share=0.5), PAW),
    Row(LocalLaplaceRow(3.0), LIST),
    Row(LocalLaplaceMessage(0.7, user=1), LIST),
    Row(LocalLaplaceMessages(0.7, 4), PAW),
    Row(Customised(RandomisedResponse(1.0), 4, private=(2,)), PAW),
    Row(LinkMessage(1.0), [1, 0, 1]),
    Row(LinkMessages(LinkMessage(2.0), 2), EDGE),
]
SCORES = score_matrix(
    np.array(
        [
            [1.0, 0.0],
            [0.3, 0.4],
            [-0.5, 1.0],
            [0.2, -0.7],
        ]
    )
)
EXTRACTOR = LinearExtractor(((1.0, 0.2, 0.0), (0.3, 0.3, 0.3)), sensitive=(2,))
NOISY_DEGREES = {"degree_epsilon": 0.8}
TENSORS = [
    Row(MultiBit(2.5, 3, sampled=2), [0.0, 0.3, 1.0]),
    Row(LabelRR(0.8, 5), 3),
    Row(FeatureRR(3.0, (1.0, 2.0), 4), [0.1, 0.6]),
    Row(RecordFeatureRR(3.0, EXTRACTOR, 4), RECORD),
    Row(RecordFeatureRR(3.0, EXTRACTOR, 3, publish_shares=True), RECORD),
    Row(ExtractedFeatureRR(EXTRACTOR, FeatureRR(3.0, (2.0, 1.0), 4)), RECORD),
]
"""Those that are drawn with torch as well."""
FEATURES = [
    *TENSORS,
    Row(OneBit(1.5, 3, -1.0, 2.0), [-1.0, 0.3, 2.0]),
    Row(LabelRR(2.0, 2), 0),
    Row(FeaturesAndLabel(MultiBit(1.0, 2), LabelRR(1.0, 3)), [0.2, 1.0, 1]),
    Row(Everybody(MultiBit(1.0, 2), 2), [[0.0, 1.0], [0.5, 0.25]]),
    Row(MinMaxScaled(OneBit(2.0, 2), 3), POPULATION),
    Row(MinMaxScaled(OneBit(2.0, 2), 3, "drop"), POPULATION),
    Row(OneReport(MinMaxScaled(MultiBit(2.0, 2), 3), 1), POPULATION),
    Row(PublicBounds(OneBit(2.0, 2, 0.0, 4.0), 3), POPULATION),
    Row(GraphPub(0.7, 4, SCORES, "random"), PATH),
    Row(GraphPub(0.1, 4, SCORES, "round", "real uniformly"), PATH),
    Row(GraphPub(0.3, 4, SCORES, "random", "uniformly", union=True), PATH),
    Row(GraphPub(0.7, 4, SCORES, **NOISY_DEGREES), PATH),
    Row(
        GraphPub(0.7, 3, SCORES[:3, :3], "random", "uniformly", **NOISY_DEGREES),
        PATH[:3, :3],
    ),
    Row(GraphPubResponse(0.9, 4, SCORES, 1.5), PATH),
    Row(GraphPubList(0.8, 0.9, 6, scores=(1.0, 2.0, 3.0, 4.0, 5.0)), LIST),
]
SCALARS = (Duchi, Piecewise, PMSub, Hybrid, ThreeOutput)
THREE = np.array([0.3, -1.0, 0.0])
LAPLACE_FEATURE = Row(LaplaceFeature(1.0), 0.8, laplace_of(0.8, 2.0))
MIDDLING = [Row(kind(1.0), 0.8) for kind in SCALARS]
RECORDS = [
    LAPLACE_FEATURE,
    Row(NumericVector(Duchi, 2.0, 3, 1), THREE),
    Row(NumericVector(ThreeOutput, 2.0, 3, 3), THREE),
    Row(NumericVector(ThreeOutput, 2.0, 3, 2, rescaled=False), THREE),
    Row(GaussianFeatures(1.0, 1e-2, 2), [0.5, -1.0]),
]
NUMBERS = [*MIDDLING, *RECORDS]
for scalar in SCALARS:
    NUMBERS += [Row(scalar(0.3), -0.35), Row(scalar(4.0), 0.8), Row(scalar(1.0), -1.0)]


def steps(**readings):
    return Row(DendrogramStep(3.0, 5, **readings), HOUSE)


DENDROGRAMS = [
    steps(),
    steps(steps=1),
    steps(steps=7, start="uniform"),
    steps(steps=3, factor=1, equation="15"),
    steps(moves="alternating", **TWO_PUBLIC),
    steps(steps=2, moves="alternating", **TWO_PUBLIC),
    steps(steps=3, moves="joint", **TWO_PUBLIC),
    steps(steps=3, private_nodes="data"),
]


def release(epsilon1, epsilon2, **readings):
    return Row(PrivHRG(epsilon1, epsilon2, 4, **readings), PAW)


RELEASES = [
    release(1.0, 1.0),
    release(2.0, 1.0, **NEVER),
    release(2.0, 1.0, steps=2, **NEVER),
    release(2.0, 1.0, draws="fresh"),
    release(2.0, 3.0, draws="nested"),
    release(2.0, 20.0),
    release(2.0, 1.0, public=((0, 3),), moves="joint", **NEVER),
]


def selected(epsilon, k, rows, **readings):
    return Row(DPApprEM(epsilon, k, rows, **readings), STAR)


PAGERANK = [
    Row(DPApprEM(1.0, 2, GivenRows(5)), ENTRIES),
    Row(DPApprEM(1.0, 3, GivenRows(5), ordered=True), ENTRIES),
    selected(0.7, 1, PublicRows(4, (0, 3))),
    selected(0.7, 2, PublicRows(4, (1, 2)), candidates="present"),
    selected(1.5, 2, SampledRows(4, 2)),
    selected(1.5, 1, SampledRows(4, 2, "universe"), candidates="present"),
    selected(1.5, 1, SampledRows(4, 4), candidates="present", ordered=True),
    Row(NoisyRows(1.0, 1e-3, PublicRows(4, (0, 1))), STAR),
    Row(SelectedValues(1.0, (1, 2), PublicRows(4)), PAW),
]
ITERATIONS = (0.5, 1.0, 2.0, 4)
NEWER = [
    Row(WithinBall(SymmetricLaplace(1.4, 3), 0.5), 1.0),
    Row(WithinBall(SymmetricLaplace(1.4, 3), 0.5), 0.0),
    Row(Beyond(ClippedAtPercentile(2.0, 4.0), 4.0), (0.01, 1.0, 1.0)),
    Row(ClippedAtConstant(2.0, 2.0), (0.5, 3.0)),
    Row(ContractiveIterations(*ITERATIONS), 1),
    Row(AllIterations(*ITERATIONS), 1),
    Row(NoisyHop(1.0, 2), EDGE),
    Row(NeighbourEmbedding(1.0, 1.0, 2), [1, 0, 1]),
    Row(NoisyCounts((((0, 1), 2), 3), Thresholds(0.7)), PAW),
]
