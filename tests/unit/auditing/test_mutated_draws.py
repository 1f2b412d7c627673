"""Mutants of draws: what each operator does to the numbers that a mechanism draws, on the same stream."""

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


def drawing(method, *arguments, **named):
    """A mechanism that returns one kind of draw."""

    def mechanism(data, size, *, rng):
        draw = getattr(rng, method)
        if named:
            return draw(*arguments, size=size, **named)
        return draw(*arguments, size)

    return mechanism


def half_from_three(x):
    return 3 + (x - 3) / 2


def squared_odds(u):
    return 1 / (1 + np.sqrt(1 / u - 1))


HALVED = [
    (drawing("laplace", 3.0, 2.0), half_from_three),
    (drawing("normal", scale=2.0, loc=3.0), half_from_three),
    (lambda d, size, *, rng: d + rng.logistic(size=size), half_from_three),
    (drawing("standard_normal"), lambda x: x / 2),
    (drawing("exponential", 4.0), lambda x: x / 2),
    (drawing("geometric", 0.2), lambda x: (x + 1) // 2),
    (drawing("random"), squared_odds),
    (drawing("uniform", 2, 6), lambda x: 2 + 4 * squared_odds((x - 2) / 4)),
]


@pytest.mark.parametrize(("mechanism", "half"), HALVED)
def test_halved_noise_is_half_as_far_from_its_location(mechanism, half):
    outputs = spoiled(mechanism, "noise halved")
    np.testing.assert_allclose(outputs, half(original(mechanism)), rtol=1e-12)


LEFT_OUT = [
    (drawing("laplace", 3.0, 2.0), 3.0),
    (drawing("standard_normal"), 0.0),
    (drawing("random"), 0.5),
    (drawing("uniform", 2, 6), 4.0),
    (drawing("geometric", 0.2), 1),
    (drawing("binomial", 10, 0.33), 3),
    (drawing("integers", 2, 9), 2),
    (drawing("integers", 9, endpoint=False), 0),
    (lambda d, size, *, rng: np.frombuffer(rng.bytes(size), np.uint8), 0),
    (drawing("choice", [4, 5, 6], p=[0.2, 0.5, 0.3]), 5),
]


@pytest.mark.parametrize(("mechanism", "constant"), LEFT_OUT)
def test_noise_that_is_left_out_is_constant(mechanism, constant):
    assert len(set(original(mechanism).tolist())) > 1
    assert spoiled(mechanism, "noise left out").tolist() == [constant] * SIZE


def test_an_order_that_is_left_out_is_the_given_one():
    def shuffled(data, size, *, rng):
        rows = []
        for _ in range(size):
            row = [1, 2, 3, 4]
            rng.shuffle(row)
            rows.append([*row, *rng.permutation(4), *rng.permutation([7, 8, 9])])
        return np.array(rows)

    given = [1, 2, 3, 4, 0, 1, 2, 3, 7, 8, 9]
    for number, columns in ((1, slice(4)), (2, slice(4, 8)), (3, slice(8, 11))):
        outputs = spoiled(shuffled, "noise left out", number)
        assert (outputs[:, columns] == given[columns]).all()


def test_a_choice_is_sharpened_to_squared_probabilities():
    squared = np.array([0.04, 0.25, 0.09]) / 0.38
    expected = original(drawing("choice", 3, p=squared))
    outputs = spoiled(drawing("choice", 3, p=[0.2, 0.5, 0.3]), "noise halved")
    assert outputs.tolist() == expected.tolist()


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

    first, second, third = spoiled(three, "noise reused", 2).T
    assert (first == second).all()
    assert not np.isin(third, first).any()


def test_all_passes_of_a_loop_are_one_site_and_reuse_its_first_noise():
    def loop(data, size, *, rng):
        return np.stack([rng.normal(size=size) for _ in range(4)], axis=1)

    (site,) = sites(loop, [0])
    assert (site.method, site.number) == ("normal", 1)
    outputs = spoiled(loop, "noise reused")
    assert (outputs == outputs[:, :1]).all()


def test_two_draws_on_one_line_are_two_sites():
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


def test_a_function_of_one_run_is_mutated_run_by_run():
    def one(data, rng):
        return [data + rng.laplace(), data + rng.laplace(), *rng.normal(size=2)]

    assert [site.method for site in sites(one, [3.0])] == ["laplace"] * 2 + ["normal"]
    reused = np.array(spoiled(one, "noise reused", 2))
    equal = np.array(spoiled(one, "one noise for all coordinates", 3))
    for first, second in (reused.T[:2], equal.T[2:]):
        assert (first == second).all()
        assert len(np.unique(first)) == SIZE


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
        parts = [rng.random(size), rng.integers(5, size=size), rng.choice(7, size)]
        parts += [child.normal(size=size), rng.permuted(np.arange(size))]
        return np.stack(parts, axis=1)

    methods = []

    def watch(draw):
        methods.append(draw.method)
        return draw.as_is()

    rng = np.random.default_rng(7)
    watched = watched_call(all_kinds, 0, SIZE, rng, watch)
    assert (watched == original(all_kinds)).all()
    assert methods == ["random", "integers", "choice", "normal", "permuted"]


def test_every_method_that_draws_is_watched():
    drawing_methods = {"laplace", "standard_normal", "random", "choice", "shuffle"}
    assert drawing_methods | {"multivariate_hypergeometric"} <= set(METHODS)
    assert "bit_generator" not in METHODS
    rng = np.random.default_rng(0)
    assert isinstance(Watched(rng, lambda d: d.as_is(), 1), np.random.Generator)


def test_every_operator_of_a_site_is_known():
    for site in sites(two_noises, [0.0]):
        assert set(site.operators) <= set(FAULTS)


def test_a_draw_is_the_same_site_however_often_the_code_has_run():
    """Python specialises code that has run, which moves its instructions."""

    def draw(rng):
        return rng.random()

    def summed(data, size, *, rng):
        return np.array([data + sum(map(draw, [rng, rng])) for _ in range(size)])

    first = sites(summed, [0.0])
    for _ in range(100):
        original(summed)
    assert sites(summed, [0.0]) == first
    assert len(first) == 1
