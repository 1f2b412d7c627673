from __future__ import annotations

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


def bounds_of(entry):
    return entry.at_least, entry.at_most


def audit(verdict=Verdict.NOT_REFUTED, identifier=ID, **changes):
    result = AuditResult(
        id=identifier,
        verdict=verdict,
        summary=f"it ended {verdict}",
        claim=CLAIM,
        evidence=[
            Evidence("game", verdict, "…"),
            Evidence("counting", Verdict.NOT_REFUTED, "…"),
        ],
        epsilon_lower=0.813,
        calls=62_517,
        controls=[ControlResult("Twin(2)", Verdict.VIOLATED)],
        reproduce="auditdp run …",
    )
    return replace(result, **changes)


def twin(factor):
    return ControlResult(f"Twin({factor})", Verdict.VIOLATED)


def counted(epsilon, delta, least=None, most=None, *, calls=12_500):
    details = {"delta_upper": delta, "event_at_least": least, "event_at_most": most}
    shown = Evidence(
        "counting",
        Verdict.NOT_REFUTED,
        "…",
        epsilon_upper=epsilon,
        calls=calls,
        details=details,
    )
    return audit(evidence=[audit().evidence[0], shown], calls=50_000 + calls)


UNDECIDED = audit(
    Verdict.INCONCLUSIVE,
    controls=[ControlResult("Twin(2)", Verdict.NOT_REFUTED, blind=["game"])],
    lacking=48_000,
)


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


def known(*results, **accepted):
    return {result.id: entry_of(result, accepted.get("accepted")) for result in results}


def compared(entries, record, today=TODAY):
    found = differences(entries, record, covered=covered(record), today=today)
    return [(difference.kind, difference.audit) for difference in found]


def test_the_same_run_differs_in_nothing():
    results = [
        audit(verdict, f"{ID}_{k}")
        for k, verdict in enumerate(Verdict)
        if verdict.value not in ("VIOLATED", "ERROR", "MISCALIBRATED")
    ]
    assert compared(known(*results), run(*results)) == []


@pytest.mark.parametrize(
    ("then", "now", "kinds"),
    [
        (audit(), audit(Verdict.VIOLATED), [Kind.FINDING]),
        (audit(), audit(Verdict.MISCALIBRATED), [Kind.FINDING]),
        (
            audit(),
            audit(controls=[ControlResult("Twin(2)", Verdict.NOT_REFUTED)]),
            [Kind.FINDING, Kind.WEAKER],
        ),
        (
            audit(Verdict.VIOLATED, expected="violation"),
            audit(expected="violation"),
            [Kind.FINDING],
        ),
        (audit(), audit(Verdict.VIOLATED, expected="violation"), [Kind.CHANGED]),
        (audit(), audit(Verdict.ERROR), [Kind.CRASHED]),
        (
            audit(),
            audit(Verdict.SKIPPED, evidence=[], controls=[], claim=None, calls=0),
            [Kind.SKIPPED],
        ),
        (audit(), audit(Verdict.INCONCLUSIVE), [Kind.WEAKER]),
        (audit(Verdict.CERTIFIED), audit(), [Kind.WEAKER]),
        (audit(), audit(controls=[]), [Kind.WEAKER]),
        (audit(), audit(evidence=audit().evidence[:1]), [Kind.WEAKER]),
        (audit(), audit(calls=61_999), [Kind.WEAKER]),
        (audit(), audit(calls=62_000), []),
        (audit(), audit(Verdict.CERTIFIED), [Kind.STRONGER]),
        (audit(), audit(calls=70_000), [Kind.STRONGER]),
        (
            audit(),
            audit(claim=replace(CLAIM, text="2-DP", epsilon=2.0)),
            [Kind.CHANGED],
        ),
        (audit(), audit(claim=replace(CLAIM, adjacency="edge DP")), [Kind.CHANGED]),
        (audit(), audit(claim=replace(CLAIM, epsilon=1 + 1e-12)), []),
        (audit(), audit(claim=replace(CLAIM, epsilon=1.00001)), [Kind.CHANGED]),
        (audit(Verdict.EQUIVALENT), audit(), [Kind.CHANCE]),
        (
            audit(),
            audit(evidence=audit().evidence[:1], asked=["counting", "game"]),
            [Kind.CHANCE],
        ),
        (
            audit(),
            audit(evidence=audit().evidence[1:], asked=["counting", "game"]),
            [Kind.WEAKER],
        ),
        (audit(), UNDECIDED, [Kind.CHANCE]),
        (
            audit(),
            replace(UNDECIDED, lacking=0),
            [Kind.FINDING, Kind.WEAKER, Kind.WEAKER],
        ),
        (
            counted(1.2, 0.016),
            counted(1.2, 0.016, calls=75_000),
            [],
        ),  # how many calls counting has is no promise
        (audit(controls=[twin("2.00001")]), audit(controls=[twin("2")]), []),
        (audit(controls=[twin("2.1")]), audit(controls=[twin("2")]), [Kind.WEAKER]),
        (counted(0.259, 0.013), counted(1.2, 0.016, 0.6455, 0.338), [Kind.DRIFT]),
        (counted(1.2, 0.016, 0.6455, 0.338), counted(0.259, 0.013), [Kind.DRIFT]),
        (counted(0.259, 0.013), counted(1.2, 0.016, 0.459, 0.338), []),
        (
            counted(0.259, 0.013),
            replace(counted(1.2, 0.016), epsilon_lower=0.896),
            [],
        ),  # the game may win by what is rarer than δ
        (audit(), audit(claim=replace(CLAIM, source="another place")), []),
        (audit(epsilon_upper=0.9), audit(epsilon_lower=0.95), [Kind.DRIFT]),
        (audit(epsilon_upper=0.9), audit(epsilon_lower=0.8999), []),
        (audit(), audit(epsilon_lower=0.1, epsilon_upper=0.7), [Kind.DRIFT]),
        (audit(), audit(epsilon_lower=0.1), []),
        (
            audit(),
            audit(epsilon_lower=5.0),
            [],
        ),  # two lower bounds contradict each other nowhere
        (
            audit(Verdict.VIOLATED, expected="violation", calls=50_000),
            audit(Verdict.VIOLATED, expected="violation", calls=900),
            [],
        ),
    ],
)
def test_what_counts_as_a_difference(then, now, kinds):
    assert [kind for kind, _ in compared(known(then), run(now))] == kinds


