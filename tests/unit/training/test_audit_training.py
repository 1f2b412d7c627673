"""The audit of anybody's trainer."""

import math
import random

import numpy as np
import pytest

from auditdp import GaussianDP, Pair, PureDP
from auditdp.errors import AdjacencyError, ConfigurationError, MechanismError
from auditdp.record.results import Verdict
from auditdp.training import Training, audit_training, level_by_step

pytestmark = pytest.mark.dear

WORLDS = (np.array([1.0, 0.2]), np.array([0.2]))


def trained(data, rng):
    return np.clip(data, -1, 1).sum() + rng.normal()


def broken(data, rng):
    return np.clip(data, -1, 1).sum() + 0.3 * rng.normal()


def stepwise(data, rng):
    for _ in range(4):
        yield [np.clip(data, -1, 1).sum() + 2 * rng.normal()]


def test_a_true_claim_is_kept_and_a_false_one_refuted_with_the_history_of_the_bound():
    kept, refuted = (
        audit_training(f, GaussianDP(1.0), pairs=WORLDS, calls=250)
        for f in (trained, broken)
    )
    assert (kept.verdict, refuted.verdict) == (Verdict.NOT_REFUTED, Verdict.VIOLATED)
    assert kept.evidence[0].kind == "game"
    assert kept.calls <= 400
    trainings, bounds = zip(*kept.history, strict=True)
    assert list(trainings) == sorted(trainings)
    assert list(bounds) == sorted(bounds)
    assert bounds[-1] == kept.epsilon_lower < 1


def test_a_control_has_to_be_refuted():
    result = audit_training(
        trained, GaussianDP(1.0), pairs=WORLDS, controls=[broken, trained], calls=250
    )
    assert result.verdict is Verdict.INCONCLUSIVE
    assert [control.survived for control in result.controls] == [False, True]


@pytest.mark.parametrize(
    "draw",
    [lambda: random.gauss(0, 1), lambda: np.random.normal()],  # noqa: NPY002
)
def test_a_trainer_that_draws_from_global_generators_is_repeated_and_leaves_them_as_they_were(
    draw,
):
    def train(data):
        return data.sum() + draw()

    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    found = [
        audit_training(
            train, GaussianDP(1.0), pairs=WORLDS, calls=40, seed=s
        ).log_e_value
        for s in (5, 5)
    ]
    assert found[0] == found[1]
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002
    outputs = {
        Training(train)(WORLDS[0], np.random.default_rng(seed)) for seed in range(20)
    }
    assert len(outputs) == 20


def test_every_step_is_what_it_was_when_it_was_released():
    """A trainer goes on to change the weights that it yielded."""

    def train(data, rng):
        weights = np.zeros(2)
        for _ in range(3):
            weights += 1
            yield {"weights": weights}

    released = Training(train)(None, np.random.default_rng(0))
    assert [step["weights"].tolist() for step in released] == [[1, 1], [2, 2], [3, 3]]


