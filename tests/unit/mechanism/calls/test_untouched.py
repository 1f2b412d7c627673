"""Processes whose state no call has touched."""

import gc

import pytest

from auditdp import unseeded
from auditdp.mechanism.calls.calling import Calls, Run
from auditdp.mechanism.calls.untouched import starting_untouched, untouched
from tests.unit.mechanism.toys import generator

RNG = generator(1)


@unseeded
def of_a_module(data, size):
    return data + RNG.laplace(size=size)


# Objects are frozen after the import of an audit file.
@pytest.mark.parametrize("frozen", [False, True])
def test_generators_of_a_module_start_afresh_in_every_process(frozen):
    calls, runs = Calls(of_a_module), [Run(0.0, 4, 1)]
    calls.runs(runs)
    if frozen:
        gc.freeze()
    try:
        with starting_untouched(of_a_module):
            process = untouched(of_a_module)
            process.start()
            rows = process.rows(calls, [runs, runs], seconds=10)
    finally:
        gc.unfreeze()
    assert rows[0].tobytes() != rows[1].tobytes()
