"""The likelihood ratio of a release is that of scipy's densities at the recorded values, and losses are those of laws."""

import math

import numpy as np
import pytest
from scipy import special, stats

from auditdp.claims.statements import PureDP
from auditdp.tracing import Trace, compare
from auditdp.tracing.noise_families import FAMILIES, NoiseLaw, location_loss
from tests.unit.tracing.ratios import log_ratio


def two_sided(p):
    """The difference of two geometric draws."""
    return stats.dlaplace(-math.log1p(-p))


# What code does to a value, and scipy's law of the result.
NOISES = {
    "Laplace": (
        lambda v, rng: v + rng.laplace(scale=2.0),
        lambda v: stats.laplace(v, 2.0),
    ),
    "Laplace in the call": (
        lambda v, rng: rng.laplace(v, 2.0),
        lambda v: stats.laplace(v, 2.0),
    ),
    "Laplace taken away": (
        lambda v, rng: v - rng.laplace(scale=2.0),
        lambda v: stats.laplace(v, 2.0),
    ),
    "scaled before": (
        lambda v, rng: 3 * rng.laplace() + v,
        lambda v: stats.laplace(v, 3.0),
    ),
    "scaled after": (
        lambda v, rng: (v + rng.laplace(scale=4.0)) / 2,
        lambda v: stats.laplace(v, 4.0),
    ),
    "array": (
        lambda v, rng: np.array([v, 1.0]) + rng.laplace(size=2),
        lambda v: stats.laplace([v, 1.0], 1.0),
    ),
    "scales": (
        lambda v, rng: np.full(2, v) + rng.normal(0, [1.0, 3.0]),
        lambda v: stats.norm([v, v], [1.0, 3.0]),
    ),
    "Gaussian": (
        lambda v, rng: v + rng.normal(scale=2.0),
        lambda v: stats.norm(v, 2.0),
    ),
    "standard Gaussian": (
        lambda v, rng: v + 3 * rng.standard_normal(),
        lambda v: stats.norm(v, 3.0),
    ),
    "sum of Gaussians": (
        lambda v, rng: v + (rng.normal(scale=3) + rng.normal(scale=4)),
        lambda v: stats.norm(v, 5.0),
    ),
    "sum of many": (
        lambda v, rng: v + sum(rng.normal(scale=2) for _ in range(4)),
        lambda v: stats.norm(v, 4.0),
    ),
    "sum of an array": (
        lambda v, rng: v + rng.normal(scale=2, size=4).sum(),
        lambda v: stats.norm(v, 4.0),
    ),
    "covariance": (
        lambda v, rng: rng.multivariate_normal([v, 0], np.diag([4.0, 9.0])),
        lambda v: stats.norm([v, 0], [2.0, 3.0]),
    ),
    "logistic": (
        lambda v, rng: v + rng.logistic(scale=2.0),
        lambda v: stats.logistic(v, 2.0),
    ),
    "difference of Gumbels": (
        lambda v, rng: v + (rng.gumbel(scale=2.0) - rng.gumbel(scale=2.0)),
        lambda v: stats.logistic(v, 2.0),
    ),
    "difference of exponentials": (
        lambda v, rng: v + rng.exponential(2.0) - rng.exponential(2.0),
        lambda v: stats.laplace(v, 2.0),
    ),
    "logarithms": (
        lambda v, rng: v + 2.0 * np.log(rng.random()) - 2.0 * np.log(rng.random()),
        lambda v: stats.laplace(v, 2.0),
    ),
    "inverse transform": (
        lambda v, rng: (lambda u: v - 2.0 * np.sign(u) * np.log(1 - 2 * np.abs(u)))(
            rng.random(2) - 0.5
        ),
        lambda v: stats.laplace([v, v], 2.0),
    ),
    "Gumbel": (
        lambda v, rng: v + rng.gumbel(scale=2.0),
        lambda v: stats.gumbel_r(v, 2.0),
    ),
    "Gumbel taken away": (
        lambda v, rng: v - rng.gumbel(scale=2.0),
        lambda v: stats.gumbel_l(v, 2.0),
    ),
    "exponential": (
        lambda v, rng: v + rng.exponential(2.0),
        lambda v: stats.expon(v, 2.0),
    ),
    "uniform": (
        lambda v, rng: v + rng.uniform(-3, 3),
        lambda v: stats.uniform(v - 3, 6),
    ),
    "Poisson": (
        lambda v, rng: v + rng.poisson(4.0, size=2),
        lambda v: stats.poisson(4.0, v),
    ),
    "binomial": (
        lambda v, rng: v + rng.binomial(20, 0.3),
        lambda v: stats.binom(20, 0.3, v),
    ),
    "two geometric": (
        lambda v, rng: v + rng.geometric(0.4) - rng.geometric(0.4),
        lambda v: two_sided(0.4),
    ),
    "two geometric before": (
        lambda v, rng: v + int(rng.geometric(0.4) - rng.geometric(0.4)),
        lambda v: two_sided(0.4),
    ),
    "two int": (
        lambda v, rng: v + (int(rng.geometric(0.4)) - int(rng.geometric(0.4))),
        lambda v: two_sided(0.4),
    ),
    "rows of an array": (
        lambda v, rng: (lambda n: [v + n[0], v + n[1]])(rng.laplace(size=2)),
        lambda v: stats.laplace(v, 1.0),
    ),
    "list of draws": (
        lambda v, rng: np.array([v, v]) + np.array([rng.laplace() for _ in range(2)]),
        lambda v: stats.laplace([v, v], 1.0),
    ),
    "reshaped": (
        lambda v, rng: np.full((2, 2), v) + rng.normal(size=4).reshape(2, 2),
        lambda v: stats.norm(v, 1.0),
    ),
}


