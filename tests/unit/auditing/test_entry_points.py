"""The same option has the same name and meaning at every entry point; ``docs/pages/contributing/api.md`` has the table."""

import inspect
from importlib import import_module
from types import SimpleNamespace

import pytest
import typer.main

from auditdp import (
    Audit,
    ControlSurvived,
    PureDP,
    assert_private,
    audit_training,
    check,
)
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.cli.common import app
from auditdp.errors import ConfigurationError
from auditdp.pytest_plugin import pytest_addoption
from auditdp.pytest_plugin.items import Auditor
from auditdp.record.budget import Budget, Fault
from auditdp.record.details import GameDetails
from auditdp.record.results import Verdict, details

SETTINGS = Settings(alpha=0.05, budget=Budget(900), root_seed=0)
BITS = [(0.0, 1.0)]


def noisy(data, rng):
    return data + rng.laplace()


def broken(data, rng):
    return data + rng.laplace(scale=0.05)


def audited(mechanism, claim, pairs=None, **options):
    return run_audit(Audit(mechanism, claim, pairs, **options), SETTINGS)


def asserted_in_pytest(mechanism, claim, pairs=None, **options):
    test = SimpleNamespace(nodeid="test.py::test", stash=pytest.Stash())
    return Auditor(
        test, SimpleNamespace(budget="1000", seed=0, trace=True)
    ).assert_private(mechanism, claim, pairs, **options)


ENTRIES = {
    "Audit": (Audit, audited),
    "check": (check, check),
    "assert_private": (assert_private, assert_private),
    "audit_training": (audit_training, audit_training),
    "auditor": (Auditor.assert_private, asserted_in_pytest),
}


def game(result):
    return next(details(result.evidence, GameDetails))


EFFECTS = {
    "pairs": (BITS, lambda result: result.claim.adjacency.startswith("pairs as given")),
    "calls": (
        200,
        lambda result: game(result).parts[-1].calls in (200, 120),
    ),  # of trainings, two fifths confirm
    "find": ("level:3", lambda result: "--find level:3" in game(result).calls_to_find),
    "controls": (
        [broken],
        lambda result: [control.survived for control in result.controls] == [False],
    ),
    "evidence": (("game", "exact"), lambda result: result.asked == ["game", "exact"]),
    "forecasters": (
        [ViewExperts("mine: ")],
        lambda result: game(result).forecasters[0].name.startswith("mine: "),
    ),
    "trace": (False, lambda result: game(result).trace is None),
    "observe": (
        ["stdout"],
        lambda result: "output['output']" in str(game(result).forecasters),
    ),
}
"""A value of each option, and what it does to the result."""


@pytest.mark.dear
@pytest.mark.parametrize("option", EFFECTS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_point_has_every_option_and_it_does_the_same(entry, option):
    given, seen = EFFECTS[option]
    options = {"pairs": BITS, "calls": 150, option: given}
    result = ENTRIES[entry][1](noisy, PureDP(1.0), **options)
    assert result.verdict is Verdict.NOT_REFUTED
    assert seen(result)


@pytest.mark.parametrize("entry", ENTRIES)
def test_all_but_the_first_three_arguments_are_given_by_name(entry):
    parameters = [
        p
        for p in inspect.signature(ENTRIES[entry][0]).parameters.values()
        if p.name != "self"
    ]
    assert [p.name for p in parameters[1:3]] == ["claim", "pairs"]
    assert {p.kind for p in parameters[3:]} == {inspect.Parameter.KEYWORD_ONLY}
    of_the_run = {"Audit": {"alpha", "seed"}, "auditor": {"seed"}}.get(entry, set())
    assert {*EFFECTS, "alpha", "seed"} - of_the_run <= {p.name for p in parameters}


@pytest.mark.parametrize("command", ["run", "mutate"])
@pytest.mark.parametrize("option", ["--calls", "--find", "--budget"])
def test_a_run_is_told_calls_and_faults_by_the_same_names(command, option):
    import_module("auditdp.cli.run_command")  # which registers it
    (budget,) = [
        p
        for p in typer.main.get_command(app).commands[command].params
        if p.name == "budget"
    ]
    assert option in budget.opts


def test_pytest_is_told_calls_and_faults_by_the_same_names():
    parser = pytest.Parser(_ispytest=True)
    pytest_addoption(parser)
    for text, option in (
        ("level:3", "--auditdp-find"),
        ("700", "--auditdp-calls"),
        ("quick", "--auditdp-budget"),
    ):
        assert parser.parse([option, text]).auditdp_budget == text


def test_a_fault_to_find_takes_at_least_the_calls_that_are_given():
    few = check(noisy, PureDP(1.0), BITS, find="level:3")
    assert game(few).parts[-1].calls < 3_000
    many = check(noisy, PureDP(1.0), BITS, find="level:3", calls=3_000)
    assert game(many).parts[-1].calls >= 3_000


def test_a_run_that_is_to_find_a_fault_finds_that_and_not_an_audits_own():
    built = Audit(noisy, PureDP(1.0), BITS, find="level:3")
    own = game(run_audit(built, SETTINGS))
    runs = game(
        run_audit(built, Settings(0.05, Budget(900, fault=Fault("level", 2.0)), 0))
    )
    assert "--find level:3" in own.calls_to_find
    assert "--find level:2" in runs.calls_to_find
    assert own.parts[-1].calls < runs.parts[-1].calls


def test_a_brief_budget_limits_what_an_audit_is_to_find_and_says_by_how_much():
    built = Audit(noisy, PureDP(1.0), BITS, find="level:1.3")
    whole, brief = (
        run_audit(built, Settings(0.05, Budget(2_000, is_limit=brief), 0))
        for brief in (False, True)
    )
    needed = game(whole).parts[-1].calls
    assert game(brief).parts[-1].calls <= 2_000 < needed
    assert whole.lacking == 0
    assert brief.lacking == pytest.approx(needed - 2_000, rel=0.1)
    assert game(brief).calls_to_find is None


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_fault_and_a_number_of_calls_that_are_none_are_refused(entry):
    with pytest.raises(
        ConfigurationError, match=r"unknown fault 'tial:0\.1'; did you mean 'tail'"
    ):
        ENTRIES[entry][1](noisy, PureDP(1.0), BITS, find="tial:0.1")
    with pytest.raises(ConfigurationError, match="calls >= 1, got calls=0"):
        ENTRIES[entry][1](noisy, PureDP(1.0), BITS, calls=0)


def test_an_audit_by_canaries_plays_no_game_that_finds_a_fault():
    with pytest.raises(ConfigurationError, match=r"find='level:2' .* give calls="):
        audit_training(noisy, PureDP(1.0), canaries=4, attack=abs, find="level:2")


@pytest.mark.parametrize("asked", [assert_private, asserted_in_pytest])
def test_an_assertion_fails_where_a_control_survives(asked):
    with pytest.raises(
        ControlSurvived, match="does not refute noisy, which should break the claim"
    ) as caught:
        asked(noisy, PureDP(1.0), BITS, calls=400, controls=[broken, noisy])
    assert "remedy: give calls= or find=" in str(caught.value)
    assert "reproduce: assert_private(…, seed=" in str(caught.value)
    assert caught.value.result.surviving_controls == ["noisy"]
