"""A run is compared with a baseline: what counts as a difference, and what an update of the baseline keeps."""

import re
from dataclasses import fields, is_dataclass, replace
from datetime import date
from pathlib import Path

import pytest

from auditdp.errors import ConfigurationError
from auditdp.record.baseline import updated
from auditdp.record.baseline_entries import Accepted, covered, entry_of, rounded_down
from auditdp.record.differences import Kind, differences, of_versions
from auditdp.record.results import (
    AuditResult,
    ClaimRecord,
    ControlResult,
    Evidence,
    LedgerEntry,
    RunRecord,
    Verdict,
)
from auditdp.record.traces import Fate, MutantResult, Mutation
from auditdp.record.versions import LawChange, VersionsResult
from auditdp.report.machine_readable import Level, judged, rule_of

TODAY = date(2026, 6, 1)
CLAIM = ClaimRecord("PureDP", "1-DP", "value LDP", epsilon=1.0)
ID = "audits/audit_a.py::one"
OTHER_ID = "audits/audit_a.py::two"
GAME = Evidence("game", Verdict.NOT_REFUTED, "…")
COUNTING = Evidence("counting", Verdict.NOT_REFUTED, "…")
KNOWN_FAULT = Accepted("we know", date(2026, 7, 1))


def audit(verdict="NOT_REFUTED", identifier=ID, **changes):
    result = AuditResult(
        id=identifier,
        verdict=Verdict(verdict),
        summary=f"it ended {verdict}",
        claim=CLAIM,
        evidence=[GAME, COUNTING],
        epsilon_lower=0.813,
        calls=62_517,
        controls=[twin(2)],
        reproduce="auditdp run …",
    )
    return replace(result, **changes)


def claiming(**changes):
    return audit(claim=replace(CLAIM, **changes))


def twin(factor, verdict="VIOLATED", **options):
    return ControlResult(f"Twin({factor})", Verdict(verdict), **options)


def counted(epsilon, delta, least=None, most=None, *, calls=12_500, **changes):
    details = {"delta_upper": delta, "event_at_least": least, "event_at_most": most}
    counting = replace(COUNTING, epsilon_upper=epsilon, calls=calls, details=details)
    return audit(evidence=[GAME, counting], calls=50_000 + calls, **changes)


def detecting(epsilon, same=None):
    details = {"detectable_epsilon": epsilon, "same_outputs": same}
    return audit(evidence=[replace(GAME, details=details), COUNTING])


def run(*results, status="complete", planned=(), **arguments):
    names = [result.id for result in results] + list(planned)
    return RunRecord(
        root_seed=1,
        status=status,
        arguments={"paths": ["audits"], **arguments},
        versions={},
        revision="",
        device="",
        alpha_ledger=[LedgerEntry(name, "", 0.01) for name in names if "::" in name],
        results=list(results),
    )


def known(*results, accepted=None):
    return {result.id: entry_of(result, accepted) for result in results}


def compared(entries, record, today=TODAY):
    return list(differences(entries, record, covered=covered(record), today=today))


def kinds(found):
    return " ".join(difference.kind.name for difference in found)


SURVIVING = twin(2, "NOT_REFUTED", blind=["game"])
UNDECIDED = audit("INCONCLUSIVE", controls=[SURVIVING], lacking=48_000)
SKIPPED = audit("SKIPPED", evidence=[], controls=[], claim=None, calls=0)
ONLY_GAME = audit(evidence=[GAME], asked=["counting", "game"])
ONLY_COUNTING = audit(evidence=[COUNTING], asked=["counting", "game"])
DECLARED = audit("VIOLATED", expected="violation")


def test_the_same_run_differs_in_nothing():
    findings = {"VIOLATED", "ERROR", "MISCALIBRATED"}
    others = set(Verdict) - findings
    results = [audit(verdict, f"{ID}_{verdict}") for verdict in others]
    assert compared(known(*results), run(*results)) == []