@pytest.mark.parametrize("name", NOISES)
def test_the_likelihood_ratio_is_that_of_the_densities_at_the_recorded_values(name):
    function, law = NOISES[name]
    trace = Trace(function)
    for seed, (v, w) in enumerate([(3, 4), (4, 3), (3, 3), (0, 1), (1, 0)]):
        pair = compare(trace, v, w, np.random.default_rng(seed), outcomes=0)
        assert pair.extent == "full", pair.opaque
        assert pair.differ is None
        results = [np.ravel(release.result) for release in pair.first.releases]
        density = [
            getattr(law(x), "logpdf", getattr(law(x), "logpmf", None)) for x in (v, w)
        ]
        if name.startswith("two"):  # scipy's law is around 0
            density = [lambda r, x=x: law(0).logpmf(r - x) for x in (v, w)]
        with np.errstate(all="ignore"):
            one, two = (
                np.sum(
                    [
                        density[k](
                            r.reshape(pair.first.releases[0].shape) if r.size > 1 else r
                        )
                        for r in results
                    ]
                )
                for k in (0, 1)
            )
        if np.isfinite(one - two):
            assert log_ratio(pair) == pytest.approx(one - two, abs=1e-9)
        else:
            assert math.isinf(log_ratio(pair))


@pytest.mark.parametrize(
    ("noise", "b"),
    [
        (lambda rng: round(rng.laplace(scale=2.0)), 2.0),
        (lambda rng: np.round(rng.laplace(scale=0.7)), 0.7),
    ],
)
def test_rounded_laplace_noise_has_the_probabilities_of_its_cells(noise, b):
    recorded = Trace(lambda v, rng: v + noise(rng)).record(5, np.random.default_rng(1))
    release = recorded.releases[0]
    k = release.result - 5
    cell = stats.laplace(scale=b).cdf(k + 0.5) - stats.laplace(scale=b).cdf(k - 0.5)
    assert release.law.log_likelihood(5, release.result) == pytest.approx(
        math.log(cell)
    )
    total = math.fsum(
        math.exp(release.law.log_likelihood(0, j)) for j in range(-200, 201)
    )
    assert total == pytest.approx(1.0)


@pytest.mark.parametrize(
    "family", ["geometric", "two-sided geometric", "integer", "rounded Laplace"]
)
def test_probabilities_of_whole_families_sum_to_one(family):
    parameter = {"integer": 7.0, "rounded Laplace": 1.3}.get(family, 0.3)
    law = NoiseLaw(family, 1.0, parameter)
    assert math.fsum(
        math.exp(law.log_likelihood(0, k)) for k in range(-300, 301)
    ) == pytest.approx(1.0)
    assert law.log_likelihood(0, 0.5) == -math.inf


@pytest.mark.parametrize(
    "family", [name for name, family in FAMILIES.items() if family.distribution]
)
def test_a_distribution_function_is_that_of_the_density(family):
    known, parameter = FAMILIES[family], 5.0
    z = np.linspace(-8, 8, 16001)
    if known.is_whole:
        points = np.arange(-3, 9)
        masses = [
            math.exp(NoiseLaw(family, 1.0, parameter).log_likelihood(0, int(k)))
            for k in points
        ]
        np.testing.assert_allclose(
            known.distribution(points, parameter), np.cumsum(masses)
        )
        return
    with np.errstate(all="ignore"):
        density = np.exp(known.log_density(z, parameter))
    sums = np.cumsum(density) * (z[1] - z[0])
    np.testing.assert_allclose(
        known.distribution(z, parameter)[2000:],
        sums[2000:] + known.distribution(-8.0, parameter),
        atol=2e-3,
    )