@pytest.mark.parametrize(
    ("now", "today", "kind"),
    [
        (audit(Verdict.VIOLATED), date(2026, 7, 1), Kind.ACCEPTED),
        (audit(Verdict.VIOLATED), date(2026, 7, 2), Kind.EXPIRED),
        (audit(Verdict.MISCALIBRATED), TODAY, Kind.FINDING),
        (audit(), TODAY, Kind.STALE),
    ],
)
def test_an_accepted_finding(now, today, kind):
    entries = known(
        audit(Verdict.VIOLATED), accepted=Accepted("we know", date(2026, 7, 1))
    )
    assert compared(entries, run(now), today)[0] == (kind, ID)


def test_a_mutant_that_survives_is_a_finding_that_nobody_accepts():
    survivor = MutantResult(
        "noise halved", "constant", "", Fate.SURVIVED, "it was not refuted"
    )
    mutated = audit(mutation=Mutation([survivor]))
    (found,) = differences(
        known(audit()), run(mutated), covered=covered(run()), today=TODAY
    )
    assert (found.kind, found.text) == (
        Kind.FINDING,
        "mutant noise halved survives: it was not refuted",
    )
    (item,) = judged(run(mutated))
    assert (item.level, item.reasons) == (
        Level.FINDING,
        ("A mutant survived: noise halved: it was not refuted",),
    )
    assert rule_of(item) == "toothless"


def test_an_accepted_finding_that_is_skipped_is_not_called_stale():
    entries = known(audit(Verdict.VIOLATED), accepted=Accepted("we know"))
    skipped = audit(Verdict.SKIPPED, evidence=[], controls=[], claim=None, calls=0)
    assert [kind for kind, _ in compared(entries, run(skipped))] == [Kind.SKIPPED]


