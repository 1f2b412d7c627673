"""The law of what trainers release, against densities by hand; correct trainers, twins and graphs in the game."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
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
from gnn.validation import DataError

pytestmark = pytest.mark.dear

ALPHA = 1e-6


def gradients_by_hand(weights, world):
    """The clipped gradient of each example of the linear classifier, at weights as one row."""
    matrix, bias = weights[:8].reshape(2, 4), weights[8:]
    found = []
    for row, target in zip(*world.inputs, strict=True):
        residual = (matrix @ row + bias).softmax(dim=0) - functional.one_hot(target, 2)
        gradient = torch.cat([torch.outer(residual, row).reshape(-1), residual])
        found.append(gradient * min(1.0, 1 / float(gradient.norm())))
    return torch.stack(found)


@pytest.mark.parametrize(
    ("rate", "canary"), [(1.0, 0.6), (1.0, 10.0), (0.3, 0.6), (0.3, 10.0)]
)
def test_log_prob_is_the_density_of_every_step(rate, canary):
    """Up to a constant: Gaussians around sums by hand, with the canary's coin summed over; it is clipped to norm 1."""
    made = trainer(noise_multiplier=1.3, rate=rate, steps=3)
    pair, mechanism = canary_pair(3, norm=canary), NoisedSums(made)
    outputs = mechanism(pair.data, 4, rng=np.random.default_rng(0))
    assert outputs.shape == (4, 3, WEIGHTS + EXAMPLES * (rate < 1))
    direction = np.array([1, -1, 1])[:, None] * np.full(
        WEIGHTS, min(canary, 1) / WEIGHTS**0.5
    )
    expected = []
    for output in outputs:
        weights, logs = torch.zeros(WEIGHTS, dtype=torch.float64), np.zeros(2)
        for step in range(3):
            taken = (
                torch.from_numpy(output[step, WEIGHTS:] > 0)
                if rate < 1
                else torch.ones(EXAMPLES, dtype=torch.bool)
            )
            total = gradients_by_hand(weights, pair.neighbour)[taken].sum(dim=0).numpy()
            seen = output[step, :WEIGHTS]
            without, beside = (
                norm.logpdf(seen, total + shift, 1.3).sum()
                for shift in (0, direction[step])
            )
            logs += [
                np.logaddexp(
                    np.log(rate) + beside,
                    np.log1p(-rate) + without if rate < 1 else -np.inf,
                ),
                without,
            ]
            weights = weights - 0.1 * torch.from_numpy(seen) / made.settings.batch
        expected.append(logs[0] - logs[1])
    found = mechanism.log_prob(outputs, pair.data) - mechanism.log_prob(
        outputs, pair.neighbour
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        mechanism.score(outputs, pair), expected, rtol=1e-9, atol=1e-9
    )


def test_the_final_model_follows_from_the_sums():
    """With equal randomness both release the same training; weights are minus the learning rate times mean sums."""
    made, pair = full_batch(1.0, 3), canary_pair(3)
    sums = NoisedSums(made)(pair.data, 5, rng=np.random.default_rng(1))
    weights = FinalModel(made)(pair.data, 5, rng=np.random.default_rng(1))
    np.testing.assert_allclose(
        weights, -0.1 * sums.sum(axis=1) / EXAMPLES, rtol=1e-12, atol=1e-12
    )


def test_a_canary_changes_the_sum_by_the_clipping_norm_and_is_unclipped_in_a_twin():
    pair, correct = canary_pair(2, norm=10.0), full_batch(1.0, 2)
    for made, change in ((correct, 1.0), (twins(correct)["no clipping"], 10.0)):
        mechanism = NoisedSums(made)
        rng = np.random.default_rng(0)
        both = [mechanism.query(data, rng) for data in (pair.data, pair.neighbour)]
        assert np.linalg.norm(both[0] - both[1]) == pytest.approx(change)
        assert mechanism.sensitivity == 1.0


def game(made, claim, pairs, forecasters, seed=0):
    return Game(made, claim, pairs, forecasters, partial(stream, seed))