@pytest.mark.parametrize(
    ("family", "parameter"),
    [
        ("Laplace", None),
        ("logistic", None),
        ("two-sided geometric", 0.3),
        ("rounded Laplace", 1.5),
    ],
)
def test_a_pure_loss_is_the_supremum_of_the_log_ratio(family, parameter):
    law = NoiseLaw(family, 1.0 if FAMILIES[family].is_whole else 2.0, parameter)
    ratios = [
        abs(law.log_likelihood(0, k) - law.log_likelihood(3, k)) for k in range(-60, 61)
    ]
    loss = location_loss(law, law, 3.0)
    assert loss.epsilon == pytest.approx(max(ratios), rel=1e-6)
    assert not loss.delta


def test_a_gaussian_loss_is_the_distance_over_the_deviation():
    loss = location_loss(
        NoiseLaw("Gaussian", 2.0), NoiseLaw("Gaussian", 2.0), np.array([3.0, 4.0])
    )
    assert loss.squared_mu == pytest.approx((5 / 2) ** 2)


def test_uniform_noise_loses_a_delta_alone():
    loss = location_loss(NoiseLaw("uniform", 10.0), NoiseLaw("uniform", 10.0), 2.0)
    assert loss == (0.0, pytest.approx(0.2), 0.0, None)


@pytest.mark.parametrize("other", [NoiseLaw("Laplace", 3.0), NoiseLaw("Gaussian", 2.0)])
def test_another_scale_or_family_has_no_bound(other):
    assert location_loss(NoiseLaw("Laplace", 2.0), other, 0.0).epsilon == math.inf


def test_a_law_that_is_not_known_has_no_loss_and_no_likelihood():
    assert location_loss(NoiseLaw("poisson"), NoiseLaw("poisson"), 1.0) is None
    assert math.isnan(NoiseLaw("poisson").log_likelihood(0, 1))


TABLES = {
    "coin": (lambda p, rng: bool(rng.random() < p), 0.3, 0.6),
    "coin the other way": (lambda p, rng: bool(rng.random() >= p), 0.3, 0.6),
    "coin of a binomial draw": (lambda p, rng: rng.binomial(1, p), 0.3, 0.6),
    "coin by Laplace noise": (lambda v, rng: bool(rng.laplace() > v), 0.4, -0.2),
    "ticket": (lambda n, rng: int(rng.integers(10)) < n, 3, 6),
}


@pytest.mark.parametrize("name", TABLES)
def test_an_event_has_the_probability_that_its_frequency_shows(name):
    function, v, w = TABLES[name]
    trace = Trace(function)
    with trace:
        for value in (v, w):
            runs = [
                trace.record(value, np.random.default_rng(seed)) for seed in range(260)
            ]
            (p,) = {float(run.releases[0].location) for run in runs}
            # Hoeffding: off by more than .17 with probability 6e-7 at most.
            assert (
                abs(np.mean([bool(run.releases[0].result) for run in runs]) - p) < 0.17
            )
            assert 0 < p < 1
    pair = compare(trace, v, w, np.random.default_rng(0))
    p, q = (
        float(release.location)
        for release in (pair.first.releases[0], pair.second.releases[0])
    )
    happened = bool(pair.first.releases[0].result)
    assert log_ratio(pair) == pytest.approx(
        math.log(p / q) if happened else math.log((1 - p) / (1 - q))
    )
    assert pair.composed.epsilon == pytest.approx(
        max(abs(math.log(p / q)), abs(math.log((1 - p) / (1 - q))))
    )


def test_a_chain_of_comparisons_of_one_draw_is_a_choice():
    def chain(table, rng):
        u, total = rng.random(), 0.0
        for name, p in enumerate(table):
            total += p
            if u < total:
                return name
        return None

    pair = compare(
        Trace(chain),
        (0.2, 0.3, 0.5),
        (0.4, 0.3, 0.3),
        np.random.default_rng(5),
        claim=PureDP(math.log(2)),
    )
    assert pair.outcomes.complete
    assert sorted(pair.outcomes.masses.values()) == [
        pytest.approx(masses) for masses in [(0.2, 0.4), (0.3, 0.3), (0.5, 0.3)]
    ]
    assert pair.satisfies


