"""Streams: the same for the same key anywhere, different for different keys."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import kstest

from auditdp.numerics.streams import stream


def draw(root, *key):
    return stream(root, *key).integers(0, 2**63, 4).tolist()


def test_the_same_key_gives_the_same_stream():
    assert draw(7, "audit", "game", 3) == draw(7, "audit", "game", 3)


KEYS = [
    (0, "a"),
    (1, "a"),
    (0, "b"),
    (0, "a", 0),
    (0, "a", 1),
    (0, "a", "0"),
    (0, "ab"),
    (0, "a", "b"),
    (0,),
    (0, ""),
    (0, 0),
]


def test_different_keys_give_different_streams():
    drawn = {tuple(draw(*key)) for key in [*KEYS, (2**40, "a"), (2**130, "a")]}
    assert len(drawn) == len(KEYS) + 2


def test_another_process_draws_the_same():
    code = "from auditdp.numerics.streams import stream; print(stream(5, 'x', 1).integers(0, 2**63, 4).tolist())"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == str(draw(5, "x", 1))


def test_nothing_global_is_touched():
    np.random.seed(1)  # noqa: NPY002 - the global state is what must not change
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    stream(0, "a").random(10)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


@pytest.mark.statistical
def test_first_numbers_of_neighbouring_streams_look_independent():
    firsts = np.array([stream(0, "batch", k).random() for k in range(2000)])
    for sample, what in (
        (firsts, "uniform"),
        ((firsts[1:] + firsts[:-1]) % 1, "uniform after adding neighbours"),
    ):
        p = kstest(sample, "uniform").pvalue
        assert p > 1e-6, (
            f"first numbers of 2,000 streams are not {what}: p = {p:.2g} at alpha = 1e-6"
        )
