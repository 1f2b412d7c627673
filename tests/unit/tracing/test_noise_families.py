"""Laws of releases are those of scipy at the recorded values, and losses follow."""

import math

import numpy as np
import pytest
from scipy import special, stats

from auditdp import PureDP
from auditdp.tracing.noise_families import FAMILIES, NoiseLaw, location_loss
from tests.unit.tracing.toys import certain_kinds, log_ratio, pair_of, record

DOUBLE = stats.laplace(scale=2.0)
TWO_SIDED = stats.dlaplace(-math.log1p(-0.4))


def added(draw):
    return lambda v, rng: v + draw(rng)


def inverse_transform(rng):
    u = rng.random(2) - 0.5
    return -2.0 * np.sign(u) * np.log(1 - 2 * np.abs(u))


# Draws that are added to a value, and their laws.
DRAWS = {
    "Laplace": (lambda rng: rng.laplace(scale=2.0), DOUBLE),
    "two exponentials": (
        lambda rng: rng.exponential(2.0) - rng.exponential(2.0),
        DOUBLE,
    ),
    "inverse transform": (inverse_transform, DOUBLE),
    "Gaussian": (
        lambda rng: rng.normal(0, [1.0, 3.0]),
        stats.norm(scale=[1.0, 3.0]),
    ),
    "sum of Gaussians": (
        lambda rng: rng.normal(scale=3) + 4 * rng.standard_normal(),
        stats.norm(scale=5.0),
    ),
    "logistic": (lambda rng: rng.logistic(scale=2.0), stats.logistic(scale=2.0)),
    "Gumbel": (lambda rng: rng.gumbel(scale=2.0), stats.gumbel_r(scale=2.0)),
    "uniform": (lambda rng: rng.uniform(-3, 3), stats.uniform(-3, 6)),
    "Poisson": (lambda rng: rng.poisson(4.0, size=2), stats.poisson(4.0)),
    "two geometrics": (lambda rng: rng.geometric(0.4) - rng.geometric(0.4), TWO_SIDED),
}
# Code that is no sum of a value and a draw, and the law around the value.
NOISES = {name: (added(draw), law) for name, (draw, law) in DRAWS.items()} | {
    "Laplace in the call": (lambda v, rng: rng.laplace(v, 2.0), DOUBLE),
    "covariance": (
        lambda v, rng: rng.multivariate_normal([v, v], np.diag([4.0, 9.0])),
        stats.norm(scale=[2.0, 3.0]),
    ),
}


@pytest.mark.parametrize("name", NOISES)
def test_the_likelihood_ratio_is_that_of_scipy_at_the_recorded_values(name):
    function, law = NOISES[name]
    log_density = law.logpdf if hasattr(law, "logpdf") else law.logpmf

    def log_likelihood(pair, value):
        results = [np.asarray(release.result) for release in pair.first.releases]
        with np.errstate(all="ignore"):
            return sum(np.sum(log_density(result - value)) for result in results)

    for seed, (v, w) in enumerate([(3, 4), (4, 3), (3, 3), (0, 1)]):
        pair = pair_of(function, v, w, seed=seed, outcomes=0)
        assert pair.extent == "full"
        assert pair.differ is None
        expected = log_likelihood(pair, v) - log_likelihood(pair, w)
        assert log_ratio(pair) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("noise", "scale"),
    [
        (lambda rng: round(rng.laplace(scale=2.0)), 2.0),
        (lambda rng: np.round(rng.laplace(scale=0.7)), 0.7),
    ],
)
def test_rounded_laplace_noise_has_the_probabilities_of_its_cells(noise, scale):
    (release,) = record(lambda v, rng: v + noise(rng), 5, seed=1).releases
    cdf = stats.laplace(scale=scale).cdf
    k = release.result - 5
    cell = math.log(cdf(k + 0.5) - cdf(k - 0.5))
    assert release.law.log_likelihood(5, release.result) == pytest.approx(cell)