@pytest.mark.parametrize(
    "function",
    [
        lambda scores, rng: int(
            np.argmax(np.array(scores) + rng.gumbel(scale=2.0, size=3))
        ),
        lambda scores, rng: max(
            range(3), key=lambda k: scores[k] + rng.gumbel(scale=2.0)
        ),
        lambda scores, rng: int(
            rng.choice(
                3, p=np.exp(np.array(scores) / 2) / np.exp(np.array(scores) / 2).sum()
            )
        ),
        lambda scores, rng: int(
            np.searchsorted(
                np.cumsum(np.exp(np.array(scores) / 2)),
                rng.random() * np.exp(np.array(scores) / 2).sum(),
            )
        ),
    ],
)
def test_a_noisy_maximum_is_the_exponential_mechanism(function):
    scores, others = (3.0, 1.0, 2.0), (1.0, 1.0, 2.0)
    pair = compare(
        Trace(function), scores, others, np.random.default_rng(3), claim=PureDP(1.0)
    )
    softmax = [
        np.exp(np.array(s) / 2) / np.exp(np.array(s) / 2).sum()
        for s in (scores, others)
    ]
    assert pair.outcomes.complete
    found = sorted(pair.outcomes.masses.values())
    assert found == [
        pytest.approx(masses) for masses in sorted(zip(*softmax, strict=True))
    ]
    assert pair.level == pytest.approx(np.abs(np.log(softmax[0] / softmax[1])).max())


@pytest.mark.parametrize("sigma", [0.7, 1.0, 3.0])
def test_discrete_gaussian_noise_sums_to_one_and_loses_no_more_than_gaussian_noise(
    sigma,
):
    law, numbers = NoiseLaw("discrete Gaussian", 1.0, sigma), range(-60, 61)
    p, q = (np.array([law.log_likelihood(v, k) for k in numbers]) for v in (0, 1))
    assert np.exp(p).sum() == pytest.approx(1.0)
    assert location_loss(law, law, 1.0).squared_mu == pytest.approx(1 / sigma**2)
    for order in (1.5, 2.0, 8.0):
        renyi = special.logsumexp(order * p + (1 - order) * q) / (order - 1)
        assert renyi <= order / (2 * sigma**2) + 1e-9
    assert location_loss(law, law, 0.5).delta == 1.0


@pytest.mark.parametrize(
    ("family", "law"), [("Laplace", stats.laplace), ("Gaussian", stats.norm)]
)
@pytest.mark.parametrize("move", [0.3, 1.0, 7.0])
def test_clipped_noise_shows_its_ends(family, law, move):
    """On the one side of the pair a mass that the other cannot give, which no δ below it allows."""
    low, high, scale = -3.0, 2.0, 2.0
    clipped = NoiseLaw(f"clipped {family}", scale, (low / scale, high / scale))
    loss = location_loss(clipped, clipped, move)
    cdf = law(scale=scale).cdf
    if move > high - low:
        assert loss.delta == 1.0
    else:
        first = (
            cdf(low + move) + 1 - cdf(high)
        )  # below the other interval, and its own upper end
        second = cdf(low) + 1 - cdf(high - move)
        assert loss.delta == pytest.approx(max(first, second))
    assert (loss.epsilon, loss.squared_mu) == (
        pytest.approx(move / scale if family == "Laplace" else 0.0),
        pytest.approx((move / scale) ** 2 if family == "Gaussian" else 0.0),
    )


@pytest.mark.parametrize(
    "clip",
    [
        lambda noise: np.clip(noise, -3, 2),
        lambda noise: noise.clip(-3, 2),
        lambda noise: np.clip(noise, -3, None),
    ],
)
def test_clipped_noise_is_read_off_as_no_pure_privacy(clip):
    pair = compare(
        Trace(lambda v, rng: v + clip(rng.laplace(size=2))),
        3.0,
        4.0,
        np.random.default_rng(0),
        claim=PureDP(9.0),
    )
    assert pair.is_bound
    assert [finding.kind for finding in pair.findings if finding.is_read_off] == [
        "loss"
    ]


def test_a_move_under_noise_whose_loss_is_no_statement_bounds_nothing():
    pair = compare(
        Trace(lambda v, rng: v + rng.poisson(4.0)),
        3,
        4,
        np.random.default_rng(0),
        claim=PureDP(9.0),
    )
    assert pair.extent == "full"
    assert not pair.is_bound
    assert not pair.proposes
    assert np.isfinite(log_ratio(pair)) or log_ratio(pair) == np.inf
