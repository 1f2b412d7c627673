"""The law of released outputs by hand; correct and broken trainers in the game."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.stats import norm
from torch.nn import functional

from auditdp import AccountedDP, GaussianDP, Nodes, Pair
from auditdp.accountants import PLDUpper
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.forecaster import LikelihoodRatio, Scored
from auditdp.betting.game import Game
from auditdp.errors import ConfigurationError
from auditdp.evidence.sensitivity import sensitivity_evidence
from auditdp.numerics.streams import stream
from auditdp.record.results import Verdict
from gnn.ensembles import (
    FinalModel,
    NoisedSums,
    SumsAlone,
    Trainer,
    World,
    batch_twins,
    gradient_canary,
    in_order,
    over_own_size,
    standardised,
    twins,
)
from gnn.ensembles.example import (
    EXAMPLES,
    WEIGHTS,
    canary_pair,
    full_batch,
    linear_trainer,
    opposed_pair,
    outlier_pair,
    trainer,
)
from gnn.ensembles.graphs import GraphWorlds, node_loss
from gnn.models import GCN
from gnn.training import PrivateSettings
from tests.unit.gnn.draws import generator, rng, zeroed

parametrize = pytest.mark.parametrize

pytestmark = pytest.mark.dear

ALPHA = 1e-6
FULL = full_batch(1.0, 2)


def with_settings(**changed):
    return replace(FULL, settings=replace(FULL.settings, **changed))


def change(mechanism, pair):
    """The norm of the change of the query."""
    both = [mechanism.query(data, rng()) for data in (pair.data, pair.neighbour)]
    return np.linalg.norm(both[0] - both[1])


# Laws


def gradients_by_hand(weights, world):
    """The clipped gradient of each example of the linear classifier."""
    matrix, bias = weights[:8].reshape(2, 4), weights[8:]
    rows, targets = world.inputs
    residuals = (rows @ matrix.t() + bias).softmax(dim=1)
    residuals -= functional.one_hot(targets, 2)
    products = residuals[:, :, None] * rows[:, None]
    gradients = torch.cat([products.flatten(1), residuals], dim=1)
    return gradients / gradients.norm(dim=1, keepdim=True).clamp(min=1)


@parametrize(
    ("rate", "canary"),
    [
        (1.0, 0.6),
        (1.0, 10.0),
        (0.3, 0.6),
        (0.3, 10.0),
    ],
)
def test_log_prob_is_the_density_of_every_step(rate, canary):
    """Gaussians around sums by hand; the canary has a coin and is clipped to norm 1."""
    made = trainer(noise_multiplier=1.3, rate=rate, steps=3)
    pair, mechanism = canary_pair(3, norm=canary), NoisedSums(made)
    outputs = mechanism(pair.data, 4, rng=rng())
    size = min(canary, 1) / WEIGHTS**0.5
    expected = np.zeros(4)
    for number, output in enumerate(outputs):
        weights = torch.zeros(WEIGHTS, dtype=torch.float64)
        for step, sign in enumerate((1, -1, 1)):
            released, coins = output[step, :WEIGHTS], output[step, WEIGHTS:] > 0
            gradients = gradients_by_hand(weights, pair.neighbour).numpy()
            total = (gradients[coins] if rate < 1 else gradients).sum(axis=0)
            without = norm.logpdf(released, total, 1.3).sum()
            beside = norm.logpdf(released, total + sign * size, 1.3).sum()
            ratio = 1 - rate + rate * np.exp(beside - without)
            expected[number] += np.log(ratio)
            weights = weights - 0.1 * torch.from_numpy(released) / made.settings.batch

    logs = [mechanism.log_prob(outputs, data) for data in (pair.data, pair.neighbour)]
    assert_allclose(logs[0] - logs[1], expected, rtol=1e-9, atol=1e-9)
    assert_allclose(mechanism.score(outputs, pair), expected, rtol=1e-9, atol=1e-9)


def test_the_final_model_follows_from_the_sums():
    """Weights are minus the learning rate times mean sums of the same training."""
    made, data = full_batch(1.0, 3), canary_pair(3).data
    sums = NoisedSums(made)(data, 5, rng=rng(1))
    weights = FinalModel(made)(data, 5, rng=rng(1))
    expected = -0.1 * sums.sum(axis=1) / EXAMPLES

    assert_allclose(weights, expected, rtol=1e-12, atol=1e-12)


def test_the_score_of_sums_alone_is_the_likelihood_ratio_without_other_gradients():
    """A mixture in each step, by hand."""
    made = linear_trainer(noise_multiplier=0.8, batch=1, rate=0.3, steps=3)
    canary = gradient_canary(4, 3, norm=1.0)
    inputs = torch.zeros(2, 4).double(), torch.zeros(2).long()
    pair = Pair(World(inputs, canary=canary), World(inputs), "canary")
    outputs = rng().standard_normal((5, 3, 4))
    beside = norm.logpdf(outputs, canary.numpy(), 0.8)
    ratio = (beside - norm.logpdf(outputs, 0, 0.8)).sum(axis=2)
    expected = np.log(0.7 + 0.3 * np.exp(ratio)).sum(axis=1)
    score = SumsAlone(made).score(outputs, pair)

    assert_allclose(score, expected, rtol=1e-9)


# Games


def is_refuted(mechanism, claim, pair, forecasters, calls, seed=0):
    """True if the claim is refuted within a number of trainings, at α = 1e-6."""
    game = Game(mechanism, claim, [pair], forecasters, partial(stream, seed))
    game.play(calls, alpha=ALPHA, stop_when_refuted=True)
    return game.refuted_at is not None


BOTH = [LikelihoodRatio(), Scored()]
CANARY = canary_pair(2, norm=10.0)
EPOCH = linear_trainer(noise_multiplier=0.6, batch=8, rate=0.25, steps=4)
EPOCH_GAME = AccountedDP(PLDUpper(0.6, 0.25, 4)), opposed_pair(31, 4), [Scored()], 3_000
LAST = replace(
    linear_trainer(noise_multiplier=1.0, batch=4, rate=0.5, steps=4), batches=in_order
)
LAST_GAME = GaussianDP(2**0.5), opposed_pair(4, 4), [Scored()], 300
ONE = GaussianDP(1.0)
CORRECT = {
    "outlier": (NoisedSums(FULL), ONE, outlier_pair(), BOTH, 300),
    "last batch": (SumsAlone(LAST), *LAST_GAME),
    "sums": (NoisedSums(FULL), ONE, CANARY, BOTH, 600),
    "model": (FinalModel(FULL), ONE, CANARY, [ViewExperts()], 600),
    "Poisson batches": (SumsAlone(EPOCH), *EPOCH_GAME),
}
BROKEN = {}
for name, twin in twins(FULL).items():
    BROKEN[name] = NoisedSums(twin), ONE, CANARY, BOTH, 1_500
for name, twin in batch_twins(EPOCH).items():
    BROKEN[name] = SumsAlone(twin), *EPOCH_GAME

BROKEN |= {
    "last batch over its own size": (
        SumsAlone(replace(LAST, finish=over_own_size)),
        *LAST_GAME,
    ),
    "standardised by private data": (
        NoisedSums(replace(FULL, prepare=standardised)),
        ONE,
        outlier_pair(),
        BOTH,
        300,
    ),
}


@pytest.mark.statistical
@parametrize("name", CORRECT)
def test_correct_trainers_are_not_refuted(name):
    """The claims hold exactly; each game has α = 1e-6."""
    for seed in range(2):
        assert not is_refuted(*CORRECT[name], seed=seed)


@pytest.mark.statistical
@parametrize("name", BROKEN)
def test_broken_trainers_are_refuted(name):
    assert is_refuted(*BROKEN[name])


def test_an_outlier_changes_the_standardised_features_of_all():
    standard = NoisedSums(replace(FULL, prepare=standardised))
    assert NoisedSums(FULL).sensitivity == 1.0
    assert change(NoisedSums(FULL), outlier_pair()) == pytest.approx(1.0)
    assert change(standard, outlier_pair()) > 3.5


# Graphs


def graph_sums(nodes, reach):
    """A layer of GCN at zero weights, where the last node has the opposite sign."""
    model = GCN(1, 2, layers=1, dropout=0.0, generator=generator()).double()
    settings = PrivateSettings(
        steps=1,
        noise_multiplier=1.0,
        clipping_norm=1.0,
        batch=float(nodes),
        rate=1.0,
        optimiser="sgd",
    )
    x = torch.full((nodes, 1), 1e7, dtype=torch.float64)
    x[-1] *= -5
    world = GraphWorlds(x, torch.zeros(nodes, dtype=torch.long))
    made = Trainer(zeroed(model), node_loss, settings)
    return NoisedSums(made, world=world, reach=reach)


@parametrize(
    ("nodes", "reach", "verdict"),
    [
        (1, 1.0, Verdict.NOT_REFUTED),
        (2, 1.0, Verdict.MISCALIBRATED),
        (2, 3.0, Verdict.NOT_REFUTED),
        (3, 1.0, Verdict.MISCALIBRATED),
        (3, 5.0, Verdict.NOT_REFUTED),
    ],
)
def test_a_node_changes_the_gradients_of_its_neighbours(nodes, reach, verdict):
    """All graphs: by C for the node itself, and 2C for each of the others."""
    adjacency = Nodes(nodes, "removed", loops=True)
    mechanism = graph_sums(nodes, reach)
    evidence = sensitivity_evidence(mechanism, adjacency, streams=partial(stream, 0))

    assert evidence.verdict is verdict

    found = evidence.details.largest_difference
    assert found == pytest.approx(2 * nodes - 1, rel=1e-6)
    assert evidence.details.exhaustive


# Refusals


def hidden_batches():
    mechanism = NoisedSums(trainer(noise_multiplier=1.0, rate=0.5, steps=2))
    mechanism(replace(CANARY.data, common=False), 3, rng=rng())


@parametrize(
    ("call", "message"),
    [
        (lambda: NoisedSums(with_settings(rate=None)), "rate=None; use FinalModel"),
        (lambda: SumsAlone(with_settings(noise_multiplier=0.0)), "use FinalModel"),
        (hidden_batches, r"does not say.*common=True"),
    ],
)
def test_releases_without_a_law_are_refused(call, message):
    with pytest.raises(ConfigurationError, match=message):
        call()
