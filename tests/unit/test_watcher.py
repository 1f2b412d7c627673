"""The watcher: its counts against naive ones, forecasts that know nothing of their batch, and views that see a part."""

import copy
import itertools
import math

import numpy as np
import pytest
from scipy.stats import hypergeom

from auditdp.adjacency import Pair
from auditdp.betting import watcher as module
from auditdp.betting.batch import Batch
from auditdp.betting.cells import VARIANTS, Names
from auditdp.betting.memory import Memory
from auditdp.betting.views import views_of
from auditdp.betting.watcher import Watching

PAIR = Pair(1, 0)
MIXED = np.array([0.5, math.nan, math.inf, -1.0])


def batch(ones, zeros):
    return Batch(ones, zeros, np.random.default_rng(0))


def outputs(kind, coin, size, rng):
    """Outputs under a coin that makes a small difference."""
    return {
        "number": rng.normal(size=size) + coin,
        "bit": (rng.random(size) < 0.5 + 0.2 * coin),
        "no number": rng.choice(MIXED, size=size, p=[0.4, 0.2, 0.2, 0.2]),
        "vector": rng.normal(size=(size, 3)) + 0.3 * coin,
        "bits": (rng.random((size, 4)) < 0.5 + 0.2 * coin).astype(np.int8),
        "matrix": rng.integers(0, 3, (size, 2, 2)),
        "half new": np.where(rng.random((size, 2)) < 0.5, 7.0, rng.normal(size=(size, 2))),
        "long": (rng.random((size, 40)) < 0.5),
        "no width": np.zeros((size, 0)),
        "constant": np.full((size, 2), 3),
    }[kind]


KINDS = ["number", "bit", "no number", "vector", "bits", "matrix", "half new", "long", "no width", "constant"]


def opened(kind, prepare=None):
    watcher = Watching().player(None, PAIR)
    if prepare is not None:
        watcher.look_through(prepare)
    watcher.open(outputs(kind, 0, 8, np.random.default_rng(99)))
    return watcher


def batches(kind, sizes, seed=0):
    """Outputs under coin 1 and coin 0, batch by batch."""
    rng = np.random.default_rng(seed)
    for size in sizes:
        heads = int(rng.binomial(size, 0.5))
        yield outputs(kind, 1, heads, rng), outputs(kind, 0, size - heads, rng)


SIZES = [1, 2, 1, 4, 4, 8, 3, 30, 60, 1, 200, 5, 700, 40, 40, 900]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_those_of_all_calls_that_a_view_may_count(kind):
    """The kept calls as they were when the view was cut, by what was not learned from them, and all calls since."""
    watcher, memory = opened(kind), Memory()
    bank, since = None, [[], []]
    for ones, zeros in batches(kind, SIZES):
        said = watcher.forecast(batch(ones, zeros))
        assert sum(len(f.log_odds) for f in said) == len(watcher.names)
        if bank is not None:
            for f, look in zip(said, watcher._looks, strict=True):
                assert (f.ones.sum(), f.zeros.sum()) == (
                    (len(ones), len(zeros)) if look.cells is not None else (0, 0)
                ), "every call is counted, since every call pays for delta"
        memory.add(ones, zeros)
        watcher.learn(memory, stalled=True)
        rows = [side.reshape(len(side), math.prod(side.shape[1:])) for side in (zeros, ones)]
        if watcher._bank is None:
            continue
        if watcher._bank is not bank:
            bank, since = watcher._bank, [[], []]
            kept = [side.reshape(len(side), math.prod(side.shape[1:])) for side in (memory.zeros, memory.ones)]
        else:
            for coin in (0, 1):
                since[coin].append(rows[coin])
        for place, look in enumerate(watcher._cut):
            for coin in (0, 1):
                fresh = look.values(kept[coin]) if look.learner is None else copy.copy(look).train(tuple(kept))[coin]
                first = look.cells.count(fresh)
                rest = [look.cells.count(look.values(part)) for part in since[coin] if len(part)]
                expected = np.sum([first, *rest], axis=0)
                assert bank.counts[coin][bank.slices[place]].tolist() == np.asarray(expected).tolist(), look.name


class Memoriser:
    """Learns by heart: says 1 of the rows that it was fitted on, and 0 of all others."""

    name, start, heavy, most = "memoriser", 8, False, 1 << 20

    def __init__(self, blind=False):
        self.blind = blind

    def fit(self, rows, labels):
        known = set(rows[:, 0].tolist())
        assert labels.shape == (len(rows),)
        return lambda new: np.array([value in known for value in new[:, 0].tolist()], float)