@pytest.mark.parametrize(
    ("family", "parameter"),
    [
        ("geometric", 0.3),
        ("two-sided geometric", 0.3),
        ("integer", 7.0),
        ("rounded Laplace", 1.3),
    ],
)
def test_probabilities_of_whole_families_sum_to_one(family, parameter):
    law = NoiseLaw(family, 1.0, parameter)
    masses = [math.exp(law.log_likelihood(0, k)) for k in range(-300, 301)]
    assert math.fsum(masses) == pytest.approx(1.0)
    assert law.log_likelihood(0, 0.5) == -math.inf


@pytest.mark.parametrize(
    "family", [name for name, family in FAMILIES.items() if family.distribution]
)
def test_a_distribution_function_is_the_integral_of_the_density(family):
    known = FAMILIES[family]
    parameter = 5.0
    if known.is_whole:
        points = np.arange(-3, 9)
        law = NoiseLaw(family, 1.0, parameter)
        masses = [math.exp(law.log_likelihood(0, int(k))) for k in points]
        sums = np.cumsum(masses)
        np.testing.assert_allclose(known.distribution(points, parameter), sums)
        return
    z = np.linspace(-8, 8, 16001)
    with np.errstate(all="ignore"):
        density = np.exp(known.log_density(z, parameter))
    sums = known.distribution(-8.0, parameter) + np.cumsum(density) * (z[1] - z[0])
    found = known.distribution(z, parameter)
    np.testing.assert_allclose(found[2000:], sums[2000:], atol=2e-3)


@pytest.mark.parametrize(
    ("family", "scale", "parameter"),
    [
        ("Laplace", 2.0, None),
        ("two-sided geometric", 1.0, 0.3),
        ("rounded Laplace", 1.0, 1.5),
    ],
)
def test_a_pure_loss_is_the_supremum_of_the_log_ratio(family, scale, parameter):
    law = NoiseLaw(family, scale, parameter)
    ratios = [
        abs(law.log_likelihood(0, k) - law.log_likelihood(3, k)) for k in range(-60, 61)
    ]
    loss = location_loss(law, law, 3.0)
    assert loss.epsilon == pytest.approx(max(ratios), rel=1e-6)
    assert not loss.delta


def test_losses_in_closed_form():
    gaussian = NoiseLaw("Gaussian", 2.0)
    uniform = NoiseLaw("uniform", 10.0)
    loss = location_loss(gaussian, gaussian, np.array([3.0, 4.0]))
    assert loss.squared_mu == pytest.approx((5 / 2) ** 2)
    loss = location_loss(uniform, uniform, 2.0)
    assert loss == (0.0, pytest.approx(0.2), 0.0, None)


@pytest.mark.parametrize("other", [NoiseLaw("Laplace", 3.0), NoiseLaw("Gaussian", 2.0)])
def test_another_scale_or_family_has_no_bound(other):
    assert location_loss(NoiseLaw("Laplace", 2.0), other, 0.0).epsilon == math.inf


def test_an_unknown_law_has_no_loss_and_no_likelihood():
    unknown = NoiseLaw("poisson")
    assert location_loss(unknown, unknown, 1.0) is None
    assert math.isnan(unknown.log_likelihood(0, 1))


@pytest.mark.parametrize(
    ("function", "values", "probabilities"),
    [
        (lambda p, rng: bool(rng.random() < p), (0.3, 0.6), (0.3, 0.6)),
        (
            lambda v, rng: bool(rng.laplace() > v),
            (0.4, -0.2),
            stats.laplace.sf([0.4, -0.2]),
        ),
    ],
    ids=["coin", "Laplace noise"],
)
def test_an_event_has_its_probability_and_loses_by_it(function, values, probabilities):
    pair = pair_of(function, *values)
    p, q = probabilities
    (first,), (second,) = pair.first.releases, pair.second.releases
    if first.result != pair.first.output:
        p, q = 1 - p, 1 - q
    assert (first.location, second.location) == pytest.approx((p, q))
    losses = [math.log(p / q), math.log((1 - p) / (1 - q))]
    assert log_ratio(pair) == pytest.approx(losses[0 if first.result else 1])
    assert pair.composed.epsilon == pytest.approx(max(map(abs, losses)))


