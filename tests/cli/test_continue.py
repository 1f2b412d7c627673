"""``auditdp run --continue``: the game of a recorded audit goes on, and the record says so."""

from __future__ import annotations

import json
import shlex

import pytest

pytestmark = pytest.mark.dear

AUDITS = """
BITS = AnyValues((0, 1))
draws = np.random.default_rng()

@audit()
def played(epsilon=1.15):
    return Audit(Response(epsilon), PureDP(1.0), BITS, evidence=["game"], calls=600)

@audit()
def proved():
    return Audit(Response(1.0), PureDP(1.0), BITS, evidence=["exact"])

@audit()
def own():
    return Audit(unseeded(lambda data: draws.normal()), PureDP(1.0), BITS, calls=300)

@audit(smallest={"epsilon": [0.8, 0.9]})
def sizes(epsilon=1.0):
    return Audit(Response(epsilon), PureDP(1.0), BITS, evidence=["game"], calls=300)

@audit()
def crashes():
    raise ValueError("broken")
"""
LOG = ".auditdp/run.jsonl"


@pytest.fixture(scope="module")
def recorded(shared_project):
    """A run of all of them, with its log kept as ``first.jsonl``."""
    shared_project.audits(AUDITS)
    record = shared_project(
        "run", "--seed", "2", "--format", "json", "--log", "first.jsonl"
    ).record
    return (
        shared_project,
        {result["id"].rpartition("::")[2]: result for result in record["results"]},
        record,
    )


def game(result):
    (found,) = [
        evidence for evidence in result["evidence"] if evidence["kind"] == "game"
    ]
    return found


def continued(project, *arguments):
    return project("run", "--continue", *arguments, "--format", "json")


@pytest.mark.full
def test_a_game_goes_on_and_on_with_all_that_it_has_won(recorded):
    project, before, record = recorded
    (project.root / "log.jsonl").write_bytes(
        (project.root / "first.jsonl").read_bytes()
    )
    outcome = continued(project, "played", "--calls", "600", "--log", "log.jsonl")
    (found,) = outcome.record["results"]
    first, second = game(found)["details"]["parts"]
    assert first == {"calls": 200, "log_e_value": game(before["played"])["log_e_value"]}
    assert (second["calls"], second["log_e_value"]) == (600, game(found)["log_e_value"])
    assert found["alpha"] == before["played"]["alpha"] == 0.01
    stated = outcome.record["arguments"]["continued"]
    assert (stated["run"], stated["calls"], stated["log"]) == (
        record["run"],
        200,
        "log.1.jsonl",
    )
    assert outcome.record["arguments"]["budget"] == "standard,600"
    assert "goes on after 200 calls" in outcome.err
    assert "the run that is continued, which is kept as log.1.jsonl" in outcome.err
    assert (project.root / "log.1.jsonl").read_bytes() == (
        project.root / "first.jsonl"
    ).read_bytes()

    again = continued(project, "played", "--find", "level:1.2", "--log", "log.jsonl")
    parts = game(again.record["results"][0])["details"]["parts"]
    assert parts[:2] == [first, second]
    assert game(again.record["results"][0])["verdict"] == "VIOLATED"
    assert (again.code, again.record["arguments"]["budget"]) == (
        1,
        "standard,600,level:1.2",
    )

    replayed = project("replay", "played", "--run", "log.jsonl")
    assert "same outcome as the recorded run: VIOLATED" in replayed.err
    command = shlex.split(again.record["results"][0]["reproduce"])[1:]
    assert game(project(*command, "--format", "json").record["results"][0]) == game(
        again.record["results"][0]
    )


@pytest.mark.full
def test_one_that_was_interrupted_begins_again(recorded):
    project, _, _ = recorded
    (project.root / "cut.jsonl").write_bytes(
        (project.root / "first.jsonl").read_bytes()
    )
    whole = continued(project, "played", "--calls", "500", "--log", "cut.jsonl").untimed
    log = project.root / "cut.jsonl"
    log.write_bytes(
        log.read_bytes().splitlines(keepends=True)[0]
    )  # killed before the audit had finished
    again = continued(project, "played", "--calls", "500", "--log", "cut.jsonl")
    assert again.untimed["results"] == whole["results"]
    assert again.record["arguments"]["continued"]["log"] == "cut.1.jsonl"
    assert not (project.root / "cut.2.jsonl").exists()


def test_another_audit_of_that_name_does_not_go_on(recorded):
    project, _, _ = recorded
    (project.root / "other.jsonl").write_text(
        (project.root / "first.jsonl").read_text()
    )
    project.audits(
        AUDITS.replace("def played(epsilon=1.15)", "def played(epsilon=1.1)")
    )
    outcome = continued(project, "played", "--calls", "600", "--log", "other.jsonl")
    project.audits(AUDITS)
    assert outcome.code == 3
    assert (
        "this is another game; run it anew" in outcome.record["results"][0]["summary"]
    )


@pytest.mark.full
def test_parameters_seed_and_the_share_of_alpha_are_those_of_the_run(project):
    project.audits(AUDITS)
    first = project(
        "run",
        "-k",
        "played",
        "--seed",
        "7",
        "--alpha",
        "0.2",
        "-P",
        "epsilon=1.05",
        "--format",
        "json",
    )
    outcome = continued(project, "played", "--calls", "300")
    (then,), (now,) = first.record["results"], outcome.record["results"]
    assert game(now)["details"]["parts"][0]["log_e_value"] == game(then)["log_e_value"]
    assert (now["parameters"], now["alpha"], outcome.record["root_seed"]) == (
        {"epsilon": 1.05},
        0.2,
        7,
    )
    lines = [json.loads(line) for line in (project.root / LOG).read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["header", "result", "end"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ("played",),
            2,
            "give how many calls its game is to have altogether, such as --calls 1e7",
        ),
        (
            ("played", "--calls", "200"),
            2,
            "the game of audits/audit_it.py::played has made 200 calls",
        ),
        (("played", "--calls", "300,400"), 2, "give one number, or one fault"),
        (
            ("played", "--calls", "300", "--seed", "3", "--resume"),
            2,
            "give it without --seed, --resume",
        ),
        (("plaid", "--calls", "300"), 2, "did you mean 'played'?"),
        (
            ("proved", "--calls", "300"),
            2,
            "ended NOT_REFUTED and has no game that could go on",
        ),
        (
            ("crashes", "--calls", "300"),
            2,
            "ended ERROR and has no game that could go on",
        ),
        (
            ("own", "--calls", "300"),
            2,
            "its mechanism draws its own randomness, so its game cannot be played again; auditdp",
        ),
        (
            ("sizes", "--calls", "300"),
            3,
            "tries several sizes, each in a game of its own, so it cannot go on",
        ),
    ],
)
def test_what_cannot_go_on_is_refused(recorded, arguments, code, message):
    project, _, _ = recorded
    (project.root / "refused.jsonl").write_bytes(
        (project.root / "first.jsonl").read_bytes()
    )
    outcome = project("run", "--continue", *arguments, "--log", "refused.jsonl")
    assert outcome.code == code
    assert message in " ".join((outcome.out + outcome.err).split())
    if code == 2:
        assert (project.root / "refused.jsonl").read_bytes() == (
            project.root / "first.jsonl"
        ).read_bytes()