@pytest.mark.parametrize("size", [10, 11, 400, 4 * module.FEW_ROWS])
def test_no_call_is_counted_by_what_was_learned_from_it(size):
    """Else whatever a learner makes up would look like odds; only who ignores the coins may look twice."""
    sides = tuple(np.arange(size * coin, size * coin + size, dtype=float)[:, None] for coin in (0, 1))
    look = module._Look("memoriser", None, Memoriser())
    values = look.train(sides)
    assert not np.concatenate(values).any()
    assert all(size // 2 <= len(side) <= size for side in values)
    look = module._Look("memoriser", None, Memoriser(blind=True))
    assert np.concatenate(look.train(sides)).all()
    assert look.values(sides[0]).all()


@pytest.mark.parametrize("kind", ["number", "bits", "half new"])
def test_a_forecast_of_an_output_depends_on_earlier_batches_only(kind):
    """Two watchers of the same past, asked of a batch and of the batch with its coins exchanged, say the same."""
    first, second = opened(kind), opened(kind)
    past, now = SIZES[:-1], list(batches(kind, SIZES))[-1]
    for watcher in (first, second):
        memory = Memory()
        for ones, zeros in itertools.islice(batches(kind, SIZES), len(past)):
            watcher.forecast(batch(ones, zeros))
            memory.add(ones, zeros)
            watcher.learn(memory, stalled=True)
    for one, other in zip(first.forecast(batch(*now)), second.forecast(batch(*now[::-1])), strict=True):
        assert one.log_odds.tolist() == other.log_odds.tolist()
        assert (one.ones.tolist(), one.zeros.tolist()) == (other.zeros.tolist(), other.ones.tolist())


@pytest.mark.parametrize("kind", ["bits", "matrix", "half new", "constant"])
def test_counting_by_output_is_counting_by_call(kind, monkeypatch):
    """Few different outputs are counted once each; those that were never seen are looked at one by one."""
    said = []
    for names in (module.MOST_NAMES, -1):
        monkeypatch.setattr(module, "MOST_NAMES", names)
        watcher, memory = opened(kind), Memory()
        said.append([])
        for ones, zeros in batches(kind, SIZES):
            said[-1].append(
                [(f.log_odds.tolist(), f.ones.tolist(), f.zeros.tolist()) for f in watcher.forecast(batch(ones, zeros))]
            )
            memory.add(ones, zeros)
            watcher.learn(memory, stalled=True)
        assert (watcher._alphabet is None) == (names < 0 or kind == "half new")
    assert said[0] == said[1]


def test_before_both_coins_were_seen_everybody_abstains():
    watcher, memory = opened("number"), Memory()
    for _ in range(5):
        assert all(f.log_odds.shape[1] == 0 for f in watcher.forecast(batch(np.ones(4), np.ones(0))))
        memory.add(np.ones(4), np.ones(0))
        watcher.learn(memory, stalled=True)
    memory.add(np.ones(0), np.ones(4))
    watcher.learn(memory, stalled=True)
    said = watcher.forecast(batch(np.ones(3), np.ones(2)))
    assert any(f.log_odds.shape[1] for f in said)


def test_names_are_watched_only_where_they_come_again():
    for kind, again in (("bits", True), ("vector", False), ("constant", True)):
        watcher, memory = opened(kind), Memory()
        for ones, zeros in batches(kind, [200]):
            memory.add(ones, zeros)
            watcher.learn(memory, stalled=True)
        (look,) = [look for look in watcher._looks if look.name == "fingerprint"]
        assert (look.cells is not None) == again
        assert look.cells is None or isinstance(look.cells, Names)


def test_a_full_memory_ends_learning_and_not_counting(monkeypatch):
    from auditdp.betting import memory as memory_module

    monkeypatch.setattr(memory_module, "MOST_BYTES", 400)
    watcher, memory = opened("number"), Memory()
    for ones, zeros in batches("number", [30, 30, 200, 100]):
        watcher.forecast(batch(ones, zeros))
        memory.add(ones, zeros)
        watcher.learn(memory, stalled=True)
    assert memory.full
    assert watcher._bank.counts[:, watcher._bank.slices[0]].sum() == 360


def test_scores_are_never_asked_for_nothing():
    """People's score functions need not know what to do with no outputs; a batch with one coin alone has none."""

    def score(rows):
        return np.full(len(rows), rows.max())

    watcher, memory = opened("vector", prepare=score), Memory()
    assert {name.split(" in ")[0] for name in watcher.names} == {"value", "fingerprint"}
    for ones, zeros in [
        (np.ones((3, 3)), np.ones((0, 3))),
        (np.ones((0, 3)), np.ones((20, 3))),
        *batches("vector", [3, 9]),
    ]:
        watcher.forecast(batch(ones, zeros))
        memory.add(ones, zeros)
        watcher.learn(memory, stalled=True)
    watcher.forecast(batch(np.ones((3, 3)), np.ones((0, 3))))


def test_every_forecaster_has_a_name_of_its_own():
    for kind in KINDS:
        watcher = opened(kind)
        rows = np.zeros((1, math.prod(outputs(kind, 0, 1, np.random.default_rng(0)).shape[1:])))
        looks = len(views_of(rows, watcher.pair, with_inputs=False))
        assert len(set(watcher.names)) == len(watcher.names) >= (looks + 1) * len(VARIANTS)


def taught(kind, sizes=(300,)):
    watcher, memory = opened(kind), Memory()
    for ones, zeros in batches(kind, sizes):
        watcher.forecast(batch(ones, zeros))
        memory.add(ones, zeros)
        watcher.learn(memory, stalled=True)
    return watcher, memory


def handicap(watcher, best, calls=100):
    """Rank the views so that those at the places ``best`` earned, in this order."""
    won = np.full((len(watcher._looks), len(VARIANTS), 3), -1.0)
    for place, look in enumerate(best):
        won[look] = 100.0 - place
    watcher.rank(won.reshape(-1, 3), calls)


def test_the_best_views_see_everything_and_the_others_a_part():
    watcher, _ = taught("vector")
    best = [4, 0, 9, 2, 7]
    handicap(watcher, best)
    assert [k for k, look in enumerate(watcher._looks) if look.every == 1] == sorted(best)
    assert {look.every for look in watcher._looks} == {1, module.HANDICAP}
    handicap(watcher, [1], calls=module.MANY_CALLS)
    assert [k for k, look in enumerate(watcher._looks) if look.every == 1] == [1]
    assert {look.every for look in watcher._looks} == {1, module.LATE_HANDICAP}


def test_a_heavy_view_sees_everything_where_it_leads_and_late_only_where_it_clearly_does():
    watcher, _ = taught("vector")
    (heavy,) = [k for k, look in enumerate(watcher._looks) if look.learner is not None and look.learner.heavy]
    handicap(watcher, [0, heavy])
    assert watcher._looks[heavy].every == module.HANDICAP
    handicap(watcher, [heavy, 0])  # by 1
    assert watcher._looks[heavy].every == 1
    handicap(watcher, [heavy, 0], calls=module.MANY_CALLS)
    assert watcher._looks[heavy].every == module.LATE_HANDICAP
    handicap(watcher, [heavy], calls=module.MANY_CALLS)  # by 101
    assert watcher._looks[heavy].every == 1


def test_a_view_that_sees_a_part_forecasts_and_counts_that_part_alone():
    watcher, memory = taught("vector")
    handicap(watcher, range(module.WHOLE))
    before = watcher._bank.counts.copy()
    ((ones, zeros),) = batches("vector", [100], seed=5)
    said = watcher.forecast(batch(ones, zeros))
    whole = {True: 100, False: -(-100 // module.HANDICAP)}
    for f, look in zip(said, watcher._looks, strict=True):
        if look.cells is not None:
            assert f.ones.sum() + f.zeros.sum() == whole[look.every == 1]
    memory.add(ones, zeros)
    watcher.learn(memory, stalled=True)
    counted = watcher._bank.counts - before
    for place, look in enumerate(watcher._cut):
        assert counted[:, watcher._bank.slices[place]].sum() == whole[look.every == 1]


def test_a_recut_counts_everything_that_is_kept_again():
    watcher, memory = taught("number")
    handicap(watcher, [0])
    for look in watcher._looks:
        look.every = 8
    for ones, zeros in batches("number", [50, 400], seed=6):
        watcher.forecast(batch(ones, zeros))
        memory.add(ones, zeros)
        watcher.learn(memory, stalled=True)
    assert watcher._bank.counts[:, watcher._bank.slices[0]].sum() == memory.calls == 750
    assert {look.every for look in watcher._looks} == {8}


@pytest.mark.parametrize(
    ("zeros", "ones", "every"), [(5, 7, 3), (0, 9, 4), (1, 0, 8), (40, 30, 64), (3, 0, 3), (0, 0, 8)]
)
def test_which_calls_are_left_out_does_not_depend_on_their_coins(zeros, ones, every):
    """The part has a fixed size, and its coins are those of a part drawn without looking: hypergeometric.

    4,000 draws: the mean lies within six standard errors of its value, up to 2e-9 by normality.
    """
    watcher = opened("number")
    sides = np.zeros((zeros, 1)), np.zeros((ones, 1))
    drawn = np.array([watcher._first(every, sides) for _ in range(4_000)])
    size = -(-(zeros + ones) // every)
    assert (drawn.sum(axis=1) == size).all()
    assert (drawn <= [zeros, ones]).all()
    if zeros and ones and size < zeros + ones:
        law = hypergeom(zeros + ones, zeros, size)
        assert abs(drawn[:, 0].mean() - law.mean()) <= 6 * law.std() / math.sqrt(4_000) + 1e-12
    assert watcher._first(1, sides) == (zeros, ones)


def test_the_cells_draw_what_a_call_may_earn():
    """Many counts of randomised response at 2: the growth against 1 is p ln(p/q) + (1-p) ln((1-p)/(1-q)), about .054."""
    watcher, memory = opened("bit"), Memory()
    rng = np.random.default_rng(0)
    assert watcher.plausible_growth(1.0, rng, None) == math.inf
    p, q = 1 / (1 + math.exp(-2)), 1 / (1 + math.exp(-1))
    ones, zeros = rng.random(20_000) < p, rng.random(20_000) < 1 - p
    memory.add(ones, zeros)
    watcher.learn(memory, stalled=True)
    growth = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    assert watcher.plausible_growth(1.0, rng, None) == pytest.approx(growth, rel=0.2)
    assert watcher.plausible_growth(1.0, rng, VARIANTS.index("cells")) == pytest.approx(growth, rel=0.2)
    assert watcher.plausible_growth(3.0, rng, None) == 0.0