@pytest.mark.parametrize(
    "train",
    [
        lambda data, rng: rng.random(),
        lambda data, rng=None: rng.random(),
        lambda data, generator: generator.random(),
    ],
)
def test_a_trainer_is_given_a_generator_where_it_takes_one(train):
    first, again, other = (
        Training(train)(None, np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    assert first == again != other


def test_worlds_that_are_tuples_themselves_are_one_pair():
    """Features and labels: each world is a tuple of two, which alone could be read as two pairs."""

    def train(data, rng):
        features, labels = data
        return features.sum() * labels[0] + rng.normal()

    worlds = ((np.ones(2), np.ones(2)), (np.ones(1), np.ones(1)))
    assert (
        audit_training(train, GaussianDP(1.0), pairs=worlds, calls=50).verdict
        is Verdict.NOT_REFUTED
    )
    again = audit_training(train, GaussianDP(1.0), pairs=[Pair(*worlds)], calls=50)
    assert again.verdict is Verdict.NOT_REFUTED


def test_an_attack_is_bet_on_in_place_of_the_released():
    def sign(released):
        return released > 0.6

    result = audit_training(broken, PureDP(0.5), pairs=WORLDS, attack=sign)
    assert result.verdict is Verdict.VIOLATED
    assert result.mechanism == "sign on broken"


@pytest.mark.full
def test_a_trainer_of_many_models_at_once_is_a_mechanism_with_its_own_likelihood():
    class Batch:
        name = "many at once"
        calls = 0

        def __call__(self, data, size, *, rng):
            Batch.calls += 1
            return data.sum() + rng.normal(size=size)

        def log_prob(self, outputs, data):
            return -((np.asarray(outputs) - data.sum()) ** 2) / 2

    result = audit_training(Batch(), GaussianDP(1.0), pairs=WORLDS, calls=1_000)
    assert result.epsilon_lower > 0.6
    assert Batch.calls < 500
    attacked = audit_training(
        Batch(),
        GaussianDP(0.2),
        pairs=WORLDS,
        attack=lambda released: released > 0.7,
        calls=1_500,
    )
    assert attacked.verdict is Verdict.VIOLATED


def test_canaries_are_guessed_from_what_one_training_releases():
    def train(included, rng):
        return included + rng.normal(size=len(included)) / 3

    result = audit_training(
        train, GaussianDP(1.0), canaries=500, attack=lambda released: released
    )
    assert result.verdict is Verdict.VIOLATED
    assert (result.calls, result.history) == (1, [])
    with pytest.raises(ConfigurationError, match="no history"):
        result.plot_history()


@pytest.mark.parametrize(
    ("options", "error", "shown"),
    [
        ({}, ConfigurationError, "neither"),
        ({"pairs": WORLDS, "canaries": 4}, ConfigurationError, "both"),
        ({"canaries": 4}, ConfigurationError, "needs attack="),
        ({"pairs": WORLDS, "calls": 0}, ConfigurationError, "calls=0"),
        ({"pairs": WORLDS, "alpha": 1.5}, ConfigurationError, "alpha=1.5"),
        ({"canaries": 0, "attack": abs}, AdjacencyError, "count"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(options, error, shown):
    with pytest.raises(error, match=shown):
        audit_training(trained, GaussianDP(1.0), **options)


@pytest.mark.parametrize(
    ("train", "shown"),
    [
        (3, "callable"),
        (lambda: 0, "takes nothing"),
        (lambda a, b, c: 0, "takes a, b, c"),
    ],
)
def test_what_is_no_trainer_is_refused(train, shown):
    with pytest.raises(MechanismError, match=shown):
        audit_training(train, GaussianDP(1.0), pairs=WORLDS)


@pytest.mark.full
def test_bounds_grow_with_the_steps_that_are_released_and_stay_below_the_truth():
    """Each step is ½-Gaussian DP, so k of them are √k/2."""
    found = level_by_step(
        stepwise, GaussianDP(1.0), WORLDS, trainings=1_000, steps=[1, 4]
    )
    assert found.steps == [1, 4]
    assert 0 <= found.bounds[0] < 0.5
    assert max(found.bounds[0], 0.3) < found.bounds[1] < 1


@pytest.mark.full
def test_steps_are_chosen_up_to_all_of_them_and_drawn_with_the_claim():
    found = level_by_step(stepwise, GaussianDP(1.0), WORLDS, trainings=20)
    assert found.steps == [1, 2, 3, 4]
    axes = found.plot()
    assert axes.get_xlabel() == "steps released"
    assert "1-GDP" in axes.get_legend().get_texts()[0].get_text()
    axes = audit_training(
        trained, GaussianDP(1.0), pairs=WORLDS, calls=100
    ).plot_history()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("calls", "μ at least")


@pytest.mark.parametrize(
    ("train", "options", "error", "shown"),
    [
        (stepwise, {"steps": [5]}, ConfigurationError, r"1\.\.4"),
        (stepwise, {"trainings": 5}, ConfigurationError, "trainings=5"),
        (trained, {}, MechanismError, "yield it after each"),
        (
            lambda data, rng: [[0.0]] * rng.integers(1, 5),
            {},
            MechanismError,
            "the same numbers",
        ),
        (lambda data, rng: [[0.0]] * len(data), {}, MechanismError, "on one input"),
    ],
)
def test_what_has_no_such_steps_is_refused(train, options, error, shown):
    with pytest.raises(error, match=shown):
        level_by_step(train, GaussianDP(1.0), WORLDS, **({"trainings": 20} | options))


def clipped_to(norm, steps=3, noise=1.0):
    """DP-SGD of a line through the origin, with noise for gradients of norm 1 unless there is less."""

    def train(data, rng):
        features, labels = data
        weight = 0.0
        for _ in range(steps):
            gradients = (weight * features - labels) * features
            weight -= 0.05 * (
                np.clip(gradients, -norm, norm).sum()
                + noise * steps**0.5 * rng.normal()
            )
        return weight

    return train


PEOPLE = (
    np.array([0.5, -0.3, 1.2, 0.1, -1.5, 0.4]),
    np.array([0.6, -0.2, 1.0, 0.1, -1.4, 0.5]),
)
WITHOUT_ONE = Pair(PEOPLE, (np.delete(PEOPLE[0], 3), np.delete(PEOPLE[1], 3)))


def test_the_worst_neighbours_are_found_from_an_ordinary_pair_and_the_line_is_named():
    result = audit_training(clipped_to(4.0), GaussianDP(1.0), WITHOUT_ONE)
    assert result.verdict is Verdict.VIOLATED
    (finding,) = result.evidence[0].details.trace.findings
    assert (finding.kind, finding.read_off) == ("loss", True)
    alone = audit_training(
        clipped_to(4.0), GaussianDP(1.0), WITHOUT_ONE, search=False, calls=1_000
    )
    assert alone.verdict is Verdict.NOT_REFUTED


def counted(texts, rng):
    words = sorted({word for text in texts for word in text.split()[:2]})
    return {
        word: sum(word in text.split()[:2] for text in texts) + rng.laplace(scale=2.0)
        for word in words
    }


def test_a_text_that_alone_has_a_word_is_found_from_one_that_has_none():
    texts = ["good film", "bad film", "good plot", "rare gem", "bad plot", "good film"]
    result = audit_training(counted, PureDP(1.0), (texts, texts[:-1]))
    assert result.verdict is Verdict.VIOLATED
    assert (
        audit_training(counted, PureDP(1.0), (texts, texts[:-1]), search=False).verdict
        is Verdict.NOT_REFUTED
    )


def seeded(data, rng):
    return clipped_to(1.0)(data, np.random.default_rng(3))


@pytest.mark.parametrize("train", [clipped_to(1.0, noise=0.1), seeded])
def test_a_hundred_trainings_refute_a_claim_that_is_far_from_true_in_a_game_that_confirms_itself(
    train,
):
    result = audit_training(train, GaussianDP(1.0), WITHOUT_ONE)
    assert result.verdict is Verdict.VIOLATED
    assert result.calls <= 100
    details = result.evidence[0].details
    played, confirmed = (
        [each for each in details.pairs if each.calls],
        details.confirmation,
    )
    assert [each.pair for each in played] == [confirmed.pair]
    assert confirmed.calls == played[0].calls == details.wealth_path[-1][0]
    assert details.refuted_at <= confirmed.calls
    assert confirmed.log_e_value >= math.log(2 / 0.05)
    looked_at = result.calls - (
        confirmed.calls + details.trace.runs + details.independence_calls
    )
    assert 0 < looked_at <= 24  # before the game, to see how it draws
    assert "on a pair that was chosen before them" in result.evidence[0].statement


def test_all_trainings_are_played_for_a_bound_and_a_confirmation_asks_the_code_anew():
    def train(data, rng):
        noise, weight = rng.normal(scale=3**0.5), 0.0
        for _ in range(3):
            noised = np.clip(weight - data, -1, 1).sum() + noise
            weight -= 0.1 * noised
            yield noised

    ordinary = Pair(PEOPLE[0], np.delete(PEOPLE[0], 3))
    result = audit_training(
        train, GaussianDP(1.0), ordinary, calls=600, stop_when_refuted=False
    )
    assert result.verdict is Verdict.VIOLATED
    assert result.evidence[0].details.confirmation.calls < 20


@pytest.mark.parametrize("is_sampled", [False, True])
def test_where_nothing_is_to_be_confirmed_all_trainings_are_for_the_bound(is_sampled):
    """The pair is chosen beforehand, so that no calls search for others, also where records are drawn."""

    def train(data, rng):
        weight = 0.0
        for _ in range(4):
            batch = data[rng.random(len(data)) < 0.5] if is_sampled else data
            weight -= 0.1 * (np.clip(weight - batch, -1, 1).sum() + rng.normal(scale=2))
        return weight

    ordinary = Pair(PEOPLE[0], np.delete(PEOPLE[0], 3))
    result = audit_training(
        train, GaussianDP(1.0), ordinary, calls=400, stop_when_refuted=False
    )
    details = result.evidence[0].details
    assert result.verdict is Verdict.NOT_REFUTED
    assert details.search_calls == 0
    assert 380 <= result.calls <= 400
    played = sum(each.calls for each in details.pairs)
    assert played + details.trace.runs + details.independence_calls <= result.calls


def test_neighbours_that_lose_all_that_is_claimed_are_found_for_a_correct_trainer():
    result = audit_training(clipped_to(1.0), GaussianDP(1.0), WITHOUT_ONE, calls=400)
    details = result.evidence[0].details
    assert result.verdict is Verdict.NOT_REFUTED
    assert details.trace.share == pytest.approx(1.0)
    assert (
        details.search_calls == 0
    )  # all calls are for the pair that the trace has found
    assert len(details.pairs) == 2
    assert "one record added or removed" in result.claim.adjacency


@pytest.mark.parametrize("norm", [1.0, 40.0])
def test_no_more_trainings_are_made_than_are_asked_for(norm):
    made = 0

    def train(data, rng):
        nonlocal made
        made += 1
        return clipped_to(norm)(data, rng)

    result = audit_training(train, GaussianDP(1.0), WITHOUT_ONE, calls=300)
    assert made <= 300 + 64  # runs that look how outputs look are no calls
    assert result.calls <= 300


def test_a_search_that_does_not_run_says_why():
    graphs = Pair({"a": ["b"]}, {"a": []})
    result = audit_training(
        lambda data, rng: len(data["a"]) + rng.normal(),
        GaussianDP(1.0),
        graphs,
        calls=100,
    )
    assert any(
        "expected records of numbers" in notice
        for notice in result.evidence[0].details.notices
    )
