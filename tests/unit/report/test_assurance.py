"""What stands in place of "nothing is worse"."""

import math
import re
from dataclasses import replace

import pytest

from auditdp.record.results import (
    AuditResult,
    ClaimRecord,
    Evidence,
    RunRecord,
    Verdict,
)
from auditdp.report.sentences import assurance


def audit(name, sees, *, same=None, verdict=Verdict.NOT_REFUTED):
    details = {"detectable_epsilon": sees, "same_outputs": same}
    claim = ClaimRecord("PureDP", "2-DP", "value LDP", epsilon=2.0)
    return AuditResult(
        f"audits/audit_a.py::{name}",
        verdict,
        "…",
        claim=claim,
        evidence=[Evidence("game", verdict, "…", details=details)],
    )


def said(*results):
    record = RunRecord(1, "complete", {}, {}, "", "", [], list(results))
    return assurance(record)


def test_what_all_would_have_found_is_said():
    assert said(audit("a", 2.9), audit("b", 3.0)).endswith(
        "would have been found with probability 9 in 10 in these 2 audits"
    )
    one = audit("a", 2.9)
    assert said(one).endswith("in this audit")
    bits = replace(one.evidence[0], kind="support")
    assert said(replace(one, evidence=[bits])) == ""


def test_who_would_not_is_named_with_the_remedy():
    text = said(
        audit("a", 2.9),
        audit("b", 3.4),
        audit("c", math.inf),
        audit("d", 2.1, same=512),
    )
    assert "in the other audit" in text
    missed = text.partition("missed in ")[2]
    assert missed.startswith(
        "`b` (found from 1.7 times the claim on), `c` (no size of "
    )
    assert ", `d` (both inputs" in missed
    assert "`d`: give pairs whose outputs differ" in text
    assert text.endswith("--budget level:1.5 gives the calls that are needed")


@pytest.mark.parametrize("sees", [3.01, 3.0001, 3.1, 4.0])
def test_who_misses_a_loss_is_not_said_to_see_it(sees):
    shown = re.search(r"found from ([\d.]+) times the claim on", said(audit("a", sees)))
    assert shown
    assert float(shown[1]) >= sees / 2 > 1.5


def test_a_proof_and_no_game_say_what_they_are():
    proof = replace(
        audit("a", 2.9, verdict=Verdict.CERTIFIED),
        evidence=[Evidence("exact", Verdict.CERTIFIED, "…")],
    )
    assert said(proof) == "1 audit proved the claim, for the stated law or accountant"
    tried = replace(proof, verdict=Verdict.EQUIVALENT)
    assert (
        said(tried, tried)
        == "2 audits found an estimate within its margin, on the tested inputs"
    )
    assert said(proof, tried).startswith("1 audit proved")
    assert said() == ""


@pytest.mark.parametrize(
    ("sees", "power"), [(3.0, 1.5), (math.inf, math.inf), (None, None)]
)
def test_power_is_a_multiple_of_the_claim(sees, power):
    assert audit("a", sees).power == power
    assert audit("a", sees, verdict=Verdict.VIOLATED).power is None
