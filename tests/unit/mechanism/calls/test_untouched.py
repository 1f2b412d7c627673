"""Processes whose state no call has touched: what starts afresh in each."""

import gc

import numpy as np
import pytest

from auditdp import unseeded
from auditdp.mechanism.calls.calling import Calls, Run
from auditdp.mechanism.calls.untouched import starting_untouched, untouched

RNG = np.random.default_rng(1)


@unseeded
def of_a_module(data, size):
    return data + RNG.laplace(size=size)


@pytest.mark.parametrize(
    "frozen",
    [False, True],
    ids=["plain", "frozen, as after the import of an audit file"],
)
def test_generators_of_a_module_start_afresh_in_every_process(frozen):
    calls = Calls(of_a_module)
    calls.runs([Run(0.0, 4, 1)])
    if frozen:
        gc.freeze()
    try:
        with starting_untouched(of_a_module):
            process = untouched(of_a_module)
            process.start()
            rows = process.rows(calls, [[Run(0.0, 4, 1)], [Run(0.0, 4, 1)]], seconds=10)
    finally:
        gc.unfreeze()
    assert len({row.tobytes() for row in rows}) == 2
