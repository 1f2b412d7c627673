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

GAUSSIAN = GaussianDP(1.0)
WORLDS = (np.array([1.0, 0.2]), np.array([0.2]))


def trained(data, rng):
    return np.clip(data, -1, 1).sum() + rng.normal()


def broken(data, rng):
    return np.clip(data, -1, 1).sum() + 0.3 * rng.normal()


def stepwise(data, rng):
    for _ in range(4):
        yield [np.clip(data, -1, 1).sum() + 2 * rng.normal()]


def audited(train, claim=GAUSSIAN, pairs=WORLDS, **options):
    return audit_training(train, claim, pairs=pairs, **options)


def run(train, seed=0, data=None):
    return Training(train)(data, np.random.default_rng(seed))


def test_a_true_claim_stands_and_a_broken_trainer_is_refuted():
    """The broken one is a control, and so is one that survives."""
    result = audited(trained, controls=[broken, trained], calls=250)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert [control.survived for control in result.controls] == [False, True]
    assert result.evidence[0].kind == "game"
    assert result.calls <= 400
    trainings, bounds = zip(*result.history, strict=True)
    assert list(trainings) == sorted(trainings)
    assert list(bounds) == sorted(bounds)
    assert bounds[-1] == result.evidence[0].epsilon_lower < 1


def standard_noise():
    return random.gauss(0, 1)


@pytest.mark.parametrize("draw", [standard_noise, np.random.standard_normal])
def test_global_generators_are_seeded_in_a_training_and_put_back(draw):
    def state():
        return random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002

    def train(data):
        return data.sum() + draw()

    def log_e_value():
        return audited(train, calls=40, seed=5).log_e_value

    before = state()
    assert log_e_value() == log_e_value()
    assert state() == before
    assert len({run(train, seed, WORLDS[0]) for seed in range(20)}) == 20


def test_every_step_is_a_copy_of_the_weights_at_its_release():
    def train(data, rng):
        weights = np.zeros(2)
        for _ in range(3):
            weights += 1
            yield {"weights": weights}

    released = [step["weights"].tolist() for step in run(train)]
    assert released == [[1, 1], [2, 2], [3, 3]]


@pytest.mark.parametrize(
    "train",
    [
        lambda data, rng: rng.random(),
        lambda data, rng=None: rng.random(),
        lambda data, generator: generator.random(),
    ],
)
def test_a_trainer_is_given_a_generator_if_it_takes_one(train):
    assert run(train, 0) == run(train, 0) != run(train, 1)


def test_worlds_that_are_tuples_themselves_are_one_pair():
    def train(data, rng):
        features, labels = data
        return features.sum() * labels[0] + rng.normal()

    # A tuple of two tuples could be read as two pairs.
    worlds = ((np.ones(2), np.ones(2)), (np.ones(1), np.ones(1)))
    for pairs in (worlds, [Pair(*worlds)]):
        result = audited(train, pairs=pairs, calls=50)
        assert result.verdict is Verdict.NOT_REFUTED


def test_an_attack_is_bet_on_in_place_of_the_released():
    def sign(released):
        return released > 0.6

    result = audited(broken, PureDP(0.5), attack=sign, calls=400)
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

    result = audited(Batch(), calls=1_000)
    assert result.epsilon_lower > 0.6
    assert Batch.calls < 500
    options = {"attack": lambda released: released > 0.7, "calls": 1_500}
    attacked = audited(Batch(), GaussianDP(0.2), **options)
    assert attacked.verdict is Verdict.VIOLATED


def test_canaries_are_guessed_from_one_training():
    def train(included, rng):
        return included + rng.normal(size=len(included)) / 3

    def attack(released):
        return released

    result = audit_training(train, GAUSSIAN, canaries=500, attack=attack)
    assert result.verdict is Verdict.VIOLATED
    assert result.calls == 1
    assert not result.history
    with pytest.raises(ConfigurationError, match="no history"):
        result.plot_history()


