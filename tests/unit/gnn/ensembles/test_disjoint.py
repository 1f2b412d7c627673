"""Canaries on a graph, whose receptive fields are disjoint."""

import numpy as np
from numpy.testing import assert_allclose

from gnn.ensembles.disjoint import ScoredStars, Stars, trainer_of
from gnn.ensembles.released import NoisedSums
from gnn.training import PrivateSettings
from tests.unit.gnn.draws import rng


def stars_and_trainer(count, **options):
    stars = Stars(count, leaves=1) if count == 6 else Stars(count)
    given = {
        "steps": 2,
        "noise_multiplier": 1.0,
        "clipping_norm": 1.0,
        "batch": float(count),
        "rate": 1.0,
        "learning_rate": 1e-6,
        "optimiser": "sgd",
    }
    return stars, trainer_of(stars, PrivateSettings(**given | options))


def test_canaries_add_orthogonal_gradients_of_norm_1():
    stars, trainer = stars_and_trainer(4)
    mechanism = NoisedSums(trainer, world=stars.world)
    alone = np.eye(4, dtype=bool)
    single = np.stack([mechanism.query(row, rng()) for row in alone])

    assert_allclose(single @ single.T, np.eye(4), atol=1e-6)

    together = mechanism.query(np.array([True, False, True, True]), rng())
    assert_allclose(together, single[[0, 2, 3]].sum(axis=0), atol=1e-9)


def test_scores_without_noise_are_the_coins():
    stars, trainer = stars_and_trainer(6, noise_multiplier=1e-9)
    included = np.array([True, False, False, True, True, False])
    scores = ScoredStars(trainer, stars)(included, 3, rng=rng())
    expected = np.tile(2 * np.sqrt(2) * included, (3, 1))

    assert_allclose(scores, expected, atol=1e-4)
