"""Streams: the same for one key in any process, others for other keys; one thread."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import kstest
from threadpoolctl import threadpool_info, threadpool_limits

from auditdp.betting.forecasters.learned_views import Trees
from auditdp.bounds.one_event import learned_scores
from auditdp.numerics.streams import stream


def draw(root, *key):
    return stream(root, *key).integers(0, 2**63, 4).tolist()


def test_different_keys_give_different_streams():
    keys = [
        (0,),
        (0, 0),
        (0, ""),
        (0, "a"),
        (1, "a"),
        (2**40, "a"),
        (2**130, "a"),
        (0, "b"),
        (0, "ab"),
        (0, "a", "b"),
        (0, "a", 0),
        (0, "a", 1),
        (0, "a", "0"),
    ]
    assert len({tuple(draw(*key)) for key in keys}) == len(keys)


def test_another_process_draws_the_same():
    code = "from auditdp.numerics.streams import stream; print(stream(5, 'x', 1).integers(0, 2**63, 4).tolist())"
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(draw(5, "x", 1))


def test_nothing_global_changes():
    np.random.seed(1)  # noqa: NPY002 - the global state is what must not change
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    stream(0, "a").random(10)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


@pytest.mark.statistical
def test_first_numbers_of_neighbouring_streams_are_independent():
    """Uniform, and uniform after adding neighbours.

    Each test fails by chance with probability 1e-6.
    """
    firsts = np.array([stream(0, "batch", k).random() for k in range(2000)])
    assert kstest(firsts, "uniform").pvalue > 1e-6
    assert kstest((firsts[1:] + firsts[:-1]) % 1, "uniform").pvalue > 1e-6


# Threads.

ROWS = np.random.default_rng(0).normal(size=(400, 2))
LABELS = (ROWS[:, 0] > 0).astype(np.int8)


def pools():
    """The threads of every OpenMP that the trees may run on.

    Torch brings one of its own, which they do not use.
    """
    openmp = [pool for pool in threadpool_info() if pool["user_api"] == "openmp"]
    return [pool["num_threads"] for pool in openmp if "torch" not in pool["filepath"]]


def game():
    Trees().fit(ROWS, LABELS)(ROWS)


def bound():
    learned_scores(ROWS, LABELS, np.arange(400) < 200, np.random.default_rng(1))


@pytest.mark.parametrize("learn", [game, bound])
def test_trees_grow_on_one_thread_of_four(monkeypatch, learn):
    from sklearn.ensemble import HistGradientBoostingClassifier as Model

    threads = []

    def watched(method):
        def call(*arguments, **options):
            threads.extend(pools())
            return method(*arguments, **options)

        return call

    for name in ("fit", "decision_function"):
        monkeypatch.setattr(Model, name, watched(getattr(Model, name)))
    with threadpool_limits(limits=4):
        assert 4 in pools()
        learn()
    assert set(threads) == {1}
