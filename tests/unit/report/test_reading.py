"""What a trace read off the code: which findings a report states, with which line, and which it leaves out."""

import json
from dataclasses import replace

import numpy as np
import pytest

from auditdp.claims.statements import PureDP
from auditdp.record.results import Place, Verdict
from auditdp.record.traces import GameTrace
from auditdp.report.facts import tables
from auditdp.report.formats import render
from auditdp.report.guesses import (
    at_most,
    line_of,
    suspicions,
    trace_scope,
    trace_sentences,
    understood_findings,
)
from auditdp.tracing import Trace, compare, compare_versions
from tests.unit.report.scenarios import (
    CLEAN,
    FINDING,
    HINT,
    ROUND,
    SENTENCE,
    only,
    traced_clean,
    traced_finding,
    with_trace,
)


@pytest.fixture
def broken():
    return traced_finding()


@pytest.fixture
def clean():
    return traced_clean()


def test_findings_come_with_the_line_first_and_without_hints(broken, clean):
    assert understood_findings(broken) == [FINDING, ROUND]
    assert understood_findings(clean) == []
    # A proposal that no evidence confirmed is not stated of clean code.
    assert understood_findings(replace(broken, verdict=Verdict.NOT_REFUTED)) == []


def test_a_finding_that_no_bet_confirmed_is_a_suspicion(broken, clean):
    assert suspicions(broken) == suspicions(clean) == []
    unshown = replace(broken, verdict=Verdict.NOT_REFUTED)
    assert suspicions(unshown) == [("suspicion", ROUND)]
    unconfirmed = with_trace(unshown, findings=[replace(ROUND, confirmed=False)])
    assert suspicions(unconfirmed) == []
    steps = replace(HINT, kind="steps")
    by_accountant = with_trace(broken, share=3.0, findings=[steps, FINDING])
    assert suspicions(by_accountant) == [("accountant", steps)]


def test_the_sentence_names_another_pair_and_a_missing_confirmation(broken):
    other = with_trace(broken, findings=[replace(FINDING, pair="[4] | [0]"), ROUND])
    read = f"src/ages.py: {SENTENCE}"
    assert trace_sentences(other) == [f"{read}; on the pair [4] | [0]", ROUND.sentence]
    unconfirmed = with_trace(broken, findings=[replace(FINDING, confirmed=False)])
    (sentence,) = trace_sentences(unconfirmed)
    assert sentence.startswith(f"{read} (a suspicion")


def sarif_result(result):
    (found,) = json.loads(render(only(result), "sarif"))["runs"][0]["results"]
    return found


def line(place):
    return place["physicalLocation"]["region"]["startLine"]


def test_the_line_is_the_location_and_the_fingerprint_is_that_of_the_audit(broken):
    found, plain = map(sarif_result, (broken, replace(broken, evidence=[])))
    assert line(found["locations"][0]) == 31
    assert line(plain["locations"][0]) == 25
    assert found["partialFingerprints"] == plain["partialFingerprints"]
    assert list(map(line, found["relatedLocations"])) == [25, 7]


@pytest.mark.parametrize(
    ("file", "expected"),
    [("src/other.py", True), ("ages.py", False), ("numeric.py", False), ("", False)],
)
def test_a_file_whose_folder_is_not_known_is_no_location(broken, file, expected):
    """A trace names files outside the working folder by their name alone."""
    moved = with_trace(broken, findings=[replace(FINDING, file=file)])
    assert (line_of(moved) is not None) == expected
    own = replace(moved, mechanism_at=Place("ages.py", 3))
    assert (line_of(own) is not None) == (expected or file == "ages.py")


def test_pages_and_notebooks_have_the_table_of_lines(broken, clean):
    for result in (broken, clean):
        found = tables(result.evidence[0], result.claim)
        (table,) = (t for t in found if t.title == "Lines at which noise enters")
        assert len(table.columns) == 6
        place = "src/ages.py:31"
        assert table.rows[1] == [place, "Laplace", "2", "1.04", "0.52", "0.52"]
    assert SENTENCE in broken._repr_html_()
    assert at_most(clean) in clean._repr_html_()


def test_no_loss_is_bounded_below_what_the_result_certifies(clean):
    assert at_most(replace(clean, epsilon_lower=0.5)) == at_most(clean) != ""
    assert not at_most(replace(clean, epsilon_lower=0.53))


@pytest.mark.parametrize(
    "fields", [{"share": 0.5}, {"share": 1.4, "is_bound": True}, {"is_bound": True}]
)
def test_a_share_that_bounds_nothing_is_not_stated(fields):
    assert at_most(with_trace(CLEAN, **fields)) == ""


def test_a_share_of_the_claim_is_an_epsilon_without_delta_alone(clean):
    assert "allows at most ε = 0.52;" in at_most(clean)
    approximate = replace(clean, claim=replace(clean.claim, delta=1e-5))
    assert "allows at most 0.52 of the claim;" in at_most(approximate)


def test_a_share_of_all_leaves_nothing(clean):
    assert "48% of the claim is unused" in at_most(clean)
    whole = with_trace(CLEAN, share=1.0, is_bound=True)
    assert "unused" not in at_most(replace(whole, epsilon_lower=0.1))


def test_the_scope_of_a_trace_of_part_of_the_code():
    opaque = ["line 3: noise is rounded"]
    trace = GameTrace(pairs=1, runs=2, extent="part", opaque=opaque)
    assert trace_scope(trace) == "1 traced pair (2 runs), followed in part"


def test_a_notebook_shows_a_trace_as_it_is_printed():
    def noisy(v, rng):
        return {"<b>": v["x"] + rng.laplace(), **({"<i>": 1} if v["x"] > 1 else {})}

    rng = np.random.default_rng(0)
    pair = compare(Trace(noisy), {"x": 1}, {"x": 2}, rng, claim=PureDP(1.0))
    assert "<i>" in str(pair)
    assert "&lt;i&gt;" in pair._repr_html_()
    assert "<i>" not in pair._repr_html_() + pair._repr_markdown_()
    versions = compare_versions(noisy, noisy, {"x": 1}, rng)
    assert "no release differs" in versions._repr_html_()
