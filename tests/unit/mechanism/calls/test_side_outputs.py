"""Side outputs of calls: found in all streams, and observed as a part of the output."""

import logging
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from auditdp import Audit, PureDP
from auditdp.errors import CollectionError
from auditdp.mechanism.calls.calling import Shown
from auditdp.mechanism.calls.observed import Observed
from auditdp.mechanism.calls.side_outputs import content
from auditdp.testing import LaplaceMechanism
from tests.unit.mechanism.toys import calls_of, generator

LOG = logging.getLogger("auditdp.tests.showing")


def prints(x, rng):
    print("count", x)
    sys.stderr.write("done\n")


def prints_always(x, rng):
    print("working")


def prints_noise(x, rng):
    print(rng.random())


def prints_elsewhere(x, rng):
    print(np.random.random())  # noqa: NPY002


def logs(x, rng):
    LOG.info("count %d", x)


def warns(x, rng):
    warnings.warn(f"count {x}", stacklevel=1)


def writes(x, rng):
    Path("log.txt").write_text(str(x))
    with open("table", "wb") as file:
        file.write(b"\xff" * x)


@pytest.mark.parametrize(
    ("mechanism", "shown"),
    [
        (prints, [Shown("stdout", 2, True)]),
        (prints_always, [Shown("stdout", 1, False)]),
        (prints_noise, [Shown("stdout", 1, False)]),
        (prints_elsewhere, [Shown("stdout", 1, None)]),
        (logs, [Shown("logging", 1, True)]),
        (warns, [Shown("logging", 1, True)]),
        (writes, [Shown("files", 2, True)]),
        (LaplaceMechanism(1.0), []),
    ],
)
@pytest.mark.filterwarnings("always:count")
def test_side_outputs_are_found_and_whether_they_depend_on_the_input(
    mechanism, shown, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    calls = calls_of(mechanism)
    rng = generator()
    calls.look([1, 2], rng)
    assert calls.shown == shown
    # The search for side outputs draws nothing.
    plain = calls_of(mechanism)
    again = generator()
    plain._represent([plain.outputs(x, 8, again) for x in (1, 2)])
    assert rng.random() == again.random()


@pytest.mark.parametrize(
    ("stream", "mechanism", "observed"),
    [
        ("stdout", prints, "count 2\ndone\n"),
        ("logging", logs, ["INFO auditdp.tests.showing: count 2"]),
        ("files", writes, {"log.txt": "2", "table": b"\xff\xff"}),
    ],
)
def test_an_observed_stream_is_part_of_the_output_and_goes_nowhere_else(
    stream, mechanism, observed, capfd, caplog
):
    def vectorised(x, size, *, rng):
        return [mechanism(x, rng) for _ in range(size)]

    here = os.getcwd()
    for each in (mechanism, vectorised):
        outputs = Observed(each, [stream])(2, 1, rng=generator())
        assert outputs == [{"output": None, stream: observed}]
    assert (*capfd.readouterr(), caplog.records, os.getcwd()) == ("", "", [], here)
    assert "log.txt" not in os.listdir()


def test_the_law_of_the_returned_value_is_not_that_of_the_observed_one():
    mechanism = LaplaceMechanism(1.0)
    built = Audit(mechanism, PureDP(1.0), [(0.0, 1.0)], observe=["stdout"])
    assert built.mechanism.name == mechanism.name
    assert hasattr(mechanism, "distribution")
    assert not hasattr(built.mechanism, "distribution")


def test_an_unknown_stream_is_refused():
    with pytest.raises(CollectionError, match=r"'stdot'.*did you mean 'stdout'"):
        Audit(prints, PureDP(1.0), [(0, 1)], observe=["stdot"])


MOST = 1 << 20


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (b"a" * (MOST - 1) + "ä".encode(), "a" * (MOST - 1)),
        (b"a\xc3", b"a\xc3"),
        (b"a" * MOST, "a" * MOST),
    ],
    ids=["cut inside a character", "incomplete", "long"],
)
def test_a_long_file_is_text_wherever_it_is_cut(tmp_path, written, expected):
    path = tmp_path / "out"
    path.write_bytes(written)
    assert content(path) == expected
