"""The same seed gives the same record: for any number of workers, in any process."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.dear

AUDITS = """
def coin(data, size, *, rng):
    return rng.integers(0, 2, size)

class Tilted:
    def __init__(self, tilt):
        self.tilt = tilt

    def __call__(self, data, size, *, rng):
        return rng.random(size) < 0.5 + self.tilt * data

def tilted(data, rng, tilt=0.0):
    return rng.random(3) + tilt * data

@audit()
def responses(epsilon=1.0):
    return Audit(Response(epsilon), PureDP(epsilon), AnyValues((0, 1)), controls=[Response(3 * epsilon)], calls=400)

@audit()
def numbers():
    return Audit(LaplaceMechanism(1.0), PureDP(1.0), [(0.0, 1.0), (1.0, 0.0)], calls=400)

@audit()
def promise():
    return Audit(LaplaceMechanism(1.0), Unbiased(float, margin=1.0), inputs={"0": [0.0]}, calls=400)

@audit()
def crashes():
    return Audit(coin, PureDP(-1.0), AnyValues((0, 1)))

@audit()
def plotted():
    points = lambda rng: {"scatter": {"series": [{"points": rng.random((2, 2)).tolist()}]}}
    return Audit(Response(0.5), PureDP(1.0), AnyValues((0, 1)), evidence=["exact"], figure=points)
"""
ANONYMOUS = """
from functools import partial

@audit()
def object_of_a_class():
    return Audit(Tilted(0.1), PureDP(1.0), AnyValues((0, 1)), controls=[Tilted(0.5)], calls=400)

@audit()
def partial_function():
    return Audit(partial(tilted, tilt=0.01), PureDP(1.0), AnyValues((0, 1)), calls=100)
"""


@pytest.fixture(scope="module")
def alone(shared_project):
    shared_project.audits(AUDITS + ANONYMOUS)
    return shared_project.run("-k", "not object and not partial")


def test_two_workers_give_the_record_of_one(shared_project, alone):
    assert (
        shared_project.run("-k", "not object and not partial", "-n", "2").untimed
        == alone.untimed
    )


@pytest.mark.full
def test_another_process_gives_the_same_record(shared_project, alone):
    outcome = shared_project.script(
        *(
            "run",
            "--seed",
            "1",
            "--budget",
            "quick",
            "--format",
            "json",
            "-k",
            "not object and not partial",
        )
    )
    assert outcome.untimed == alone.untimed


@pytest.mark.full
def test_mechanisms_without_a_name_give_the_same_record(shared_project, alone):
    """What Python shows of an object ends with where it lies in memory."""
    arguments = (
        "run",
        "--seed",
        "1",
        "--budget",
        "quick",
        "--format",
        "json",
        "-k",
        "object or partial",
    )
    assert (
        shared_project(*arguments).untimed == shared_project.script(*arguments).untimed
    )


@pytest.mark.full
def test_another_seed_gives_other_outcomes(shared_project, alone):
    other = shared_project.run("-k", "not object and not partial", "--seed", "2")
    assert other.record["root_seed"] == 2
    for name in ("responses", "numbers"):
        one, two = (
            [
                e["log_e_value"]
                for e in run.audit(name)["evidence"]
                if e["kind"] == "game"
            ]
            for run in (other, alone)
        )
        assert one != two
    assert (
        other.audit("plotted")["evidence"][-1]["details"]
        != alone.audit("plotted")["evidence"][-1]["details"]
    )


@pytest.mark.full
def test_an_audit_gives_the_same_outcome_whatever_runs_beside_it(shared_project, alone):
    only = shared_project.run("audits/audit_it.py::numbers", "--alpha", str(0.05 / 5))
    assert only.audit("numbers")["evidence"] == alone.audit("numbers")["evidence"]


@pytest.mark.full
def test_a_run_without_a_seed_draws_another_one_every_time(project):
    project.audits(
        "@audit()\ndef fine():\n    return Audit(Response(0.5), PureDP(1.0), AnyValues((0, 1)), calls=50)\n"
    )
    seeds = {
        project("run", "--budget", "quick", "--format", "json").record["root_seed"]
        for _ in range(2)
    }
    assert len(seeds) == 2