def test_audits_that_are_gone_new_or_renamed():
    other, third = (
        audit(identifier="audits/audit_a.py::two"),
        audit(identifier="audits/audit_c.py::three"),
    )
    third = replace(third, claim=replace(CLAIM, adjacency="edge DP"))
    found = differences(
        known(audit(), third), run(other), covered=covered(run()), today=TODAY
    )
    assert [(d.kind, d.audit) for d in found] == [
        (Kind.GONE, ID),
        (Kind.GONE, third.id),
        (Kind.NEW, other.id),
    ]
    assert "perhaps it is audits/audit_a.py::two now" in found[0].text
    assert "perhaps" not in found[1].text
    gone = differences(
        known(audit(Verdict.VIOLATED), accepted=Accepted("we know")),
        run(),
        covered=covered(run()),
        today=TODAY,
    )
    assert [(d.kind, "we know" in d.text) for d in gone] == [(Kind.STALE, True)]


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({}, Kind.GONE),
        ({"paths": ["./audits/"]}, Kind.GONE),
        ({"paths": ["."]}, Kind.GONE),
        ({"paths": [str(Path.cwd() / "audits")]}, Kind.GONE),
        ({"paths": ["/elsewhere/audits"]}, Kind.NOT_RUN),
        ({"paths": ["audits/audit_a.py"]}, Kind.GONE),
        ({"paths": ["audits/audit_a.py::one"]}, Kind.GONE),
        ({"paths": ["audits/audit_b.py"]}, Kind.NOT_RUN),
        ({"paths": ["audits/audit_a.py::two"]}, Kind.NOT_RUN),
        ({"paths": ["audit"]}, Kind.NOT_RUN),
        ({"keyword": "two"}, Kind.NOT_RUN),
        ({"changed_since": "main"}, Kind.NOT_RUN),
    ],
)
def test_what_the_run_was_not_asked_for_is_not_gone(arguments, kind):
    assert compared(known(audit()), run(**arguments)) == [(kind, ID)]


def test_what_did_not_import_and_what_was_not_finished():
    broken = AuditResult("audits/audit_a.py", Verdict.ERROR, "does not import")
    assert compared(known(audit()), run(broken)) == [
        (Kind.CRASHED, "audits/audit_a.py")
    ]
    assert compared(known(audit()), run(planned=[ID], status="interrupted")) == [
        (Kind.CRASHED, ID)
    ]


def test_differences_are_listed_worst_first():
    results = [
        audit(Verdict.CERTIFIED, f"{ID}_a"),
        audit(Verdict.VIOLATED, f"{ID}_b"),
        audit(calls=10, identifier=f"{ID}_c"),
    ]
    entries = known(*(audit(identifier=result.id) for result in results), audit())
    assert [kind for kind, _ in compared(entries, run(*results))] == [
        Kind.FINDING,
        Kind.WEAKER,
        Kind.GONE,
        Kind.STRONGER,
    ]


class TestUpdate:
    def test_it_takes_over_what_the_run_says(self):
        assert updated({}, run(audit()), {}) == known(audit())
        assert updated(known(audit()), run(audit(calls=10)), {})[ID].calls == 10
        assert updated(
            known(audit()), run(audit(identifier="audits/audit_b.py::x")), {}
        ).keys() == {"audits/audit_b.py::x"}

    def test_it_keeps_what_the_run_was_not_asked_for(self):
        other = audit(identifier="audits/audit_b.py::x")
        assert updated(
            known(audit()), run(other, paths=["audits/audit_b.py"]), {}
        ).keys() == {ID, other.id}

    def test_bounds_that_do_not_separate_stay_as_they_were(self):
        kept = updated(known(audit()), run(audit(epsilon_lower=0.5)), {})[ID]
        assert bounds_of(kept) == (0.81, None)
        gained = updated(known(audit()), run(audit(epsilon_upper=1.0)), {})[ID]
        assert bounds_of(gained) == (0.81, 1.0)
        apart = updated(
            known(audit()), run(audit(epsilon_lower=0.1, epsilon_upper=0.7)), {}
        )[ID]
        assert bounds_of(apart) == (0.1, 0.7)
        lost = updated(known(audit()), run(audit(epsilon_lower=None)), {})[ID]
        assert bounds_of(lost) == (None, None)

    def test_a_claim_stays_as_it_was_written(self):
        """So that a baseline does not change with the machine on which it is updated."""
        elsewhere = audit(claim=replace(CLAIM, epsilon=1 + 3e-8, text="1.00001-DP"))
        assert updated(known(audit()), run(elsewhere), {}) == known(audit())
        of_version_1 = {ID: replace(entry_of(audit()), numbers=())}
        assert updated(of_version_1, run(audit()), {}) == known(audit())

    def test_what_was_counted_stays_until_it_is_contradicted(self):
        first = counted(0.259, 0.013, 0.5, 0.48)
        same, other = counted(0.3, 0.013, 0.51, 0.47), counted(1.2, 0.013, 0.66, 0.34)
        assert updated(known(first), run(same), {}) == known(first)
        assert updated(known(first), run(other), {}) == known(other)

    def test_a_finding_needs_a_reason_and_keeps_it(self):
        found = run(audit(Verdict.VIOLATED))
        with pytest.raises(
            ConfigurationError, match=f"not accepted: {ID}; .*--accept ID --reason"
        ):
            updated(known(audit()), found, {})
        accepted = updated({}, found, {ID: Accepted("we know")})
        assert updated(accepted, found, {}) == accepted
        assert updated(accepted, run(audit()), {})[ID].accepted is None
        with pytest.raises(ConfigurationError, match="not accepted"):
            updated(accepted, run(audit(Verdict.MISCALIBRATED)), {})

    def test_what_is_no_finding_cannot_be_accepted(self):
        with pytest.raises(
            ConfigurationError, match="no finding of this id; findings: none"
        ):
            updated({}, run(audit()), {ID: Accepted("why not")})

    def test_it_is_not_made_from_what_crashed_or_did_not_end(self):
        with pytest.raises(ConfigurationError, match="crashed, or not finished"):
            updated({}, run(audit(Verdict.ERROR)), {})
        with pytest.raises(ConfigurationError, match="crashed, or not finished"):
            updated({}, run(planned=[ID], status="interrupted"), {})