FROM_A_CLEAN_AUDIT = [
    (audit("VIOLATED"), "FINDING"),
    (audit("MISCALIBRATED"), "FINDING"),
    (audit(controls=[twin(2, "NOT_REFUTED")]), "FINDING WEAKER"),
    (DECLARED, "CHANGED"),
    (audit("ERROR"), "CRASHED"),
    (SKIPPED, "SKIPPED"),
    (audit("INCONCLUSIVE"), "WEAKER"),
    (audit(controls=[]), "WEAKER"),
    (audit(evidence=[GAME]), "WEAKER"),
    (ONLY_GAME, "CHANCE"),
    (ONLY_COUNTING, "WEAKER"),
    (UNDECIDED, "CHANCE"),
    (replace(UNDECIDED, lacking=0), "FINDING WEAKER WEAKER"),
    (audit(calls=61_999), "WEAKER"),
    (audit(calls=62_000), ""),
    (audit("CERTIFIED"), "STRONGER"),
    (audit(calls=70_000), "STRONGER"),
    (claiming(text="2-DP", epsilon=2.0), "CHANGED"),
    (claiming(adjacency="edge DP"), "CHANGED"),
    (claiming(epsilon=1 + 1e-12), ""),
    (claiming(epsilon=1.00001), "CHANGED"),
    (claiming(source="another place"), ""),
    (claiming(digest="3f"), "NOT_COMPARED"),
    (audit(epsilon_lower=0.1, epsilon_upper=0.7), "DRIFT"),
    # Two lower bounds do not contradict each other.
    (audit(epsilon_lower=0.1), ""),
    (audit(epsilon_lower=5.0), ""),
]
FROM_OTHERS = [
    (audit("CERTIFIED"), audit(), "WEAKER"),
    (audit("EQUIVALENT"), audit(), "CHANCE"),
    (DECLARED, audit(expected="violation"), "FINDING"),
    (DECLARED, replace(DECLARED, calls=900), ""),
    (audit(epsilon_upper=0.9), audit(epsilon_lower=0.95), "DRIFT"),
    (audit(epsilon_upper=0.9), audit(epsilon_lower=0.8999), ""),
    (audit(controls=[twin("2.00001")]), audit(), ""),
    (audit(controls=[twin("2.1")]), audit(), "WEAKER"),
    # The number of calls that counting has is no promise.
    (counted(1.2, 0.016), counted(1.2, 0.016, calls=75_000), ""),
    (counted(0.259, 0.013), counted(1.2, 0.016, 0.6455, 0.338), "DRIFT"),
    (counted(1.2, 0.016, 0.6455, 0.338), counted(0.259, 0.013), "DRIFT"),
    (counted(0.259, 0.013), counted(1.2, 0.016, 0.459, 0.338), ""),
    # The game may win by outputs that are rarer than δ.
    (counted(0.259, 0.013), counted(1.2, 0.016, epsilon_lower=0.896), ""),
    (claiming(digest="3f"), claiming(digest="3f"), ""),
    (claiming(digest="3f"), claiming(digest="a0"), "CHANGED"),
    (claiming(digest="3f without lock"),) * 2 + ("NOT_COMPARED",),
    (
        claiming(digest="3f without lock"),
        claiming(digest="a0 without lock"),
        "CHANGED NOT_COMPARED",
    ),
]
COMPARED = [(audit(), *row) for row in FROM_A_CLEAN_AUDIT] + FROM_OTHERS


@pytest.mark.parametrize(("then", "now", "expected"), COMPARED)
def test_which_differences_are_found(then, now, expected):
    assert kinds(compared(known(then), run(now))) == expected


