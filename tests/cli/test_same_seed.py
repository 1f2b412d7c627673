"""The same seed gives the same record: for any number of workers, in any process."""

import pytest

from tests.cli.conftest import RUN

pytestmark = pytest.mark.dear

AUDITS = """
from functools import partial

class Tilted:
    def __init__(self, tilt):
        self.tilt = tilt

    def __call__(self, data, size, *, rng):
        return rng.random(size) < 0.5 + self.tilt * data

def tilted(data, rng, tilt=0.0):
    return rng.random(3) + tilt * data

@audit()
def responses(epsilon=1.0):
    return Audit(Response(epsilon), PureDP(epsilon), BITS, controls=[Response(3 * epsilon)], calls=400)

@audit()
def numbers():
    return Audit(LaplaceMechanism(1.0), PureDP(1.0), [(0.0, 1.0), (1.0, 0.0)], calls=400)

@audit()
def promise():
    return Audit(LaplaceMechanism(1.0), Unbiased(float, margin=1.0), inputs={"0": [0.0]}, calls=400)

@audit()
def crashes():
    return Audit(coin, PureDP(-1.0), BITS)

@audit()
def plotted():
    points = lambda rng: {"scatter": {"series": [{"points": rng.random((2, 2)).tolist()}]}}
    return Audit(Response(0.5), PureDP(1.0), BITS, evidence=["exact"], figure=points)

@audit()
def object_without_a_name():
    return Audit(Tilted(0.1), PureDP(1.0), BITS, controls=[Tilted(0.5)], calls=400)

@audit()
def partial_function():
    return Audit(partial(tilted, tilt=0.01), PureDP(1.0), BITS, calls=100)
"""


@pytest.fixture(scope="module")
def alone(shared_project):
    shared_project.audits(AUDITS)
    return shared_project.run()


def test_two_workers_give_the_record_of_one(shared_project, alone):
    assert shared_project.run("-n 2").untimed == alone.untimed


@pytest.mark.full
def test_another_process_gives_the_same_record(shared_project, alone):
    """Python shows an object with its address in memory, which the record does not have."""
    assert shared_project.script(f"{RUN} --format json").untimed == alone.untimed


@pytest.mark.full
def test_another_seed_gives_other_outcomes(shared_project, alone):
    other = shared_project.run("--seed 2")
    assert other.record["root_seed"] == 2
    for name in ("responses", "numbers", "plotted"):
        assert other.audit(name)["evidence"] != alone.audit(name)["evidence"]


@pytest.mark.full
def test_an_audit_gives_the_same_outcome_whatever_runs_beside_it(shared_project, alone):
    share = alone.audit("numbers")["alpha"]
    only = shared_project.run(f"audits/audit_it.py::numbers --alpha {share}")
    assert only.audit("numbers")["evidence"] == alone.audit("numbers")["evidence"]


@pytest.mark.full
def test_a_run_without_a_seed_draws_another_one_every_time(project):
    project.audits(
        "@audit()\ndef fine():\n    return Audit(coin, PureDP(1.0), BITS, calls=50)\n"
    )
    runs = [project("run --budget quick --format json").record for _ in range(2)]
    assert runs[0]["root_seed"] != runs[1]["root_seed"]
