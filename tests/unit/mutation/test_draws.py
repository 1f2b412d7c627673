"""Mutants of draws: what each operator does to the numbers that a mechanism draws, on the same stream."""

from __future__ import annotations

import numpy as np
import pytest

from auditdp.auditing.mutated_draws import FAULTS, Seeded, Spoiled, sites
from auditdp.auditing.watched_draws import METHODS, Watched, watched_call

SIZE = 5


def spoiled(mechanism, operator, number=1):
    """The outputs of a mechanism with an operator at one of its sites, for input 3."""
    (site,) = [site for site in sites(mechanism, [3.0]) if site.number == number]
    assert operator in site.operators, site
    return Spoiled(mechanism, site, operator)(3.0, SIZE, rng=np.random.default_rng(7))


def original(mechanism):
    return mechanism(3.0, SIZE, rng=np.random.default_rng(7))


# Each function draws once; the last entry says what half of its noise is, given what it draws.
HALVED = {
    "laplace": (
        lambda d, size, *, rng: rng.laplace(d, 2.0, size),
        lambda x: 3 + (x - 3) / 2,
    ),
    "normal": (
        lambda d, size, *, rng: rng.normal(scale=2.0, loc=d, size=size),
        lambda x: 3 + (x - 3) / 2,
    ),
    "logistic": (
        lambda d, size, *, rng: d + rng.logistic(size=size),
        lambda x: 3 + (x - 3) / 2,
    ),
    "standard_normal": (
        lambda d, size, *, rng: rng.standard_normal(size),
        lambda x: x / 2,
    ),
    "exponential": (
        lambda d, size, *, rng: rng.exponential(4.0, size),
        lambda x: x / 2,
    ),
    "geometric": (
        lambda d, size, *, rng: rng.geometric(0.2, size),
        lambda x: (x + 1) // 2,
    ),
    "random": (
        lambda d, size, *, rng: rng.random(size),
        lambda u: 1 / (1 + np.sqrt(1 / u - 1)),
    ),
    "uniform": (
        lambda d, size, *, rng: rng.uniform(2, 6, size),
        lambda x: 2 + 4 / (1 + np.sqrt((6 - x) / (x - 2))),
    ),
}


@pytest.mark.parametrize("method", HALVED)
def test_halved_noise_is_half_as_far_from_its_location(method):
    mechanism, half = HALVED[method]
    np.testing.assert_allclose(
        spoiled(mechanism, "noise halved"), half(original(mechanism)), rtol=1e-12
    )
    assert sites(mechanism, [3.0])[0].method == method


