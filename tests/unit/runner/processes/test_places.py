import functools
from pathlib import Path

import numpy as np

from auditdp.mechanism.protocol import as_mechanism, unseeded
from auditdp.record.results import Place
from auditdp.runner.places import place_of

ROOT = Path(__file__).parents[4]
HERE = "tests/unit/runner/processes/test_places.py"


def noisy(data, rng):
    return data + rng.laplace()


class Noisy:
    def __call__(self, data, size, *, rng):
        return data + rng.laplace(size=size)

    def method(self, data, size, *, rng):
        return self(data, size, rng=rng)


@functools.cache
def cached(data, rng):
    return data


def line_of(text):
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.startswith(text))


def test_what_is_wrapped_is_found():
    function, kind = (
        Place(HERE, line_of("def noisy")),
        Place(HERE, line_of("class Noisy")),
    )
    assert place_of(noisy, ROOT) == function
    assert place_of(as_mechanism(noisy), ROOT) == function
    assert place_of(unseeded(functools.partial(noisy, 3)), ROOT) == function
    assert place_of(Noisy(), ROOT) == place_of(Noisy, ROOT) == kind
    assert place_of(Noisy().method, ROOT) == Place(HERE, line_of("    def method"))
    assert place_of(cached, ROOT) == Place(HERE, line_of("@functools.cache"))
    assert place_of(lambda data, rng: data, ROOT) == Place(
        HERE, line_of("    assert place_of(lambda")
    )


def test_what_is_defined_elsewhere_or_nowhere_has_no_place():
    made = {}
    exec("def made(data, rng): return data", made)
    for thing in (
        np.random.default_rng,
        np.float64,
        len,
        made["made"],
        type("Made", (), {})(),
        None,
        3,
    ):
        assert place_of(thing, ROOT) is None
    assert place_of(noisy, ROOT / "auditdp") is None
