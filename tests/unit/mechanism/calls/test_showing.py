"""What calls show beside their outputs: seen in all streams, told where it depends on the input, and observed."""

import logging
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from auditdp import Audit, PureDP
from auditdp.errors import CollectionError
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.calling import Shown
from auditdp.mechanism.calls.observed import Observed
from auditdp.mechanism.protocol import as_mechanism
from auditdp.testing import LaplaceMechanism

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


SHOWN = {
    prints: [Shown("stdout", 2, True)],
    prints_always: [Shown("stdout", 1, False)],
    prints_noise: [Shown("stdout", 1, False)],
    prints_elsewhere: [Shown("stdout", 1, None)],
    logs: [Shown("logging", 1, True)],
    warns: [Shown("logging", 1, True)],
    writes: [Shown("files", 2, True)],
    LaplaceMechanism(1.0): [],
}


@pytest.mark.parametrize(
    ("mechanism", "shown"),
    SHOWN.items(),
    ids=lambda each: getattr(each, "__name__", ""),
)
@pytest.mark.filterwarnings("always:count")
def test_what_calls_show_is_seen_and_whether_it_depends_on_the_input(
    mechanism, shown, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    calls, rng = Calls(as_mechanism(mechanism)), np.random.default_rng(0)
    calls.look([1, 2], rng)
    assert calls.shown == shown
    plain, again = Calls(as_mechanism(mechanism)), np.random.default_rng(0)
    plain._represent([plain.outputs(x, 8, again) for x in (1, 2)])
    assert rng.random() == again.random()  # the look for it draws nothing


OBSERVED = {
    "stdout": (prints, "count 2\ndone\n"),
    "logging": (logs, ["INFO auditdp.tests.showing: count 2"]),
    "files": (writes, {"log.txt": "2", "table": b"\xff\xff"}),
}


@pytest.mark.parametrize("stream", OBSERVED)
def test_what_is_observed_is_part_of_the_output_and_nobody_else_sees_it(
    stream, capfd, caplog
):
    mechanism, seen = OBSERVED[stream]
    here, mechanisms = (
        os.getcwd(),
        [mechanism, lambda x, size, *, rng: [mechanism(x, rng) for _ in range(size)]],
    )
    for each in mechanisms:
        rng = np.random.default_rng(0)
        assert Observed(each, [stream])(2, 1, rng=rng) == [
            {"output": None, stream: seen}
        ]
    assert (*capfd.readouterr(), caplog.records, os.getcwd()) == ("", "", [], here)
    assert "log.txt" not in os.listdir()


def test_a_law_of_what_is_returned_is_none_of_what_is_observed():
    built = Audit(LaplaceMechanism(1.0), PureDP(1.0), [(0.0, 1.0)], observe=["stdout"])
    assert built.mechanism.name == LaplaceMechanism(1.0).name
    assert not hasattr(built.mechanism, "distribution")
    assert hasattr(LaplaceMechanism(1.0), "distribution")


def test_a_stream_that_there_is_not_is_refused():
    with pytest.raises(CollectionError, match=r"'stdot'.*did you mean 'stdout'"):
        Audit(prints, PureDP(1.0), [(0, 1)], observe=["stdot"])
