"""Clocks: one that is set forwards and back by hours while a run goes on changes no result, no limit and no duration."""

import os
import time

import pytest

from auditdp.runner.run_record import scan_log
from tests.cli.conftest import untimed
from tests.faults.catalogue import HEAD
from tests.faults.conftest import lines_of, results, script

pytestmark = [pytest.mark.faults, pytest.mark.usefixtures("without_sandbox")]
# Python imports this module in every process of a run, before anything else.
JUMPING = """
import datetime, time

TRUE, SINCE = time.time, time.monotonic
HOURS = 9 * 3600

def jumping():
    return TRUE() + (HOURS if int(SINCE()) % 2 else -HOURS)

class Jumping(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(jumping(), tz)

time.time = jumping
time.time_ns = lambda: int(jumping() * 1e9)
datetime.datetime = Jumping
"""
LIMIT = 5
AUDITS = (
    HEAD
    + f"""
def naps(data, size, *, rng):
    time.sleep(0.02)
    return rng.integers(0, 2, size)

@audit()
def holds():
    return sound()

@audit(timeout=60)
def takes_seconds():
    assert abs(time.time() - time.clock_gettime(time.CLOCK_REALTIME)) > 3600 or "PLAIN" in os.environ
    return Audit(naps, PureDP(1.0), BITS, calls=200)

@audit(timeout={LIMIT})
def never_ends():
    return Audit(lambda data, size, *, rng: time.sleep(3600), PureDP(1.0), BITS, calls=200)
"""
)


def test_a_clock_that_jumps_by_hours(root, tmp_path, workers, see):
    (root / "audits/audit_it.py").write_text(AUDITS)
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock/sitecustomize.py").write_text(JUMPING)
    before = filter(None, [os.environ.get("PYTHONPATH")])
    path = os.pathsep.join([str(tmp_path / "clock"), *before])
    command = f"run --seed 1 --format json -n {workers}"
    log = root / ".auditdp/run.jsonl"
    plain = results(script(root, command, PLAIN="1"))

    began = time.monotonic()
    jumping = results(script(root, command, PYTHONPATH=path))
    took = time.monotonic() - began

    times = {line["time"][:13] for line in lines_of(log)}
    assert len(times) > 1, "the clock did not jump"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:2]))
    resumed = results(script(root, f"{command} --resume", PYTHONPATH=path))

    same = untimed(plain) == untimed(jumping) == untimed(resumed)
    see(
        "the clock is set forwards and back by hours, every second",
        "every result and limit as without, and --resume too",
        "every result and limit as without, and --resume too" if same else "changed",
    )
    assert jumping["never_ends"]["verdict"] == "ERROR"
    assert f"stopped after {LIMIT} seconds" in jumping["never_ends"]["summary"]
    assert jumping["takes_seconds"]["verdict"] == "NOT_REFUTED"
    assert all(0 <= result["seconds"] <= took for result in jumping.values())
    assert scan_log(log).problems == []
