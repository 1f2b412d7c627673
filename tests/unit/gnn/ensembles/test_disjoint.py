"""Canaries on a graph, whose receptive fields are disjoint."""

import numpy as np
import pytest

from auditdp.errors import ConfigurationError
from gnn.ensembles.disjoint import ScoredStars, Stars, trainer_of
from gnn.ensembles.released import NoisedSums
from gnn.training import PrivateSettings


def settings(**options):
    given = {
        "steps": 2,
        "noise_multiplier": 1.0,
        "clipping_norm": 1.0,
        "batch": 4.0,
        "rate": 1.0,
        "learning_rate": 1e-6,
    }
    return PrivateSettings(**given | options, optimiser="sgd")


def sum_of(trainer, stars, included):
    return NoisedSums(trainer, world=stars.world).query(
        np.array(included), np.random.default_rng(0)
    )


def test_every_canary_adds_a_gradient_of_norm_one_that_is_orthogonal_to_the_others():
    stars = Stars(4)
    trainer = trainer_of(stars, settings())
    single = np.stack(
        [sum_of(trainer, stars, np.eye(4, dtype=bool)[k]) for k in range(4)]
    )
    assert np.allclose(single @ single.T, np.eye(4), atol=1e-6)
    together = sum_of(trainer, stars, [True, False, True, True])
    assert np.allclose(together, single[[0, 2, 3]].sum(axis=0), atol=1e-9)


def test_without_noise_the_scores_tell_every_coin():
    stars = Stars(6, leaves=1)
    trainer = trainer_of(stars, settings(noise_multiplier=1e-9, batch=6.0))
    included = np.array([True, False, False, True, True, False])
    scores = ScoredStars(trainer, stars)(included, 3, rng=np.random.default_rng(0))
    assert scores.shape == (3, 6)
    assert np.allclose(scores, 2 * np.sqrt(2) * included, atol=1e-4)


def test_batches_have_to_be_full():
    stars = Stars(4)
    with pytest.raises(ConfigurationError, match=r"rate=0\.5"):
        ScoredStars(trainer_of(stars, settings(rate=0.5, batch=2.0)), stars)