@pytest.mark.parametrize(
    ("now", "today", "expected"),
    [
        (audit("VIOLATED"), date(2026, 7, 1), "ACCEPTED"),
        (audit("VIOLATED"), date(2026, 7, 2), "EXPIRED"),
        (audit("MISCALIBRATED"), TODAY, "FINDING"),
        (audit(), TODAY, "STALE"),
        (SKIPPED, TODAY, "SKIPPED"),
    ],
)
def test_an_accepted_finding(now, today, expected):
    entries = known(audit("VIOLATED"), accepted=KNOWN_FAULT)
    assert kinds(compared(entries, run(now), today)[:1]) == expected


def test_a_mutant_that_survives_is_a_finding_that_cannot_be_accepted():
    survivor = MutantResult("halved", "constant", "", Fate.SURVIVED, "not refuted")
    record = run(audit(mutation=Mutation([survivor])))
    (found,) = compared(known(audit()), record)
    assert found.kind is Kind.FINDING
    assert found.text == "mutant halved survives: not refuted"
    (item,) = judged(record)
    assert (item.level, rule_of(item)) == (Level.FINDING, "toothless")
    assert item.reasons == ("A mutant survived: halved: not refuted",)


def test_audits_that_are_gone_new_or_renamed():
    other = audit(identifier=OTHER_ID)
    third = replace(claiming(adjacency="edge DP"), id="audits/audit_c.py::three")
    found = compared(known(audit(), third), run(other))
    assert kinds(found) == "GONE GONE NEW"
    assert [each.audit for each in found] == [ID, third.id, OTHER_ID]
    assert f"perhaps it is {OTHER_ID} now" in found[0].text
    assert "perhaps" not in found[1].text
    (gone,) = compared(known(audit("VIOLATED"), accepted=KNOWN_FAULT), run())
    assert gone.kind is Kind.STALE
    assert "we know" in gone.text


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ("audits", "GONE"),
        ("./audits/", "GONE"),
        (".", "GONE"),
        (str(Path.cwd() / "audits"), "GONE"),
        ("audits/audit_a.py", "GONE"),
        (ID, "GONE"),
        ("/elsewhere/audits", "NOT_RUN"),
        ("audits/audit_b.py", "NOT_RUN"),
        (OTHER_ID, "NOT_RUN"),
        ("audit", "NOT_RUN"),
    ],
)
def test_an_audit_outside_the_paths_of_the_run_is_not_gone(paths, expected):
    assert kinds(compared(known(audit()), run(paths=[paths]))) == expected


@pytest.mark.parametrize("option", [{"keyword": "two"}, {"changed_since": "main"}])
def test_an_audit_that_was_not_selected_is_not_gone(option):
    assert kinds(compared(known(audit()), run(**option))) == "NOT_RUN"


def test_an_audit_that_is_gone_is_missed_where_a_change_chose_the_audits():
    arguments = {
        "paths": [ID],
        "changed_since": "main",
        "left_out": [OTHER_ID],
        "among": ["audits"],
    }
    covers = covered(replace(run(audit()), arguments=arguments))
    assert covers(ID)
    assert covers("audits/audit_a.py::gone")
    assert not covers(OTHER_ID)
    assert not covers("elsewhere/audit_b.py::x")


def test_a_file_that_does_not_import_and_an_unfinished_audit_are_crashes():
    broken = AuditResult("audits/audit_a.py", Verdict.ERROR, "does not import")
    unfinished = run(planned=[ID], status="interrupted")
    for record, name in ((run(broken), broken.id), (unfinished, ID)):
        (found,) = compared(known(audit()), record)
        assert (found.kind, found.audit) == (Kind.CRASHED, name)


def test_differences_are_listed_worst_first():
    changes = [("CERTIFIED", 62_517), ("VIOLATED", 62_517), ("NOT_REFUTED", 10)]
    results = [audit(each, f"{ID}_{each}", calls=calls) for each, calls in changes]
    entries = known(*(audit(identifier=result.id) for result in results), audit())
    assert kinds(compared(entries, run(*results))) == "FINDING WEAKER GONE STRONGER"


