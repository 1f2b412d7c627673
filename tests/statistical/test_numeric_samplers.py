"""Every numeric mechanism draws from the law that it states, with numpy and with torch.

Each assertion has alpha = 1e-6: the null hypothesis is that the sampler is right, runs are independent, their number is
fixed, and every cell of a chi-square test is expected 20 times or more, where its approximation is good.
"""

import numpy as np
import pytest
from scipy import stats

from auditdp.mechanism.laws import FiniteLaw
from mechanisms.backend import backend_of
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
from tests.statistical.goodness import check, chi_square_p, follows

pytestmark = pytest.mark.statistical
SIZE = 40_000
CELLS = 60
LIBRARIES = ["numpy", "torch", pytest.param("cuda", marks=pytest.mark.gpu)]
NUMBERS = [-1.0, -0.35, 0.0, 0.8]
KINDS = [Duchi, Piecewise, PMSub, Hybrid, ThreeOutput, LaplaceFeature]


def generator(library, *key):
    if library == "numpy":
        return np.random.default_rng([20250, *key])
    torch = pytest.importorskip("torch")
    if library == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    return torch.Generator("cpu" if library == "torch" else "cuda").manual_seed(
        sum(k << 8 * i for i, k in enumerate(key, 1))
    )


def as_numpy(outputs):
    return outputs if isinstance(outputs, np.ndarray) else outputs.cpu().numpy()


def cells_of(mechanism, x):
    """Edges of cells that cover all outputs, atoms, and the probability of each cell without atoms and of each atom."""
    if isinstance(mechanism, LaplaceFeature):
        law = stats.laplace(x, mechanism.scale)
        edges = np.r_[-np.inf, law.ppf(np.arange(1, CELLS) / CELLS), np.inf]
        return edges, [], np.diff(law.cdf(edges))
    law = mechanism.distribution(x)
    if isinstance(law, FiniteLaw):
        return np.array([]), law.outcomes, law.floats
    atoms = np.array(list(map(float, law.atoms)))
    mass = np.array([float(law.points[y]) for y in law.points])
    ends = [float(b) for b in law.ends]
    edges = (
        np.unique(np.r_[np.linspace(ends[0], ends[-1], CELLS), ends])
        if ends
        else np.array([])
    )
    below = law.cdf(edges) - ((edges[:, None] >= atoms) * mass).sum(axis=1)
    return edges, atoms, np.r_[np.diff(below), mass]


def agrees(outputs, mechanism, x, what):
    edges, atoms, probabilities = cells_of(mechanism, x)
    at_atom = np.isin(outputs, atoms)
    counts = [np.sum(outputs == y) for y in atoms]
    if len(edges):
        counts = [*np.histogram(outputs[~at_atom], edges)[0], *counts]
    assert sum(counts) == len(outputs), f"{what}: outputs outside the range"
    check(chi_square_p(counts, probabilities), what)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("kind", KINDS)
def test_outputs_have_the_stated_law(kind, epsilon, library):
    mechanism, rng = (
        kind(epsilon),
        generator(library, KINDS.index(kind), int(10 * epsilon)),
    )
    outputs = as_numpy(mechanism.perturb(np.tile(NUMBERS, (SIZE, 1)), rng=rng))
    for x, column in zip(NUMBERS, outputs.T, strict=True):
        agrees(column, mechanism, x, f"{mechanism.name} at {x}, {library}")


@pytest.mark.parametrize(
    ("sampled", "stated"),
    [
        (Duchi(1.1), Duchi(1.0)),
        (Piecewise(1.1), Piecewise(1.0)),
        (PMSub(1.0), Piecewise(1.0)),
        (Hybrid(1.1), Hybrid(1.0)),
        (ThreeOutput(1.1), ThreeOutput(1.0)),
        (LaplaceFeature(1.1), LaplaceFeature(1.0)),
    ],
)
def test_the_goodness_test_sees_a_wrong_law(sampled, stated):
    """The check above can fail: a tenth more budget, or another t, is seen."""
    with pytest.raises(AssertionError, match=r"alpha=1e-06|outside the range"):
        agrees(
            sampled(np.array([0.8]), SIZE, rng=generator("numpy", 9)),
            stated,
            0.8,
            "a wrong law",
        )


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("kind", "sampled"), [(Duchi, 3), (Duchi, 1), (ThreeOutput, 2), (ThreeOutput, 3)]
)
def test_records_have_the_stated_law(kind, sampled, library):
    """Features are independent, samples are uniform: the joint law of three features."""
    vector, x = NumericVector(kind, 2.0, 3, sampled), np.array([0.3, -1.0, 0.0])
    outputs = as_numpy(
        vector.perturb(np.tile(x, (SIZE, 1)), rng=generator(library, 7, sampled))
    )
    follows(outputs, vector.law(x), f"{vector.name}, {library}")


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_subset_is_as_likely(library):
    mask = as_numpy(backend_of(generator(library, 11)).subsets(SIZE, 6, 3))
    counts = np.unique(mask @ (1 << np.arange(6)), return_counts=True)[1]
    check(
        chi_square_p(np.r_[counts, np.zeros(20 - len(counts))], np.full(20, 1 / 20)),
        f"subsets, {library}",
    )


@pytest.mark.parametrize("library", LIBRARIES)
def test_integers_are_uniform(library):
    drawn = as_numpy(backend_of(generator(library, 12)).integers(7, SIZE))
    check(
        chi_square_p(np.bincount(drawn, minlength=7), np.full(7, 1 / 7)),
        f"integers, {library}",
    )


@pytest.mark.parametrize("library", LIBRARIES)
def test_gaussian_noise_has_the_stated_law(library):
    """Cells of equal probability in the plane of two features: both laws, and that they are independent."""
    mechanism, x = GaussianFeatures(1.0, 1e-2, 2), np.array([0.5, -1.0])
    outputs = as_numpy(
        mechanism.perturb(np.tile(x, (SIZE, 1)), rng=generator(library, 13))
    )
    share = stats.norm.cdf((outputs - x) / mechanism.sigma)
    cells = np.minimum((share * 10).astype(int), 9) @ [10, 1]
    check(
        chi_square_p(np.bincount(cells, minlength=100), np.full(100, 1 / 100)),
        f"{mechanism.name}, {library}",
    )