# All cases are cheap, and run in one test: only the first case of a parameter would.
def test_other_arguments_are_refused():
    for train, options, error, fragment in (
        (trained, {}, ConfigurationError, "neither"),
        (trained, {"pairs": WORLDS, "canaries": 4}, ConfigurationError, "both"),
        (trained, {"canaries": 4}, ConfigurationError, "needs attack="),
        (trained, {"pairs": WORLDS, "calls": 0}, ConfigurationError, "calls=0"),
        (trained, {"pairs": WORLDS, "alpha": 1.5}, ConfigurationError, "alpha=1.5"),
        (trained, {"canaries": 0, "attack": abs}, AdjacencyError, "count"),
        (3, {"pairs": WORLDS}, MechanismError, "callable"),
        (lambda: 0, {"pairs": WORLDS}, MechanismError, "takes nothing"),
        (lambda a, b, c: 0, {"pairs": WORLDS}, MechanismError, "takes a, b, c"),
    ):
        with pytest.raises(error, match=fragment):
            audit_training(train, GAUSSIAN, **options)


@pytest.mark.full
def test_bounds_grow_with_the_released_steps_and_stay_below_the_truth():
    """Each step is ½-Gaussian DP, so that k of them are √k/2."""
    options = {"trainings": 1_000, "steps": [1, 4]}
    found = level_by_step(stepwise, GAUSSIAN, WORLDS, **options)
    assert found.steps == [1, 4]
    assert 0 <= found.bounds[0] < 0.5
    assert max(found.bounds[0], 0.3) < found.bounds[1] < 1


@pytest.mark.full
def test_plots_of_steps_and_of_the_history():
    found = level_by_step(stepwise, GAUSSIAN, WORLDS, trainings=20)
    assert found.steps == [1, 2, 3, 4]
    axes = found.plot()
    assert axes.get_xlabel() == "steps released"
    assert "1-GDP" in axes.get_legend().get_texts()[0].get_text()
    result = audited(trained, calls=100)
    axes = result.plot_history()
    assert axes.get_xlabel() == "calls"
    assert axes.get_ylabel() == "μ at least"


def steps_by_chance(data, rng):
    return [[0.0]] * rng.integers(1, 5)


@pytest.mark.parametrize(
    ("train", "options", "error", "fragment"),
    [
        (stepwise, {"steps": [5]}, ConfigurationError, r"1\.\.4"),
        (stepwise, {"trainings": 5}, ConfigurationError, "trainings=5"),
        (trained, {}, MechanismError, "yield it after each"),
        (steps_by_chance, {}, MechanismError, "the same numbers"),
        (lambda data, rng: [[0.0]] * len(data), {}, MechanismError, "on one input"),
    ],
)
def test_other_steps_are_refused(train, options, error, fragment):
    with pytest.raises(error, match=fragment):
        level_by_step(train, GAUSSIAN, WORLDS, **{"trainings": 20, **options})


def clipped_to(norm, steps=3, noise=1.0):
    """Return DP-SGD of a line through the origin, with noise for gradients of norm 1."""

    def train(data, rng):
        (features, labels), weight = data, 0.0
        for _ in range(steps):
            gradients = (weight * features - labels) * features
            total = np.clip(gradients, -norm, norm).sum()
            weight -= 0.05 * (total + noise * steps**0.5 * rng.normal())
        return weight

    return train


X = np.array([0.5, -0.3, 1.2, 0.1, -1.5, 0.4])
Y = np.array([0.6, -0.2, 1.0, 0.1, -1.4, 0.5])
ORDINARY = Pair(X, np.delete(X, 3))
PEOPLE = Pair((X, Y), (np.delete(X, 3), np.delete(Y, 3)))


def test_the_worst_neighbours_are_found_from_an_ordinary_pair():
    train = clipped_to(4.0)
    result = audited(train, pairs=PEOPLE)
    assert result.verdict is Verdict.VIOLATED
    (finding,) = result.evidence[0].details.trace.findings
    assert finding.kind == "loss"
    assert finding.read_off
    alone = audited(train, pairs=PEOPLE, search=False, calls=300)
    assert alone.verdict is Verdict.NOT_REFUTED