def test_a_chain_of_comparisons_of_one_draw_is_a_choice():
    def chain(table, rng):
        u = rng.random()
        total = 0.0
        for name, p in enumerate(table):
            total += p
            if u < total:
                return name
        return None

    tables = (0.2, 0.3, 0.5), (0.4, 0.3, 0.3)
    pair = pair_of(chain, *tables, PureDP(math.log(2)), seed=5)
    assert pair.outcomes.complete
    found = np.array(sorted(pair.outcomes.masses.values()))
    np.testing.assert_allclose(found, np.transpose(tables))
    assert pair.satisfies


def weights_of(scores):
    return np.exp(np.array(scores) / 2)


@pytest.mark.parametrize(
    "function",
    [
        lambda scores, rng: int(np.argmax(scores + rng.gumbel(scale=2.0, size=3))),
        lambda scores, rng: int(
            rng.choice(3, p=weights_of(scores) / weights_of(scores).sum())
        ),
        lambda scores, rng: int(
            np.searchsorted(
                np.cumsum(weights_of(scores)), rng.random() * weights_of(scores).sum()
            )
        ),
    ],
    ids=["argmax", "choice", "searchsorted"],
)
def test_a_noisy_maximum_is_the_exponential_mechanism(function):
    inputs = np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0])
    pair = pair_of(function, *inputs, PureDP(1.0), seed=3)
    first, second = (weights_of(scores) / weights_of(scores).sum() for scores in inputs)
    assert pair.outcomes.complete
    found = np.array(sorted(pair.outcomes.masses.values()))
    np.testing.assert_allclose(found, sorted(zip(first, second, strict=True)))
    assert pair.level == pytest.approx(np.abs(np.log(first / second)).max())


@pytest.mark.parametrize("sigma", [0.7, 3.0])
def test_discrete_gaussian_noise_loses_no_more_than_gaussian_noise(sigma):
    law = NoiseLaw("discrete Gaussian", 1.0, sigma)
    numbers = range(-60, 61)
    p, q = (np.array([law.log_likelihood(v, k) for k in numbers]) for v in (0, 1))
    assert np.exp(p).sum() == pytest.approx(1.0)
    assert location_loss(law, law, 1.0).squared_mu == pytest.approx(1 / sigma**2)
    for order in (1.5, 8.0):
        renyi = special.logsumexp(order * p + (1 - order) * q) / (order - 1)
        assert renyi <= order / (2 * sigma**2) + 1e-9
    assert location_loss(law, law, 0.5).delta == 1.0


@pytest.mark.parametrize(
    ("family", "law"), [("Laplace", stats.laplace), ("Gaussian", stats.norm)]
)
@pytest.mark.parametrize("move", [0.3, 7.0])
def test_clipped_noise_shows_its_ends(family, law, move):
    """One input gives a mass that the other cannot give, which no smaller δ allows."""
    low = -3.0
    high = 2.0
    scale = 2.0
    clipped = NoiseLaw(f"clipped {family}", scale, (low / scale, high / scale))
    loss = location_loss(clipped, clipped, move)
    cdf = law(scale=scale).cdf
    # Each input alone gives outputs beyond the other interval, and one of the ends.
    first = cdf(low + move) + 1 - cdf(high)
    second = cdf(low) + 1 - cdf(high - move)
    delta = max(first, second) if move < high - low else 1.0
    assert loss.delta == pytest.approx(delta)
    ratio = move / scale
    expected = (ratio, 0.0) if family == "Laplace" else (0.0, ratio**2)
    assert (loss.epsilon, loss.squared_mu) == pytest.approx(expected)


@pytest.mark.parametrize(
    "clip", [lambda z: np.clip(z, -3, 2), lambda z: np.clip(z, -3, None)]
)
def test_clipped_noise_has_no_pure_privacy(clip):
    pair = pair_of(lambda v, rng: v + clip(rng.laplace(size=2)), 3.0, 4.0, PureDP(9.0))
    assert pair.is_bound
    assert certain_kinds(pair) == ["loss"]