@pytest.mark.statistical
@pytest.mark.full
def test_the_correct_trainer_is_refuted_less_often_than_alpha():
    """α = 1e-6 each: full batches and Poisson ones, white and black box, at the level that holds."""
    pair = canary_pair(2, norm=10.0)
    made = full_batch(1.0, 2)
    for seed in range(2):
        for mechanism, forecasters in (
            (NoisedSums(made), [LikelihoodRatio(), Scored()]),
            (FinalModel(made), [ViewExperts()]),
        ):
            played = game(mechanism, GaussianDP(1.0), [pair], forecasters, seed)
            played.play(600, alpha=ALPHA, stop_when_refuted=True)
            assert played.refuted_at is None


@pytest.mark.statistical
@pytest.mark.parametrize("name", list(twins(full_batch(1.0, 2))))
def test_twins_are_refuted(name):
    """Each within 1,500 trainings at α = 1e-6; what they take at .05 is in the benchmark."""
    made = NoisedSums(twins(full_batch(1.0, 2))[name], label=name)
    assert made.name == name
    played = game(
        made,
        GaussianDP(1.0),
        [canary_pair(2, norm=10.0)],
        [LikelihoodRatio(), Scored()],
    )
    played.play(1_500, alpha=ALPHA, stop_when_refuted=True)
    assert played.refuted_at is not None


def epoch():
    """The trainer, the claim and the pair of an epoch of four Poisson batches of eight records."""
    made = linear_trainer(noise_multiplier=0.6, batch=8, rate=0.25, steps=4)
    return made, AccountedDP(PLDUpper(0.6, 0.25, 4)), opposed_pair(31, 4)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["correct", *batch_twins(epoch()[0])])
def test_batches_that_are_no_poisson_ones_are_refuted(name):
    """Within 3,000 trainings at α = 1e-6, by the sums alone; Poisson batches are not."""
    made, claim, pair = epoch()
    mechanism = SumsAlone({"correct": made, **batch_twins(made)}[name])
    assert mechanism(pair.data, 2, rng=np.random.default_rng(0)).shape == (2, 4, 4)
    played = game(mechanism, claim, [pair], [Scored()])
    played.play(3_000, alpha=ALPHA, stop_when_refuted=True)
    assert (played.refuted_at is None) is (name == "correct")


@pytest.mark.statistical
@pytest.mark.parametrize("broken", [False, True])
def test_a_last_batch_over_its_own_size_is_refuted(broken):
    """The canary is alone in the last of two batches; within 300 trainings at α = 1e-6."""
    made = replace(
        linear_trainer(noise_multiplier=1.0, batch=4, rate=0.5, steps=4),
        batches=in_order,
    )
    mechanism = SumsAlone(replace(made, finish=over_own_size) if broken else made)
    played = game(mechanism, GaussianDP(2**0.5), [opposed_pair(4, 4)], [Scored()])
    played.play(300, alpha=ALPHA, stop_when_refuted=True)
    assert (played.refuted_at is not None) is broken


@pytest.mark.statistical
@pytest.mark.parametrize("broken", [False, True])
def test_features_standardised_by_private_data_are_refuted(broken):
    """Within 300 trainings at α = 1e-6; an outlier changes the sum by its own gradient, and then by all."""
    made = (
        replace(full_batch(1.0, 2), prepare=standardised)
        if broken
        else full_batch(1.0, 2)
    )
    mechanism, pair = NoisedSums(made), outlier_pair()
    rng = np.random.default_rng(0)
    change = np.linalg.norm(
        mechanism.query(pair.data, rng) - mechanism.query(pair.neighbour, rng)
    )
    assert change > 3.5 if broken else change == pytest.approx(1.0)
    played = game(mechanism, GaussianDP(1.0), [pair], [LikelihoodRatio(), Scored()])
    played.play(300, alpha=ALPHA, stop_when_refuted=True)
    assert (played.refuted_at is not None) is broken


def test_the_score_of_sums_alone_is_the_likelihood_ratio_where_no_other_example_adds_anything():
    """A mixture in each step, by hand."""
    made = linear_trainer(noise_multiplier=0.8, batch=1, rate=0.3, steps=3)
    canary = gradient_canary(4, 3, norm=1.0)
    none = torch.zeros(2, 4, dtype=torch.float64)
    inputs = (none, torch.zeros(2, dtype=torch.long))
    pair = Pair(World(inputs, canary=canary), World(inputs), "canary")
    outputs = np.random.default_rng(0).standard_normal((5, 3, 4))
    ratio = (
        norm.logpdf(outputs, canary.numpy(), 0.8) - norm.logpdf(outputs, 0, 0.8)
    ).sum(axis=2)
    expected = np.log(0.7 + 0.3 * np.exp(ratio)).sum(axis=1)
    np.testing.assert_allclose(
        SumsAlone(made).score(outputs, pair), expected, rtol=1e-9
    )


