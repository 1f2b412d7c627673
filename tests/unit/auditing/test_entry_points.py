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

BITS = [(0.0, 1.0)]


def settings(calls=900, **budget):
    return Settings(alpha=0.05, budget=Budget(calls, **budget), root_seed=0)


def noisy(data, rng):
    return data + rng.laplace()


def broken(data, rng):
    return data + rng.laplace(scale=0.05)


def audited(mechanism, claim, pairs=None, **options):
    return run_audit(Audit(mechanism, claim, pairs, **options), settings())


def asserted_in_pytest(mechanism, claim, pairs=None, **options):
    test = SimpleNamespace(nodeid="test.py::test", stash=pytest.Stash())
    config = SimpleNamespace(budget="1000", seed=0, trace=True)
    return Auditor(test, config).assert_private(mechanism, claim, pairs, **options)


ENTRIES = {
    "Audit": (Audit, audited),
    "check": (check, check),
    "assert_private": (assert_private, assert_private),
    "audit_training": (audit_training, audit_training),
    "auditor": (Auditor.assert_private, asserted_in_pytest),
}


def game(result):
    return next(details(result.evidence, GameDetails))


# A value of each option, and its effect on the result.
EFFECTS = {
    "pairs": (BITS, lambda result: result.claim.adjacency.startswith("pairs as given")),
    # Two fifths of trainings confirm.
    "calls": (200, lambda result: game(result).parts[-1].calls in (200, 120)),
    "find": ("level:3", lambda result: "--find level:3" in game(result).calls_to_find),
    "controls": ([broken], lambda result: not result.controls[0].survived),
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


@pytest.mark.dear
@pytest.mark.parametrize("option", EFFECTS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_point_has_every_option_and_it_does_the_same(entry, option):
    value, has_effect = EFFECTS[option]
    options = {"pairs": BITS, "calls": 150, option: value}
    result = ENTRIES[entry][1](noisy, PureDP(1.0), **options)
    assert result.verdict is Verdict.NOT_REFUTED
    assert has_effect(result)


@pytest.mark.parametrize("entry", ENTRIES)
def test_all_but_the_first_three_arguments_are_given_by_name(entry):
    signature = inspect.signature(ENTRIES[entry][0])
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    assert [p.name for p in parameters[1:3]] == ["claim", "pairs"]
    assert {p.kind for p in parameters[3:]} == {inspect.Parameter.KEYWORD_ONLY}
    of_the_run = {"Audit": {"alpha", "seed"}, "auditor": {"seed"}}.get(entry, set())
    assert {*EFFECTS, "alpha", "seed"} - of_the_run <= {p.name for p in parameters}


@pytest.mark.parametrize("command", ["run", "mutate"])
def test_the_command_line_has_the_same_names(command):
    # The import registers the command.
    import_module("auditdp.cli.run_command")
    parameters = typer.main.get_command(app).commands[command].params
    (budget,) = [each for each in parameters if each.name == "budget"]
    assert {"--calls", "--find", "--budget"} <= set(budget.opts)


def test_pytest_has_the_same_names():
    parser = pytest.Parser(_ispytest=True)
    pytest_addoption(parser)
    for option, text in (("find", "level:3"), ("calls", "700"), ("budget", "quick")):
        parsed = parser.parse([f"--auditdp-{option}", text])
        assert parsed.auditdp_budget == text


def calls_of(result):
    return game(result).parts[-1].calls


def test_a_fault_to_find_takes_at_least_the_given_calls():
    few = check(noisy, PureDP(1.0), BITS, find="level:3")
    many = check(noisy, PureDP(1.0), BITS, find="level:3", calls=3_000)
    assert calls_of(few) < 3_000 <= calls_of(many)


def test_the_fault_of_a_run_replaces_that_of_an_audit():
    built = Audit(noisy, PureDP(1.0), BITS, find="level:3")
    own = run_audit(built, settings())
    run = run_audit(built, settings(fault=Fault("level", 2.0)))
    assert "--find level:3" in game(own).calls_to_find
    assert "--find level:2" in game(run).calls_to_find
    assert calls_of(own) < calls_of(run)


def test_a_brief_budget_limits_the_calls_of_a_fault_and_states_how_many_are_lacking():
    built = Audit(noisy, PureDP(1.0), BITS, find="level:1.3")
    whole = run_audit(built, settings(2_000, is_limit=False))
    brief = run_audit(built, settings(2_000, is_limit=True))
    assert calls_of(brief) <= 2_000 < calls_of(whole)
    assert whole.lacking == 0
    assert brief.lacking == pytest.approx(calls_of(whole) - 2_000, rel=0.1)
    assert game(brief).calls_to_find is None


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_fault_that_is_none_is_refused(entry):
    with pytest.raises(
        ConfigurationError, match=r"unknown fault 'tial:0\.1'; did you mean 'tail'"
    ):
        ENTRIES[entry][1](noisy, PureDP(1.0), BITS, find="tial:0.1")


def test_an_audit_by_canaries_plays_no_game_that_finds_a_fault():
    with pytest.raises(ConfigurationError, match=r"find='level:2' .* give calls="):
        audit_training(noisy, PureDP(1.0), canaries=4, attack=abs, find="level:2")


@pytest.mark.parametrize("entry", [assert_private, asserted_in_pytest])
def test_an_assertion_fails_where_a_control_survives(entry):
    surviving = "does not refute noisy, which should break the claim"
    with pytest.raises(ControlSurvived, match=surviving) as caught:
        entry(noisy, PureDP(1.0), BITS, calls=400, controls=[broken, noisy])
    assert "remedy: give calls= or find=" in str(caught.value)
    assert "reproduce: assert_private(…, seed=" in str(caught.value)
    assert caught.value.result.surviving_controls == ["noisy"]