@pytest.mark.parametrize(
    ("then", "now", "reason"),
    [
        (detecting(1.6), detecting(2.2), None),
        (detecting(1.4), detecting(2.2), "loss of 1.4 times .* of 2.2 times now"),
        (detecting(1.4), detecting(1.4, same=512), "have the same outputs"),
        (detecting(3.0), detecting(3.2), None),
        (audit(), detecting(9.0), None),
        (None, detecting(1.9), None),
        (None, detecting(9.0), "would not have found twice the claim"),
    ],
)
def test_an_audit_that_detects_less_is_weaker(then, now, reason):
    entries = known(then) if then else {}
    found = compared(entries, run(now))
    weaker = [each.text for each in found if each.kind is Kind.WEAKER]
    assert len(weaker) == (reason is not None)
    assert all(re.search(reason, text) for text in weaker)


@pytest.mark.parametrize("verdict", ["NOT_REFUTED", "INCONCLUSIVE", None])
def test_a_refutation_that_was_not_confirmed_is_weaker_than_any_entry(verdict):
    dropped = replace(GAME, verdict=Verdict.INCONCLUSIVE, unconfirmed=True)
    now = audit("INCONCLUSIVE", evidence=[dropped, COUNTING], epsilon_lower=None)
    entries = known(replace(now, verdict=Verdict(verdict))) if verdict else {}
    found = compared(entries, run(now))
    assert "WEAKER" in kinds(found)
    (item,) = judged(run(now), found)
    assert (item.level, rule_of(item)) == (Level.UNCONFIRMED, "unconfirmed")


@pytest.mark.parametrize(
    ("change", "worse", "expected"),
    [
        ("changed", "", "LAW"),
        ("changed", "why", "LOSES"),
        ("draws otherwise", "", "DRAWS"),
        ("not compared", "", "NOT_COMPARED"),
        ("unseen", "", ""),
    ],
)
def test_another_revision_is_compared_without_a_baseline(change, worse, expected):
    versions = VersionsResult("main (abc)", LawChange(change), "f", worse=worse)
    found = list(of_versions(run(audit(identifier=OTHER_ID), audit(versions=versions))))
    assert kinds(found) == expected
    assert all(each.audit == ID for each in found)


def test_all_audits_without_a_digest_have_one_note():
    names = [f"audits/audit_a.py::{name}" for name in "abc"]
    before = known(*(audit(identifier=name) for name in names))
    after = run(*(replace(claiming(digest="3f"), id=name) for name in names))
    (found,) = compared(before, after)
    assert found.kind is Kind.NOT_COMPARED
    assert "2 other audits" in found.text
    entries = updated(before, after, {})
    assert {entry.digest for entry in entries.values()} == {"3f"}


# An update of the baseline.


def after_update(then, now):
    return updated(known(then), run(now), {})


def bounds_of(entry):
    return entry.at_least, entry.at_most


def test_an_update_takes_over_the_run_and_keeps_audits_that_it_does_not_cover():
    other = audit(identifier="audits/audit_b.py::x")
    assert updated({}, run(audit()), {}) == known(audit())
    assert after_update(audit(), audit(calls=10))[ID].calls == 10
    assert after_update(audit(), other).keys() == {other.id}
    of_one_file = run(other, paths=["audits/audit_b.py"])
    assert updated(known(audit()), of_one_file, {}).keys() == {ID, other.id}


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.5, None, (0.81, None)),
        (0.813, 1.0, (0.81, 1.0)),
        (0.1, 0.7, (0.1, 0.7)),
        (None, None, (None, None)),
    ],
)
def test_bounds_that_do_not_separate_stay_as_they_were(low, high, expected):
    now = audit(epsilon_lower=low, epsilon_upper=high)
    assert bounds_of(after_update(audit(), now)[ID]) == expected


