from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from auditdp.betting.power import growth, growths
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from auditdp.errors import ConfigurationError
from auditdp.history.nightly.control import alarm_at, nights_to_report, verdict_alpha, weight
from auditdp.history.nightly.night_power import within
from auditdp.history.nightly.stream import Account, Stream, log_e_value, read_stream
from auditdp.record.results import AuditResult, ClaimRecord, Evidence, RunRecord, Verdict

ID = "audits/audit_a.py::one"


def result(log_e=0.0, verdict=Verdict.NOT_REFUTED, identifier=ID, **changes):
    game = Evidence(
        "game", verdict, "", log_e_value=log_e, calls=50_000, details={"growths": growths(PureDP(1.0), 1.08)}
    )
    claim = ClaimRecord("PureDP", "1-DP", "", epsilon=1.0)
    return replace(AuditResult(identifier, verdict, "", claim=claim, evidence=[game], alpha=0.01), **changes)


def run(*results):
    return RunRecord(1, "complete", {}, {}, "", "", [], list(results))


def test_the_weights_of_all_nights_sum_to_one():
    whole = math.fsum(weight(night) for night in range(1, 200_001))
    assert 1 - 4e-6 < whole < 1  # the rest is about 6/(π² · 200,000)
    assert verdict_alpha(0.05, 1) == pytest.approx(0.05 * 3 / math.pi**2)


def test_capital_is_carried_over_while_sources_stay_and_no_longer():
    stream = Stream(0.05, 1).after(run(result(1.0)), {ID: "a"})
    first = stream.accounts[ID]
    assert (first.sources, first.since, first.alarm) == ("a", 1, 0)
    assert first.log_capital == pytest.approx(math.log(weight(1)) + 1.0)
    same = stream.after(run(result(2.0)), {ID: "a"}).accounts[ID]
    assert same.log_capital == pytest.approx(math.log(math.exp(first.log_capital) + weight(2)) + 2.0)
    assert same.since == 1
    new = stream.after(run(result(2.0)), {ID: "b"}).accounts[ID]
    assert (new.sources, new.since) == ("b", 2)
    assert new.log_capital == pytest.approx(math.log(weight(2)) + 2.0)


def test_sources_that_are_not_known_are_those_of_no_other_night():
    stream = Stream(0.05, 1)
    for night in (1, 2, 3):
        stream = stream.after(run(result(1.0)), {})
        assert stream.accounts[ID].since == night


def test_the_deposits_of_a_night_sum_to_its_weight_however_many_audits_there_are():
    results = [result(identifier=f"{ID}{k}") for k in range(7)]
    stream = Stream(0.05, 1).after(run(*results), {})
    assert sum(math.exp(account.log_capital) for account in stream.accounts.values()) == pytest.approx(weight(1))


def test_an_alarm_stays_until_the_sources_change():
    stream = Stream(0.05, 1).after(run(result(alarm_at(0.05) + 1)), {ID: "a"})
    assert stream.accounts[ID].alarm == 1
    assert stream.after(run(result(-50.0)), {ID: "a"}).accounts[ID].alarm == 1
    assert stream.after(run(result(-50.0)), {ID: "b"}).accounts[ID].alarm == 0
    assert Stream(0.05, 1).after(run(result(alarm_at(0.05) + 0.49)), {ID: "a"}).accounts[ID].alarm == 0


def test_what_an_audit_multiplies_capital_with():
    assert log_e_value(result(-1.5)) == -1.5
    assert log_e_value(result(verdict=Verdict.ERROR)) == -math.inf
    unconfirmed = replace(result(), evidence=[Evidence("game", Verdict.INCONCLUSIVE, "", log_e_value=9.0)])
    assert log_e_value(unconfirmed) == -math.inf
    assert log_e_value(result(evidence=[])) == 0.0
    certified = result(
        verdict=Verdict.CERTIFIED, evidence=[Evidence("exact", Verdict.CERTIFIED, ""), *result(0.3).evidence]
    )
    assert log_e_value(certified) == 0.3


