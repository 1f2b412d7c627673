"""Every sampler of features, labels and published neighbours has the law that its exact methods state.

Each assertion has alpha = 1e-6: the null hypothesis is that the sampler is right, runs are independent, the number of
runs is fixed, and outputs are pooled until 20 are expected in each cell of a chi-square test, where its approximation is
good. An output that the law does not list fails at once.
"""

import numpy as np
import pytest
from scipy import stats

from mechanisms.edges.graph_pub import GraphPub, score_matrix
from mechanisms.edges.graph_pub_response import GraphPubList, GraphPubResponse
from mechanisms.features import (
    ExtractedFeatureRR,
    FeatureRR,
    LinearExtractor,
    MinMaxScaled,
    MultiBit,
    OneBit,
    OneReport,
    PublicBounds,
    RecordFeatureRR,
    Rectified,
)
from mechanisms.labels import FeaturesAndLabel, LabelRR
from tests.statistical.goodness import ALPHA, follows

pytestmark = pytest.mark.statistical
RUNS = 30_000
POPULATION = np.array([[0.0, 2.0], [1.0, 2.0], [5.0, 2.0]])
PATH = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]], np.int8)
SCORES = score_matrix(np.array([[1.0, 0.0], [0.3, 0.4], [-0.5, 1.0], [0.2, -0.7]]))
EXTRACTOR = LinearExtractor(((1.0, 0.2, 0.0), (0.3, 0.3, 0.3)), sensitive=(2,))
RECORD = np.array([0.2, 0.9, 0.6])

SAMPLERS = {
    "multi-bit": (MultiBit(2.5, 3, sampled=2), np.array([0.0, 0.3, 1.0])),
    "1-bit": (OneBit(1.5, 3, -1.0, 2.0), np.array([-1.0, 0.3, 2.0])),
    "label": (LabelRR(0.8, 5), 3),
    "label, two classes": (LabelRR(2.0, 2), 0),
    "features and label": (
        FeaturesAndLabel(MultiBit(1.0, 2), LabelRR(1.0, 3)),
        np.array([0.2, 1.0, 1.0]),
    ),
    "min-max": (MinMaxScaled(OneBit(2.0, 2), 3), POPULATION),
    "min-max, constant dropped": (MinMaxScaled(OneBit(2.0, 2), 3, "drop"), POPULATION),
    "one report": (OneReport(MinMaxScaled(MultiBit(2.0, 2), 3), 1), POPULATION),
    "public bounds": (PublicBounds(OneBit(2.0, 2, 0.0, 4.0), 3), POPULATION),
    "FeatureRR": (FeatureRR(3.0, (1.0, 2.0), 4), np.array([0.1, 0.6])),
    "FeatureRR, shares of the record": (RecordFeatureRR(3.0, EXTRACTOR, 4), RECORD),
    "FeatureRR, public shares": (
        ExtractedFeatureRR(EXTRACTOR, FeatureRR(3.0, (2.0, 1.0), 4)),
        RECORD,
    ),
    "FeatureRR, published shares": (
        RecordFeatureRR(3.0, EXTRACTOR, 3, publish_shares=True),
        RECORD,
    ),
    "GraphPub, random": (GraphPub(0.7, 4, SCORES, "random"), PATH),
    "GraphPub, real uniformly": (
        GraphPub(0.1, 4, SCORES, "round", "real uniformly"),
        PATH,
    ),
    "GraphPub, union": (
        GraphPub(0.3, 4, SCORES, "random", "uniformly", union=True),
        PATH,
    ),
    "GraphPub, noisy degrees": (GraphPub(0.7, 4, SCORES, degree_epsilon=0.8), PATH),
    "GraphPub, noisy degrees, random": (
        GraphPub(0.7, 3, SCORES[:3, :3], "random", "uniformly", degree_epsilon=0.8),
        PATH[:3, :3],
    ),
    "GraphPub repaired": (GraphPubResponse(0.9, 4, SCORES, 1.5), PATH),
    "GraphPub's list repaired": (
        GraphPubList(0.8, 0.9, 6, scores=(1.0, 2.0, 3.0, 4.0, 5.0)),
        np.array([1, 0, 0, 1, 1]),
    ),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_outputs_follow_the_stated_law(name):
    mechanism, data = SAMPLERS[name]
    seed = list(SAMPLERS).index(name)
    follows(
        mechanism(data, RUNS, rng=np.random.default_rng([20240, seed])),
        mechanism.distribution(data),
        name,
    )


def test_estimates_have_the_stated_mean():
    """z-test of the mean against the truth with the stated variance, two-sided, alpha = 1e-6."""
    encoder, record = MultiBit(2.0, 4, -1.0, 3.0), np.array([2.5, 0.0, 0.0, 0.0])
    estimates = Rectified(encoder)(record, RUNS, rng=np.random.default_rng([20240, 90]))
    z = (estimates.mean() - 2.5) / np.sqrt(encoder.variance(2.5) / RUNS)
    assert 2 * stats.norm.sf(abs(z)) > ALPHA, f"z = {z:.3g}, alpha={ALPHA:g}"


def test_the_test_sees_a_wrong_budget():
    """Power: the law of ε is refuted by outputs of 1.3 ε, with probability near 1."""
    encoder, record = OneBit(1.5, 3), np.array([0.0, 0.3, 1.0])
    outputs = OneBit(1.3 * 1.5, 3)(record, RUNS, rng=np.random.default_rng([20240, 91]))
    with pytest.raises(AssertionError, match="p-value"):
        follows(outputs, encoder.distribution(record), "wrong budget")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize(
    "name",
    [
        "multi-bit",
        "label",
        "FeatureRR",
        "FeatureRR, shares of the record",
        "FeatureRR, published shares",
    ],
)
def test_tensors_follow_the_same_law(name, device):
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    mechanism, data = SAMPLERS[name]
    rng = torch.Generator(device).manual_seed(list(SAMPLERS).index(name))
    shape = (RUNS, *np.shape(data))
    values = torch.as_tensor(
        np.broadcast_to(np.asarray(data, np.float64), shape).copy(), device=device
    )
    follows(
        mechanism.perturb(values, rng=rng).cpu().numpy(),
        mechanism.distribution(data),
        f"{name} on {device}",
    )