def graphs(nodes, reach, sigma):
    """Sums of a layer of GCN at zero weights, where the last node has the opposite sign of all others."""
    model = GCN(
        1,
        2,
        hidden=1,
        layers=1,
        dropout=0.0,
        generator=torch.Generator().manual_seed(0),
    ).double()
    for weight in model.parameters():
        torch.nn.init.zeros_(weight)
    settings = PrivateSettings(
        steps=1,
        noise_multiplier=sigma,
        clipping_norm=1.0,
        batch=float(nodes),
        rate=1.0,
        optimiser="sgd",
    )
    x = torch.full((nodes, 1), 1e7, dtype=torch.float64)
    x[-1] *= -5
    world = GraphWorlds(x, torch.zeros(nodes, dtype=torch.long))
    return NoisedSums(Trainer(model, node_loss, settings), world=world, reach=reach)


@pytest.mark.parametrize(("nodes", "most"), [(1, 1.0), (2, 3.0), (3, 5.0)])
def test_a_node_changes_the_gradients_of_its_neighbours(nodes, most):
    """All graphs: C for the node itself and 2C for each of the others; more than C from the second node on."""
    adjacency, streams = Nodes(nodes, "removed", loops=True), partial(stream, 0)
    for reach, verdict in (
        (1.0, "MISCALIBRATED" if nodes > 1 else "NOT_REFUTED"),
        (2.0 * nodes - 1, "NOT_REFUTED"),
    ):
        evidence = sensitivity_evidence(
            graphs(nodes, reach, 1.0), adjacency, streams=streams
        )
        assert evidence.verdict is Verdict[verdict]
        assert evidence.details.largest_difference == pytest.approx(most, rel=1e-6)
        assert evidence.details.exhaustive


@pytest.mark.statistical
def test_accounting_for_records_is_refuted_on_two_nodes():
    """1-GDP with noise σ = C, where two nodes lose 3-GDP; with noise for the reach it is not refuted."""
    pairs = Nodes(2, "removed", loops=True).pairs()[:1]
    for reach, refuted in ((1.0, True), (3.0, False)):
        played = game(
            graphs(2, reach, reach), GaussianDP(1.0), pairs, [LikelihoodRatio()]
        )
        played.play(200, alpha=ALPHA, stop_when_refuted=True)
        assert (played.refuted_at is not None) is refuted


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: NoisedSums(retold(rate=None)),
            ConfigurationError,
            "rate=None; use FinalModel",
        ),
        (
            lambda: NoisedSums(retold(noise_multiplier=0.0)),
            ConfigurationError,
            "noise_multiplier=0.0",
        ),
        (
            lambda: SumsAlone(retold(noise_multiplier=0.0)),
            ConfigurationError,
            "use FinalModel",
        ),
        (
            lambda: GraphWorlds(torch.zeros(3, 1), torch.zeros(2)),
            DataError,
            "a class for each row",
        ),
        (
            lambda: GraphWorlds(torch.zeros(3, 1), torch.zeros(3))(np.zeros((2, 2))),
            DataError,
            "3 × 3 ids",
        ),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_batches_are_seen_only_where_they_tell_nothing_that_is_claimed():
    mechanism = NoisedSums(trainer(noise_multiplier=1.0, rate=0.5, steps=2))
    with pytest.raises(ConfigurationError, match=r"world does not say.*common=True"):
        mechanism(
            replace(canary_pair(2).data, common=False, name="world"),
            3,
            rng=np.random.default_rng(0),
        )


def retold(**changed):
    correct = full_batch(1.0, 2)
    return replace(correct, settings=replace(correct.settings, **changed))


def test_fixed_batches_release_their_model():
    """Batches of four of nine records, or of eight; outputs are independent trainings."""
    pair, made = canary_pair(2), retold(rate=None, batch=4)
    outputs = [
        FinalModel(made)(data, 6, rng=np.random.default_rng(0))
        for data in (pair.data, pair.neighbour)
    ]
    assert all(len(np.unique(each, axis=0)) == 6 for each in outputs)
    assert "batches of 4" in FinalModel(made).name
    assert repr(World((torch.zeros(2),), name="two")) == "two"
