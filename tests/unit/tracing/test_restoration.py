"""After a run everything that was replaced is as before, whatever happened in it."""

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

GENERATOR = np.random.default_rng(0)
LAPLACE = np.random.laplace
gauss = random.gauss


def record(function, data, rng):
    return Trace(function).record(data, rng)


def snapshot():
    """Everything that a trace may replace, by identity."""
    spaces = {
        "numpy": vars(np),
        "numpy.random": vars(np.random),
        "random": vars(random),
        "secrets": vars(secrets),
        "math": vars(math),
        "builtins": vars(builtins),
        "Random": vars(random.Random),
        "SystemRandom": vars(random.SystemRandom),
        "here": globals(),
    }
    found = {
        (space, name): id(value)
        for space, names in spaces.items()
        for name, value in names.items()
    }
    found = {
        key: value for key, value in found.items() if key[1] not in FUNCTIONS
    }  # which stay
    functions = (module_state, imported_names, converting, raising, interrupted)
    return found | {
        ("code", function.__name__): id(function.__code__) for function in functions
    }


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


@pytest.fixture(autouse=True)
def _nothing_stays():
    np.random.laplace()  # noqa: NPY002  # numpy makes names when they are first used
    before = snapshot()
    yield
    assert snapshot() == before


@pytest.mark.parametrize(
    "function", [module_state, imported_names, converting, raising]
)
def test_after_a_run(function):
    record(function, 1.0, np.random.default_rng(0))


def test_sources_of_the_module_are_watched_and_come_back():
    traced = record(module_state, 1.0, np.random.default_rng(0))
    assert traced.releases[0].law.family == "Laplace"
    assert type(GENERATOR) is np.random.Generator
    families = [
        release.law.family
        for release in record(imported_names, 1.0, np.random.default_rng(0)).releases
    ]
    assert families == ["Laplace", "Gaussian"]


def test_a_function_that_is_made_in_a_run_can_be_called_after_it():
    kept = []
    record(
        lambda v, rng: kept.append(lambda x: float(x)) or v + rng.laplace(),
        1,
        np.random.default_rng(0),
    )
    assert kept[0](2) == 2.0


def test_after_a_keyboard_interrupt():
    with pytest.raises(KeyboardInterrupt):
        record(interrupted, 1.0, np.random.default_rng(0))


def test_after_an_error_while_it_is_installed(monkeypatch):
    def breaks(patches, active):
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setitem(sources.LIBRARIES, "sys", breaks)
        with pytest.raises(ZeroDivisionError), Trace(converting):
            pass
    assert record(converting, 1, np.random.default_rng(0)).releases


def test_after_nested_and_several_traces():
    with Trace(converting) as one, Trace(module_state) as other, one:
        one.record(1, np.random.default_rng(0))
        other.record(1, np.random.default_rng(0))
        assert (
            type(np.random.default_rng(1)) is not WatchedGenerator
        )  # no run is under way
        assert [
            release.law.family
            for release in other.record(1, np.random.default_rng(0)).releases
        ] == ["Laplace"]


def test_a_closure_and_an_object_get_their_generators_back():
    rng = np.random.default_rng(3)

    class Noisy:
        def __init__(self):
            self.source = np.random.default_rng(4)

        def __call__(self, v, rng):
            return v + self.source.laplace()

    closed = lambda v, rng=rng: v + rng.normal()  # noqa: E731
    noisy, inner = Noisy(), (lambda source: lambda v, rng: v + source.normal())(rng)
    assert record(noisy, 1.0, np.random.default_rng(0)).releases[0].location == 1.0
    assert record(inner, 1.0, np.random.default_rng(0)).releases[0].location == 1.0
    assert record(closed, 1.0, np.random.default_rng(0)).releases[0].location == 1.0
    assert type(noisy.source) is np.random.Generator
    assert inner.__closure__[0].cell_contents is rng


def test_a_name_that_the_code_rebinds_stays_rebound():
    space = {"np": np, "rng": np.random.default_rng(0)}
    exec("def f(v, seed=0):\n    global rng\n    rng = 'mine'\n    return v", space)
    record(lambda v, rng: space["f"](v), 1.0, np.random.default_rng(0))
    assert space["rng"] == "mine"


def test_other_threads_draw_as_ever_while_a_trace_is_watched():
    found = []

    def elsewhere():
        found.append(np.random.default_rng(5).laplace())
        found.append(random.Random(5).gauss(0, 1))

    def slow(v, rng):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return v + rng.laplace()

    traced = record(slow, 1.0, np.random.default_rng(0))
    assert found == [np.random.default_rng(5).laplace(), random.Random(5).gauss(0, 1)]
    assert all(type(number) is float for number in found)
    assert len(traced.releases) == 1


def test_threads_that_trace_wait_for_each_other():
    outputs = {}

    def work(seed):
        outputs[seed] = record(converting, 1, np.random.default_rng(seed)).output

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outputs == {
        seed: converting(1, np.random.default_rng(seed)) for seed in range(8)
    }


def test_the_generator_is_left_where_a_plain_run_leaves_it():
    watched, plain = np.random.default_rng(2), np.random.default_rng(2)
    record(converting, 1, watched)
    converting(1, plain)
    assert watched.bit_generator.state == plain.bit_generator.state


def test_the_global_state_of_numpy_and_of_random_advances_as_in_a_plain_run():
    def mixed(v, rng):
        return v + np.random.normal() + random.gauss(0, 1) + random.random()  # noqa: NPY002

    def after(run):
        np.random.seed(1)  # noqa: NPY002
        random.seed(1)
        return run(), np.random.random(), random.random()  # noqa: NPY002

    assert after(lambda: record(mixed, 1.0, np.random.default_rng(0)).output) == after(
        lambda: mixed(1.0, None)
    )
