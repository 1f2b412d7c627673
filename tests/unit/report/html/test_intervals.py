import math
from dataclasses import replace

import pytest

from auditdp.record.results import Verdict
from auditdp.report.html.plots import PlotSize, interval_of, place


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (1.0, 100.0),
        (1e-9, 0.0),
        (math.inf, 200.0),
        (0.0, 0.0),
        (-2.0, 0.0),
    ],
)
def test_the_claim_is_in_the_middle_and_what_lies_beyond_stands_at_an_end(
    ratio, expected
):
    assert place(ratio) == expected


def test_a_refutation_stands_right_of_the_claim_and_is_open(audit):
    found = interval_of(audit("feature_rr"))
    assert found is not None
    assert found.start == found.mark == place(1.31289) > PlotSize.interval_width / 2
    assert (found.open, found.role, found.text) == (True, "violated", "1.312 ≤ ε")


def test_a_proof_is_marked_at_its_upper_bound_and_a_clean_game_where_it_would_have_refuted(
    audit,
):
    proved = interval_of(replace(audit("warner"), epsilon_lower=0.9, epsilon_upper=1.0))
    assert proved is not None
    assert (proved.start, proved.end, proved.mark, proved.open) == (
        place(0.9),
        100.0,
        100.0,
        False,
    )
    clean = interval_of(audit("::dprr"))
    assert clean is not None
    assert clean.detectable == place(1.083)
    assert clean.mark == place(0.871)


def test_where_nothing_is_claimed_or_bounded_nothing_is_drawn(audit):
    assert interval_of(audit("multi_bit")) is None
    assert interval_of(replace(audit("::dprr"), epsilon_lower=None)) is None
    declared = interval_of(audit("graphpub"))
    assert declared is not None
    assert (declared.role, declared.mark) == (
        "certified",
        200.0,
    )  # declared and found is good
    assert audit("graphpub").verdict is Verdict.VIOLATED