def test_numbers_are_rounded_so_that_they_promise_less():
    assert [rounded_down(calls) for calls in (0, 9, 99, 999, 123_456)] == [
        0,
        9,
        99,
        990,
        120_000,
    ]
    bounds = entry_of(audit(epsilon_lower=1.2999, epsilon_upper=1.301))
    assert bounds_of(bounds) == (1.2, 1.4)
    assert bounds_of(entry_of(audit(epsilon_lower=0.3, epsilon_upper=0.1 + 0.2))) == (
        0.3,
        0.3,
    )
    assert bounds_of(
        entry_of(audit(epsilon_lower=0.0, epsilon_upper=float("inf")))
    ) == (
        None,
        None,
    )
    assert bounds_of(entry_of(audit(epsilon_lower=float("inf")))) == (
        float("inf"),
        None,
    )


def seeing(epsilon, same=None):
    shown = Evidence(
        "game",
        Verdict.NOT_REFUTED,
        "…",
        details={"detectable_epsilon": epsilon, "same_outputs": same},
    )
    return audit(evidence=[shown, audit().evidence[1]])


@pytest.mark.parametrize(
    ("then", "now", "weaker"),
    [
        (seeing(1.6), seeing(2.2), ""),
        (
            seeing(1.4),
            seeing(2.2),
            "a loss of 1.4 times the claim was seen in the baseline, only one of 2.2 times now",
        ),
        (
            seeing(1.4),
            seeing(1.4, same=512),
            "both inputs of every pair have the same outputs",
        ),
        (seeing(3.0), seeing(3.2), ""),
        (audit(), seeing(9.0), ""),
        (None, seeing(1.9), ""),
        (None, seeing(9.0), "it would not have seen twice the claim"),
    ],
)
def test_an_audit_that_sees_less_is_weaker(then, now, weaker):
    known = {} if then is None else {ID: entry_of(then)}
    texts = [
        d.text
        for d in differences(known, run(now), covered=lambda _: True, today=TODAY)
        if d.kind is Kind.WEAKER
    ]
    assert len(texts) == bool(weaker)
    assert all(weaker in text for text in texts)


@pytest.mark.parametrize(
    ("change", "worse", "kind"),
    [
        ("changed", "", Kind.LAW),
        ("changed", "why", Kind.LOSES),
        ("draws otherwise", "", Kind.DRAWS),
        ("not compared", "", Kind.NOT_COMPARED),
        ("unseen", "", None),
    ],
)
def test_what_another_revision_released_is_compared_without_a_baseline(
    change, worse, kind
):
    compared = audit(
        versions=VersionsResult("main (abc)", LawChange(change), "f", worse=worse)
    )
    found = list(of_versions(run(audit(identifier="audits/audit_a.py::two"), compared)))
    assert [(d.audit, d.kind) for d in found] == ([(ID, kind)] if kind else [])