LEFT_OUT = {
    "laplace": (lambda d, size, *, rng: rng.laplace(d, 2.0, size), 3.0),
    "standard_normal": (lambda d, size, *, rng: rng.standard_normal(size), 0.0),
    "random": (lambda d, size, *, rng: rng.random(size), 0.5),
    "uniform": (lambda d, size, *, rng: rng.uniform(2, 6, size), 4.0),
    "geometric": (lambda d, size, *, rng: rng.geometric(0.2, size), 1),
    "binomial": (lambda d, size, *, rng: rng.binomial(10, 0.33, size), 3),
    "integers": (lambda d, size, *, rng: rng.integers(2, 9, size), 2),
    "integers from 0": (lambda d, size, *, rng: rng.integers(9, size=size), 0),
    "bytes": (lambda d, size, *, rng: np.frombuffer(rng.bytes(size), np.uint8), 0),
    "choice": (
        lambda d, size, *, rng: rng.choice([4, 5, 6], size, p=[0.2, 0.5, 0.3]),
        5,
    ),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_noise_that_is_left_out_is_constant(case):
    mechanism, constant = LEFT_OUT[case]
    assert len(set(original(mechanism).tolist())) > 1
    assert spoiled(mechanism, "noise left out").tolist() == [constant] * SIZE


def test_an_order_that_is_left_out_is_the_one_that_was_given():
    def shuffled(data, size, *, rng):
        rows = []
        for _ in range(size):
            row = [1, 2, 3, 4]
            rng.shuffle(row)
            rows.append([*row, *rng.permutation(4), *rng.permutation([7, 8, 9])])
        return np.array(rows)

    assert (spoiled(shuffled, "noise left out", 1)[:, :4] == [1, 2, 3, 4]).all()
    assert (spoiled(shuffled, "noise left out", 2)[:, 4:8] == [0, 1, 2, 3]).all()
    assert (spoiled(shuffled, "noise left out", 3)[:, 8:] == [7, 8, 9]).all()


def test_a_choice_is_sharpened_to_squared_probabilities():
    def chosen(p):
        return lambda d, size, *, rng: rng.choice(3, size, p=p)

    squared = np.array([0.2, 0.5, 0.3]) ** 2
    expected = original(chosen(squared / squared.sum()))
    assert (
        spoiled(chosen([0.2, 0.5, 0.3]), "noise halved").tolist() == expected.tolist()
    )


def test_a_uniform_choice_has_no_odds_to_square():
    def sample(data, size, *, rng):
        return np.stack([rng.choice(5, 2, replace=False) for _ in range(size)])

    (site,) = sites(sample, [0])
    assert "noise halved" not in site.operators
    assert (spoiled(sample, "noise left out") == [0, 1]).all()


def test_an_array_that_the_caller_gave_is_spoiled_in_place():
    def filled(data, size, *, rng):
        buffer = np.empty(size)
        rng.standard_normal(out=buffer)
        return buffer

    np.testing.assert_allclose(spoiled(filled, "noise halved"), original(filled) / 2)


def two_noises(data, size, *, rng):
    return np.stack(
        [
            data + rng.laplace(scale=1.0, size=size),
            2 * data + rng.laplace(scale=3.0, size=size),
        ],
        axis=1,
    )


def test_reused_noise_is_the_first_one_in_its_own_scale():
    assert "noise reused" not in sites(two_noises, [3.0])[0].operators
    outputs = spoiled(two_noises, "noise reused", 2)
    np.testing.assert_allclose(outputs[:, 1] - 6, 3 * (outputs[:, 0] - 3))
    assert (outputs[:, 0] == original(two_noises)[:, 0]).all()


def test_noise_after_a_reused_one_is_fresh():
    def three(data, size, *, rng):
        return np.stack([rng.random(size), rng.random(size), rng.random(size)], axis=1)

    outputs = spoiled(three, "noise reused", 2)
    assert (outputs[:, 0] == outputs[:, 1]).all()
    assert not np.isin(outputs[:, 2], outputs[:, 0]).any()


def test_all_passes_of_a_loop_are_one_site_and_reuse_its_first_noise():
    def loop(data, size, *, rng):
        return np.stack([rng.normal(size=size) for _ in range(4)], axis=1)

    (site,) = sites(loop, [0])
    assert (site.method, site.number) == ("normal", 1)
    outputs = spoiled(loop, "noise reused")
    assert (outputs == outputs[:, :1]).all()
    assert (spoiled(loop, "noise left out") == 0).all()


def test_sites_on_one_line_are_told_apart():
    def difference(data, size, *, rng):
        return rng.exponential(size=size) - rng.exponential(size=size)

    assert [site.number for site in sites(difference, [0])] == [1, 2]
    assert (spoiled(difference, "noise left out", 1) <= 0).all()
    assert (spoiled(difference, "noise left out", 2) >= 0).all()


def test_one_noise_for_all_coordinates_keeps_locations_and_runs_apart():
    location = np.array([1.0, 10.0, 100.0])

    def vector(data, size, *, rng):
        return rng.normal(location, 1.0, (size, 3))

    noise = spoiled(vector, "one noise for all coordinates") - location
    np.testing.assert_allclose(
        noise, np.broadcast_to(noise[:, :1], noise.shape), atol=1e-12
    )
    assert len(np.unique(noise[:, 0])) == SIZE
    np.testing.assert_allclose(noise[:, 0], (original(vector) - location)[:, 0])


def test_a_function_of_one_run_is_spoiled_run_by_run():
    def one(data, rng):
        return [data + rng.laplace(), data + rng.laplace(), *rng.normal(size=2)]

    found = sites(one, [3.0])
    assert [(site.number, site.method) for site in found] == [
        (1, "laplace"),
        (2, "laplace"),
        (3, "normal"),
    ]
    outputs = np.array(spoiled(one, "noise reused", 2))
    assert (outputs[:, 0] == outputs[:, 1]).all()
    assert len(np.unique(outputs[:, 0])) == SIZE
    outputs = np.array(spoiled(one, "one noise for all coordinates", 3))
    assert (outputs[:, 2] == outputs[:, 3]).all()
    assert len(np.unique(outputs[:, 2])) == SIZE


def test_a_fixed_seed_makes_every_run_the_same():
    for mechanism in (two_noises, lambda data, rng: [data + rng.laplace()]):
        outputs = [
            Seeded(mechanism)(3.0, SIZE, rng=np.random.default_rng(seed))
            for seed in (1, 2)
        ]
        assert (outputs[0] == outputs[1]).all()
        assert (outputs[0] == outputs[0][0]).all()
        assert len(outputs[0]) == SIZE


def test_watching_changes_nothing():
    def all_kinds(data, size, *, rng):
        (child,) = rng.spawn(1)
        parts = [
            rng.random(size),
            rng.integers(5, size=size),
            rng.choice(7, size),
            child.normal(size=size),
        ]
        return np.stack([*parts, rng.permuted(np.arange(size))], axis=1)

    plain = all_kinds(0, SIZE, rng=np.random.default_rng(7))
    seen = []
    watched = watched_call(
        all_kinds,
        0,
        SIZE,
        np.random.default_rng(7),
        lambda d: (seen.append(d.method), d.as_is())[1],
    )
    assert (watched == plain).all()
    assert seen == ["random", "integers", "choice", "normal", "permuted"]


def test_every_method_that_draws_is_watched():
    assert {
        "laplace",
        "standard_normal",
        "random",
        "choice",
        "multivariate_hypergeometric",
        "shuffle",
    } <= set(METHODS)
    assert "bit_generator" not in METHODS
    assert isinstance(
        Watched(np.random.default_rng(0), lambda d: d.as_is(), 1), np.random.Generator
    )


def test_every_operator_of_a_site_is_known():
    assert {
        operator for site in sites(two_noises, [0.0]) for operator in site.operators
    } <= set(FAULTS)


def test_a_draw_is_the_same_place_however_often_the_code_has_run():
    def draw(rng):
        return rng.random()

    def summed(data, size, *, rng):
        return np.array([data + sum(map(draw, [rng, rng])) for _ in range(size)])

    first = sites(summed, [0.0])
    for _ in range(100):
        summed(0.0, SIZE, rng=np.random.default_rng(0))
    assert sites(summed, [0.0]) == first
    assert len(first) == 1
