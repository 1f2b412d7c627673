"""``auditdp run --continue``: the game of a recorded audit goes on, and the record says so."""

import json
import shlex
import shutil

import pytest

pytestmark = pytest.mark.dear

AUDITS = """
@audit()
def played(epsilon=1.15):
    return Audit(Response(epsilon), PureDP(1.0), BITS, evidence=["game"], calls=600)

@audit(smallest={"epsilon": [0.8, 0.9]})
def sizes(epsilon=1.0):
    return Audit(Response(epsilon), PureDP(1.0), BITS, evidence=["game"], calls=300)
"""


@pytest.fixture(scope="module")
def recorded(shared_project):
    """A project and the record of a run, whose log is ``first.jsonl``."""
    shared_project.audits(AUDITS)
    run = "run --seed 2 --alpha 0.02 --format json --log first.jsonl"
    return shared_project, shared_project(run)


def game(result):
    (found,) = [each for each in result["evidence"] if each["kind"] == "game"]
    return found


def continued(project, options, log):
    """Go on with a copy of the recorded run."""
    path = project.root / log
    if not path.exists():
        shutil.copy(project.root / "first.jsonl", path)
    return project(f"run --continue {options} --log {log} --format json")


@pytest.mark.full
def test_a_game_goes_on_and_on_with_all_that_it_has_won(recorded):
    project, run = recorded
    before = run.audit("played")
    outcome = continued(project, "played --calls 900", "log.jsonl")
    (found,) = outcome.record["results"]
    first, second = game(found)["details"]["parts"]
    assert first == {name: game(before)[name] for name in ("calls", "log_e_value")}
    assert second == {name: game(found)[name] for name in ("calls", "log_e_value")}
    assert first["calls"] < second["calls"] <= 900
    assert found["alpha"] == before["alpha"] == 0.01
    arguments = outcome.record["arguments"]
    stated = [arguments["continued"][name] for name in ("run", "calls", "log")]
    assert stated == [run.record["run"], first["calls"], "log.1.jsonl"]
    assert arguments["budget"] == "standard,900"
    assert f"goes on after {first['calls']} calls" in outcome.err
    assert "the run that is continued, which is kept as log.1.jsonl" in outcome.err
    kept, whole = (project.root / name for name in ("log.1.jsonl", "first.jsonl"))
    assert kept.read_bytes() == whole.read_bytes()

    again = continued(project, "played --find level:1.2", "log.jsonl")
    played = again.audit("played")
    assert game(played)["details"]["parts"][:2] == [first, second]
    assert (game(played)["verdict"], again.code) == ("VIOLATED", 1)
    assert again.record["arguments"]["budget"] == "standard,900,level:1.2"

    replayed = project("replay played --run log.jsonl")
    assert "same outcome as the recorded run: VIOLATED" in replayed.err
    command = shlex.split(played["reproduce"])[1:]
    reproduced = project(*command, "--format", "json").audit("played")
    assert game(reproduced) == game(played)


@pytest.mark.full
def test_one_that_was_interrupted_begins_again(recorded):
    project, _ = recorded
    whole = continued(project, "played --calls 800", "cut.jsonl").untimed
    log = project.root / "cut.jsonl"
    # It was killed before the audit had finished.
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[0])
    again = continued(project, "played --calls 800", "cut.jsonl")
    assert again.untimed["results"] == whole["results"]
    assert again.record["arguments"]["continued"]["log"] == "cut.1.jsonl"
    assert not (project.root / "cut.2.jsonl").exists()


def test_another_game_does_not_go_on(recorded):
    project, _ = recorded
    sizes = continued(project, "sizes --calls 900", "sizes.jsonl")
    assert sizes.code == 3
    assert "tries several sizes, each in a game of its own" in sizes.text
    project.audits(AUDITS.replace("played(epsilon=1.15)", "played(epsilon=1.1)"))
    outcome = continued(project, "played --calls 900", "other.jsonl")
    project.audits(AUDITS)
    assert outcome.code == 3
    summary = outcome.audit("played")["summary"]
    assert "this is another game; run it anew" in summary


@pytest.mark.full
def test_parameters_seed_and_the_share_of_alpha_are_those_of_the_run(project):
    project.audits(AUDITS)
    run = "run -k played --seed 7 --alpha 0.2 -P epsilon=1.05 --format json"
    then = project(run).audit("played")
    outcome = project("run --continue played --calls 900 --format json")
    now = outcome.audit("played")
    assert game(now)["details"]["parts"][0]["log_e_value"] == game(then)["log_e_value"]
    assert (now["parameters"], now["alpha"]) == ({"epsilon": 1.05}, 0.2)
    assert outcome.record["root_seed"] == 7
    lines = (project.root / ".auditdp/run.jsonl").read_text().splitlines()
    kinds = [json.loads(line)["kind"] for line in lines]
    assert kinds == ["header", "result", "end"]