@pytest.mark.parametrize(
    ("then", "now", "kinds"),
    [
        ("3f", "3f", []),
        ("3f", "a0", [Kind.CHANGED]),
        ("", "3f", [Kind.NOT_COMPARED]),
        ("3f without lock", "3f without lock", [Kind.NOT_COMPARED]),
        ("3f without lock", "a0 without lock", [Kind.CHANGED, Kind.NOT_COMPARED]),
    ],
)
def test_neighbours_are_compared_whole_and_where_they_are_not_that_is_reported(
    then, now, kinds
):
    before, after = (
        audit(claim=replace(CLAIM, digest=digest)) for digest in (then, now)
    )
    assert [kind for kind, _ in compared(known(before), run(after))] == kinds


def test_one_note_is_made_of_all_audits_that_have_no_digest():
    names = [f"audits/audit_a.py::{name}" for name in "abc"]
    before = [audit(identifier=name) for name in names]
    after = [
        audit(identifier=name, claim=replace(CLAIM, digest="3f")) for name in names
    ]
    record = run(*after)
    (found,) = differences(known(*before), record, covered=covered(record), today=TODAY)
    assert (found.kind, "2 other audits" in found.text) == (Kind.NOT_COMPARED, True)
    entries = updated(known(*before), run(*after), {})
    assert {entry.digest for entry in entries.values()} == {"3f"}


def test_an_audit_that_is_gone_is_missed_where_a_change_chose_the_audits():
    arguments = {
        "paths": [ID],
        "changed_since": "main",
        "left_out": ["audits/audit_a.py::two"],
        "among": ["audits"],
    }
    asked = covered(replace(run(audit()), arguments=arguments))
    names = (
        ID,
        "audits/audit_a.py::two",
        "audits/audit_a.py::gone",
        "elsewhere/audit_b.py::x",
    )
    assert [asked(name) for name in names] == [True, False, True, False]


def disturbed(value, relative):
    """Return a record in which every float has other last digits, as another processor computes them."""
    if isinstance(value, float):
        return value * (1 + relative)
    if isinstance(value, list | tuple):
        return type(value)(disturbed(each, relative) for each in value)
    if is_dataclass(value):
        given = {
            field.name: getattr(value, field.name)
            for field in fields(value)
            if field.init
        }
        return replace(
            value, **{name: disturbed(each, relative) for name, each in given.items()}
        )
    return value


ON_EDGES = [  # of the two digits that a baseline keeps
    audit(),
    audit(epsilon_lower=0.81, epsilon_upper=0.81),
    audit(
        Verdict.CERTIFIED,
        epsilon_lower=0.99,
        epsilon_upper=1.0,
        claim=replace(CLAIM, epsilon=1 / 3, text="0.333333-DP"),
    ),
    counted(0.5, 0.01, 0.31, 0.2),
    audit(claim=replace(CLAIM, kind="AccountedDP", curve=[(0.0, 0.33), (7.2, 2e-12)])),
]


@pytest.mark.parametrize("relative", [1e-9, -1e-9])
@pytest.mark.parametrize("result", ON_EDGES)
def test_another_processor_s_last_digits_change_no_verdict_of_a_check(result, relative):
    known = {ID: entry_of(disturbed(result, relative))}
    for now in (result, disturbed(result, -relative)):
        assert not [
            found.text
            for found in differences(
                known, run(now), covered=lambda identifier: True, today=TODAY
            )
        ]
    lost = replace(
        result, claim=replace(result.claim, epsilon=result.claim.epsilon * 1.001)
    )
    assert (
        differences(known, run(lost), covered=lambda identifier: True, today=TODAY)[
            0
        ].kind
        is Kind.CHANGED
    )


@pytest.mark.parametrize("known", [Verdict.NOT_REFUTED, Verdict.INCONCLUSIVE, None])
def test_a_refutation_that_was_not_confirmed_is_weaker_than_any_entry(known):
    dropped = Evidence("game", Verdict.INCONCLUSIVE, "not confirmed", unconfirmed=True)
    now = audit(
        Verdict.INCONCLUSIVE,
        evidence=[dropped, *audit().evidence[1:]],
        epsilon_lower=None,
    )
    entries = {} if known is None else {ID: entry_of(replace(now, verdict=known))}
    found = differences(entries, run(now), covered=lambda identifier: True, today=TODAY)
    assert Kind.WEAKER in {difference.kind for difference in found}
    (item,) = judged(run(now), found)
    assert (item.level, rule_of(item)) == (Level.UNCONFIRMED, "unconfirmed")
