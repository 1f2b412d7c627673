from dataclasses import replace

import pytest

from auditdp.record.differences import Difference, Kind
from auditdp.record.results import Counterexample, Place
from auditdp.report.forge import CommentLimits, pull_request
from tests.unit.report.scenarios import only


def test_it_says_what_is_new_of_a_baseline(audit):
    one, other, third = audit("feature_rr"), audit("gaussian"), audit("dp_appr_em_row")
    one = replace(one, mechanism_at=Place("features.py", 4))
    stronger = "NOT_REFUTED in the baseline, CERTIFIED now"
    known = [
        Difference(one.id, Kind.FINDING, one.summary, one),
        Difference(other.id, Kind.WEAKER, "control 'x' is no longer refuted", other),
        Difference(third.id, Kind.STRONGER, stronger, third),
        Difference("audits/a.py::gone", Kind.GONE, "there is no such audit any more"),
        Difference("audits/a.py::elsewhere", Kind.NOT_RUN, "other audits"),
    ]
    text = pull_request(only(one, other, third), known)
    places = [
        text.index(part)
        for part in (
            "### Privacy audits: ✕ 1 new finding in 3 audits; ▼ 2 weaker; ",
            "#### Findings",
            "at `features.py:4`",
            "#### Weaker than the baseline",
            "audits/a.py::gone",
            "#### New and stronger audits",
        )
    ]
    assert places == sorted(places)
    assert "elsewhere" not in text
    accepted = [Difference(one.id, Kind.ACCEPTED, "see 12", one)]
    text = pull_request(only(one), accepted)
    assert "<summary>1 accepted finding</summary>" in text
    assert "see 12" in text


@pytest.mark.dear
@pytest.mark.parametrize("many", [1, 40, 4000])
def test_it_is_never_longer_than_github_takes(audit, many):
    long = Counterexample(
        pair="1, " * 5000, explanation="so " * 5000, output="2 " * 5000
    )
    results = [
        replace(audit("feature_rr"), id=f"audits/audit_{k}.py::x", counterexample=long)
        for k in range(many)
    ]
    text = pull_request(only(*results))
    assert len(text) <= CommentLimits.comment_characters
    assert ("left out, for want of room" in text) == (many > 1)
    assert text.count("<details>") == text.count("</details>")
    assert text.rstrip().endswith("</sub>")
