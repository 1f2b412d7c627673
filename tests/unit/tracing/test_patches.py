"""Everything that a run replaced is as before after it, whatever happened."""

import builtins
import math
import random
import secrets
import threading

import numpy as np
import pytest

from auditdp.tracing import Trace, sources
from auditdp.tracing.conversions import FUNCTIONS
from auditdp.tracing.generators import WatchedGenerator
from tests.unit.tracing.toys import families, record

GENERATOR = np.random.default_rng(0)
LAPLACE = np.random.laplace
gauss = random.gauss


def module_state(v, rng):
    return v + GENERATOR.laplace()


def imported_names(v, rng):
    return v + LAPLACE() + gauss(0, 1)


def converting(v, rng):
    return v + int(rng.geometric(0.5)) - int(rng.geometric(0.5))


def raising(v, rng):
    raise ValueError(v)


def interrupted(v, rng):
    rng.laplace()
    raise KeyboardInterrupt


FUNCTIONS_HERE = [module_state, imported_names, converting, raising, interrupted]


def snapshot():
    """Return the identity of everything that a trace may replace."""
    spaces = [np, np.random, random, secrets, math, builtins]
    spaces = [vars(each) for each in [*spaces, random.Random, random.SystemRandom]]
    found = {}
    for number, names in enumerate([*spaces, globals()]):
        for name, value in names.items():
            # The functions of conversions stay.
            if name not in FUNCTIONS:
                found[number, name] = id(value)
    return found | {function: id(function.__code__) for function in FUNCTIONS_HERE}


@pytest.fixture(autouse=True)
def _nothing_stays():
    np.random.laplace()  # noqa: NPY002  # numpy makes names when they are first used
    before = snapshot()
    yield
    assert snapshot() == before


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (module_state, ["Laplace"]),
        (imported_names, ["Laplace", "Gaussian"]),
        (converting, ["two-sided geometric"]),
        (raising, []),
    ],
)
def test_sources_are_watched_and_come_back(function, expected):
    assert families(record(function, 1.0)) == expected


def test_a_function_of_a_run_can_be_called_after_it():
    kept = []

    def code(v, rng):
        kept.append(lambda x: float(x))
        return v + rng.laplace()

    record(code, 1)
    assert kept[0](2) == 2.0


def test_after_a_keyboard_interrupt():
    with pytest.raises(KeyboardInterrupt):
        record(interrupted)


def test_after_an_error_while_it_is_installed(monkeypatch):
    def breaks(patches, active):
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setitem(sources.LIBRARIES, "sys", breaks)
        with pytest.raises(ZeroDivisionError), Trace(converting):
            pass
    assert record(converting, 1).releases


def test_after_nested_and_several_traces():
    with Trace(converting) as one, Trace(module_state) as other, one:
        one.record(1, np.random.default_rng(0))
        other.record(1, np.random.default_rng(0))
        # No run is under way here.
        assert type(np.random.default_rng(1)) is not WatchedGenerator
        assert families(other.record(1, np.random.default_rng(0))) == ["Laplace"]


def closed_over(source):
    return lambda v, rng: v + source.normal()


def test_a_closure_and_an_object_get_their_generators_back():
    source = np.random.default_rng(3)

    class Noisy:
        def __init__(self):
            self.source = np.random.default_rng(4)

        def __call__(self, v, rng):
            return v + self.source.laplace()

    def by_default(v, rng=source):
        return v + rng.normal()

    noisy = Noisy()
    inner = closed_over(source)
    for function in (noisy, inner, by_default):
        assert record(function, 1.0).releases[0].location == 1.0
    assert type(noisy.source) is np.random.Generator
    assert inner.__closure__[0].cell_contents is source


def test_a_name_that_the_code_rebinds_stays_rebound():
    space = {"np": np, "rng": np.random.default_rng(0)}
    exec("def f(v, seed=0):\n    global rng\n    rng = 'mine'\n    return v", space)
    record(lambda v, rng: space["f"](v), 1.0)
    assert space["rng"] == "mine"


def test_other_threads_draw_plain_numbers_while_a_trace_is_watched():
    found = []

    def elsewhere():
        found.append(np.random.default_rng(5).laplace())
        found.append(random.Random(5).gauss(0, 1))

    def slow(v, rng):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return v + rng.laplace()

    traced = record(slow, 1.0)
    assert found == [np.random.default_rng(5).laplace(), random.Random(5).gauss(0, 1)]
    assert [type(number) for number in found] == [float, float]
    assert len(traced.releases) == 1


def test_threads_that_trace_wait_for_each_other():
    outputs = {}

    def work(seed):
        outputs[seed] = record(converting, 1, seed).output

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(8):
        assert outputs[seed] == converting(1, np.random.default_rng(seed))


def test_generators_advance_as_in_a_plain_run():
    def mixed(v, rng):
        return v + np.random.normal() + random.gauss(0, 1) + rng.geometric(0.5)  # noqa: NPY002

    def after(run):
        np.random.seed(1)  # noqa: NPY002
        random.seed(1)
        rng = np.random.default_rng(2)
        return run(rng), np.random.random(), random.random(), rng.random()  # noqa: NPY002

    plain = after(lambda rng: mixed(1.0, rng))
    assert after(lambda rng: Trace(mixed).record(1.0, rng).output) == plain