def test_a_claim_stays_as_it_was_written():
    """A baseline does not change with the machine on which it is updated."""
    elsewhere = claiming(epsilon=1 + 3e-8, text="1.00001-DP")
    assert after_update(audit(), elsewhere) == known(audit())
    of_version_1 = {ID: replace(entry_of(audit()), numbers=())}
    assert updated(of_version_1, run(audit()), {}) == known(audit())


def test_counts_stay_until_they_are_contradicted():
    first = counted(0.259, 0.013, 0.5, 0.48)
    same, other = counted(0.3, 0.013, 0.51, 0.47), counted(1.2, 0.013, 0.66, 0.34)
    assert after_update(first, same) == known(first)
    assert after_update(first, other) == known(other)


def test_an_accepted_finding_is_kept_until_it_is_gone():
    found = run(audit("VIOLATED"))
    accepted = updated({}, found, {ID: KNOWN_FAULT})
    assert updated(accepted, found, {}) == accepted
    assert updated(accepted, run(audit()), {})[ID].accepted is None


CRASHED = "crashed, or not finished"


@pytest.mark.parametrize(
    ("record", "accepting", "reason"),
    [
        (run(audit("VIOLATED")), {}, f"not accepted: {ID}; .*--accept ID --reason"),
        (run(audit("MISCALIBRATED")), {}, "not accepted"),
        (run(audit()), {ID: KNOWN_FAULT}, "no finding of this id; findings: none"),
        (run(audit("ERROR")), {}, CRASHED),
        (run(planned=[ID], status="interrupted"), {}, CRASHED),
    ],
)
def test_an_update_without_a_reason_or_a_whole_run_is_refused(
    record, accepting, reason
):
    entries = known(audit("VIOLATED"), accepted=KNOWN_FAULT)
    before = {} if "--accept" in reason else entries
    with pytest.raises(ConfigurationError, match=reason):
        updated(before, record, accepting)


INFINITE = float("inf")


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.2999, 1.301, (1.2, 1.4)),
        (0.3, 0.1 + 0.2, (0.3, 0.3)),
        (0.0, INFINITE, (None, None)),
        (INFINITE, None, (INFINITE, None)),
    ],
)
def test_bounds_are_rounded_outwards(low, high, expected):
    entry = entry_of(audit(epsilon_lower=low, epsilon_upper=high))
    assert bounds_of(entry) == expected


def test_calls_are_rounded_down():
    calls = (0, 9, 99, 999, 123_456)
    assert list(map(rounded_down, calls)) == [0, 9, 99, 990, 120_000]


def disturbed(value, relative):
    """The record with other last digits in every float, as another processor computes them."""
    if isinstance(value, float):
        return value * (1 + relative)
    if isinstance(value, list | tuple):
        return type(value)(disturbed(each, relative) for each in value)
    if not is_dataclass(value):
        return value
    names = [field.name for field in fields(value) if field.init]
    changes = {name: disturbed(getattr(value, name), relative) for name in names}
    return replace(value, **changes)


ON_EDGES_OF_TWO_DIGITS = [
    audit(),
    audit(epsilon_lower=0.81, epsilon_upper=0.81),
    audit(
        "CERTIFIED",
        epsilon_lower=0.99,
        epsilon_upper=1.0,
        claim=replace(CLAIM, epsilon=1 / 3, text="0.333333-DP"),
    ),
    counted(0.5, 0.01, 0.31, 0.2),
    claiming(kind="AccountedDP", curve=[(0.0, 0.33), (7.2, 2e-12)]),
]


@pytest.mark.parametrize("relative", [1e-9, -1e-9])
@pytest.mark.parametrize("result", ON_EDGES_OF_TWO_DIGITS)
def test_last_digits_of_another_processor_make_no_difference(result, relative):
    entries = known(disturbed(result, relative))
    for now in (result, disturbed(result, -relative)):
        assert compared(entries, run(now)) == []
    larger = replace(result.claim, epsilon=result.claim.epsilon * 1.001)
    found = compared(entries, run(replace(result, claim=larger)))
    assert found[0].kind is Kind.CHANGED
