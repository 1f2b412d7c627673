import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from auditdp.betting.forecasters.learned_views import Trees
from auditdp.bounds.one_event import learned_scores


def pools():
    """Return the threads of every OpenMP that the trees may run on; torch brings one of its own, which is none of theirs."""
    openmp = [pool for pool in threadpool_info() if pool["user_api"] == "openmp"]
    return [pool["num_threads"] for pool in openmp if "torch" not in pool["filepath"]]


@pytest.fixture
def threads(monkeypatch):
    """How many threads every fit and every reading of boosted trees may use, on a machine that offers four."""
    from sklearn.ensemble import HistGradientBoostingClassifier as Model

    seen = []

    def watched(method):
        def call(*arguments, **options):
            seen.extend(pools())
            return method(*arguments, **options)

        return call

    monkeypatch.setattr(Model, "fit", watched(Model.fit))
    monkeypatch.setattr(Model, "decision_function", watched(Model.decision_function))
    with threadpool_limits(limits=4):
        assert 4 in pools()
        yield seen


ROWS = np.random.default_rng(0).normal(size=(400, 2))
LABELS = (ROWS[:, 0] > 0).astype(np.int8)


def test_trees_of_a_game_grow_on_one_thread(threads):
    Trees().fit(ROWS, LABELS)(ROWS)
    assert set(threads) == {1}


def test_trees_of_a_bound_grow_on_one_thread(threads):
    learned_scores(ROWS, LABELS, np.arange(400) < 200, np.random.default_rng(1))
    assert set(threads) == {1}