def test_a_text_that_alone_has_a_word_is_found_from_one_that_has_none():
    def counted(texts, rng):
        texts = [text.split()[:2] for text in texts]
        words = sorted({word for text in texts for word in text})
        counts = {word: sum(word in text for text in texts) for word in words}
        return {word: n + rng.laplace(scale=2.0) for word, n in counts.items()}

    texts = ["good film", "bad film", "good plot", "rare gem", "bad plot", "good film"]
    pair = texts, texts[:-1]
    result = audited(counted, PureDP(1.0), pair)
    assert result.verdict is Verdict.VIOLATED
    alone = audited(counted, PureDP(1.0), pair, search=False, calls=300)
    assert alone.verdict is Verdict.NOT_REFUTED


def with_a_fixed_seed(data, rng):
    return clipped_to(1.0)(data, np.random.default_rng(3))


@pytest.mark.parametrize("train", [clipped_to(1.0, noise=0.1), with_a_fixed_seed])
def test_a_hundred_trainings_refute_a_claim_that_is_far_from_true(train):
    """The game is on one pair, and confirms itself."""
    result = audited(train, pairs=PEOPLE)
    assert result.verdict is Verdict.VIOLATED
    assert result.calls <= 100
    details = result.evidence[0].details
    (played,) = [each for each in details.pairs if each.calls]
    confirmed = details.confirmation
    assert played.pair == confirmed.pair
    assert confirmed.calls == played.calls == details.wealth_path[-1][0]
    assert details.refuted_at <= confirmed.calls
    assert confirmed.log_e_value >= math.log(2 / 0.05)
    other = confirmed.calls + details.trace.runs + details.independence_calls
    # The rest observes how the code draws, before the game.
    assert 0 < result.calls - other <= 24
    assert "on a pair that was chosen before them" in result.evidence[0].statement


def test_with_all_trainings_for_a_bound_a_confirmation_has_calls_of_its_own():
    def train(data, rng):
        noise = rng.normal(scale=3**0.5)
        weight = 0.0
        for _ in range(3):
            noised = np.clip(weight - data, -1, 1).sum() + noise
            weight -= 0.1 * noised
            yield noised

    result = audited(train, pairs=ORDINARY, calls=600, stop_when_refuted=False)
    assert result.verdict is Verdict.VIOLATED
    assert result.evidence[0].details.confirmation.calls < 20


@pytest.mark.parametrize("is_sampled", [False, True])
def test_without_a_finding_all_trainings_are_for_the_bound(is_sampled):
    """Records that are drawn by chance are no reason to search for other pairs."""

    def train(data, rng):
        weight = 0.0
        for _ in range(4):
            batch = data[rng.random(len(data)) < 0.5] if is_sampled else data
            total = np.clip(weight - batch, -1, 1).sum()
            weight -= 0.1 * (total + rng.normal(scale=2))
        return weight

    result = audited(train, pairs=ORDINARY, calls=400, stop_when_refuted=False)
    details = result.evidence[0].details
    assert result.verdict is Verdict.NOT_REFUTED
    assert details.search_calls == 0
    assert 380 <= result.calls <= 400
    played = sum(each.calls for each in details.pairs)
    assert played + details.trace.runs + details.independence_calls <= result.calls


@pytest.mark.parametrize("norm", [1.0, 40.0])
def test_neighbours_that_lose_the_whole_claim_are_found_within_the_calls(norm):
    made = []

    def train(data, rng):
        made.append(data)
        return clipped_to(norm)(data, rng)

    result = audited(train, pairs=PEOPLE, calls=300)
    assert result.calls <= 300
    # Runs that observe the form of outputs are no calls.
    assert len(made) <= 300 + 64
    if norm == 1.0:
        details = result.evidence[0].details
        assert result.verdict is Verdict.NOT_REFUTED
        assert details.trace.share == pytest.approx(1.0)
        assert details.search_calls == 0
        assert len(details.pairs) == 2
        assert "one record added or removed" in result.claim.adjacency


def test_a_search_that_does_not_run_gives_the_reason():
    def train(data, rng):
        return len(data["a"]) + rng.normal()

    graphs = Pair({"a": ["b"]}, {"a": []})
    result = audited(train, pairs=graphs, calls=50)
    notices = " ".join(result.evidence[0].details.notices)
    assert "expected records of numbers" in notices