def test_an_audit_that_is_gone_takes_its_capital_with_it():
    stream = Stream(0.05, 1).after(run(result(1.0)), {ID: "a"})
    assert stream.after(run(result(identifier="audits/b.py::x")), {}).accounts.keys() == {"audits/b.py::x"}


def test_a_night_has_a_seed_of_its_own_and_keeps_it():
    stream = Stream(0.05, 1)
    seeds = [replace(stream, night=night).seed() for night in range(100)]
    assert len(set(seeds)) == 100
    assert stream.seed() == seeds[0]
    assert Stream(0.05, 2).seed() != seeds[0]


def test_it_is_read_as_it_was_written(tmp_path):
    stream = Stream(0.05, 7).after(run(result(1.0), result(-math.inf, identifier="audits/b.py::x")), {ID: "a"})
    path = tmp_path / "stream.json"
    path.write_text(stream.to_json())
    assert read_stream(path) == stream
    assert read_stream(tmp_path / "none.json") is None


GOOD = json.loads(Stream(0.05, 7, 1, {ID: Account("a", -1.0, 1)}).to_json())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<<<<<<< HEAD\n{}", "of a merge, keep the side with the larger night"),
        ("[]", "version None"),
        (json.dumps(GOOD | {"version": 3}), "version 3, and this auditdp reads versions 1 and 2"),
        (json.dumps(GOOD | {"alpha": 2.0}), "alpha: Input should be less than 1"),
        (json.dumps(GOOD | {"night": -1}), "night: Input should be greater than or equal to 0"),
        (json.dumps(GOOD | {"night": "1"}), "night: Input should be a valid integer"),
        (json.dumps(GOOD | {"nights": 1}), "nights: "),
        (json.dumps(GOOD | {"accounts": {ID: {"sources": "a"}}}), "log_capital: Field required"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path, text, message):
    path = tmp_path / "stream.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as error:
        read_stream(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)


def test_nights_to_report():
    certain = nights_to_report(growth=1.0, deviation=0.0, alpha=0.05, night=1, audits=1)
    assert certain == math.ceil(math.log(40) - math.log(weight(1)))
    later = nights_to_report(growth=1.0, deviation=1.0, alpha=0.05, night=500, audits=50)
    assert certain < later < 40
    assert nights_to_report(growth=0.0, deviation=1.0, alpha=0.05, night=1, audits=1) == math.inf
    assert nights_to_report(growth=1e-4, deviation=1.0, alpha=0.05, night=1, audits=1) == math.inf


def test_growth_of_a_call_is_the_divergence_of_the_two_coins():
    mean, deviation = growth(PureDP(1.0), PureDP(2.0))
    p, q = 1 / (1 + math.exp(-2.0)), 1 / (1 + math.exp(-1.0))
    assert mean == pytest.approx(p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q)))
    assert deviation > 0


@pytest.mark.parametrize(
    "claim", [PureDP(1.0), ApproxDP(1.0, 0.01), GaussianDP(1.0), ZeroConcentratedDP(0.5), RenyiDP(4.0, 1.0)], ids=str
)
def test_growth_between_two_levels_is_read_off_their_line(claim):
    levels, means, deviations = np.array(growths(claim, claim.level * 1.3)).T
    assert (levels[0], means[0], deviations[0]) == (claim.level, 0.0, 0.0)
    for level in (levels[1:] + levels[:-1])[1:] / 2:
        mean, deviation = growth(claim, claim.at(float(level)))
        assert np.interp(level, levels, np.sqrt(means)) ** 2 == pytest.approx(mean, rel=0.05)
        assert np.interp(level, levels, deviations) == pytest.approx(deviation, rel=0.05)


def test_several_nights_see_more_than_one():
    known = {ID: Account("a", 0.0, 1)}
    ((letter, one, week),) = within(result(), replace(Stream(0.05, 1), accounts=known), 7)
    ((_, _, month),) = within(result(), replace(Stream(0.05, 1), accounts=known), 30)
    assert letter == "ε"
    assert 1.0 < month < week < one == pytest.approx(1.08, rel=1e-3)
    assert list(within(result(verdict=Verdict.VIOLATED), Stream(0.05, 1), 7)) == []
    assert list(within(result(claim=None), Stream(0.05, 1), 7)) == []
