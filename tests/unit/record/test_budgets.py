"""Budgets as texts, and games that have as many calls as find a fault."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from auditdp import assert_private, check
from auditdp.adjacency import AnyValues, Box, Pair, as_adjacency
from auditdp.auditing.declaration import Audit
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.betting.forecasters.forecaster import LikelihoodRatio
from auditdp.betting.power import calls_to_find, detectable_level, detectable_rarely
from auditdp.claims.curves import AccountedDP
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.errors import ConfigurationError
from auditdp.evidence.game_evidence import play_game
from auditdp.evidence.request import GameOptions
from auditdp.mechanism.protocol import as_mechanism
from auditdp.numerics.streams import stream
from auditdp.record.budget import BUDGETS, AuditBudget, Budget, Fault
from auditdp.record.results import Verdict
from auditdp.testing import LaplaceMechanism, Response

pytestmark = pytest.mark.dear

STREAMS = partial(stream, 3, "budgets")


@pytest.mark.parametrize(
    ("text", "calls", "minimum", "fault", "written"),
    [
        ("quick", 2_000, 1, None, "quick"),
        ("thorough", 1_000_000, 1, None, "thorough"),
        ("1e5", 100_000, 100_000, None, "100000"),
        ("level:1.5", 50_000, 1, Fault("level", 1.5), "level:1.5"),
        ("tail:5e-3", 50_000, 1, Fault("tail", 0.005), "tail:0.005"),
        ("standard, 1e6,thorough", 50_000, 1, None, "standard,1000000,1000000"),
        ("200,output:.1", 200, 200, None, "200,output:0.1"),
    ],
)
def test_a_budget_is_a_text(text, calls, minimum, fault, written):
    budget = Budget.read(text)
    assert (budget.calls, budget.minimum, budget.fault, str(budget)) == (
        calls,
        minimum,
        fault,
        written,
    )
    assert Budget.read(written) == budget
    assert budget.is_limit is (text == "quick")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "standart",
            "unknown budget 'standart'; did you mean 'standard'?; expected quick, standard, thorough, a number",
        ),
        ("", "unknown budget ''; expected quick"),
        ("quick,", "unknown budget ''"),
        ("0", "expected a whole number of calls >= 1"),
        ("2.5", "expected a whole number"),
        ("inf", "expected a whole number"),
        ("nan", "expected a whole number"),
        ("tial:0.1", "unknown fault 'tial:0.1'; did you mean 'tail'?"),
        ("tail:", "a probability between 0 and 1, such as tail:0.005"),
        ("output:1", "a probability between 0 and 1, such as output:0.001"),
        ("level:1", "a factor above 1, such as level:1.5"),
        ("level:inf", "a factor above 1"),
    ],
)
def test_a_text_that_is_no_budget_says_what_was_expected(text, message):
    with pytest.raises(ConfigurationError) as raised:
        Budget.read(text)
    assert message in str(raised.value)


def stated(fault, claim, calls, **test):
    """What the power line states of a kind of fault after so many calls."""
    if fault.kind == "level":
        return detectable_level(claim, calls=calls, **test)[0] / claim.level
    test.pop("white_box")
    return detectable_rarely(claim, calls=calls, **test)[fault.kind == "output"]


@pytest.mark.parametrize("white_box", [True, False])
@pytest.mark.parametrize(
    ("claim", "text"),
    [
        (PureDP(1.0), "level:1.5"),
        (PureDP(0.1), "level:1.05"),
        (PureDP(5.0), "level:2"),
        (PureDP(1.0), "tail:0.005"),
        (PureDP(0.5), "output:0.001"),
        (ApproxDP(1.0, 1e-3), "level:1.5"),
        (GaussianDP(1.0), "level:1.5"),
    ],
)
def test_so_many_calls_find_the_fault_and_one_less_does_not(claim, text, white_box):
    fault, test = (
        Fault.read(text),
        {"alpha": 0.01, "share": 0.05, "white_box": white_box},
    )
    calls = calls_to_find(fault, claim, **test)
    assert stated(fault, claim, calls, **test) <= fault.size
    assert stated(fault, claim, calls - 1, **test) > fault.size


def test_smaller_faults_less_alpha_and_less_of_the_wealth_need_more_calls():
    def calls(text, alpha=0.05, share=0.1):
        return calls_to_find(
            Fault.read(text), PureDP(1.0), alpha=alpha, share=share, white_box=False
        )

    for kind, sizes in (
        ("level", (3.0, 1.5, 1.1)),
        ("tail", (0.3, 0.1, 1e-3)),
        ("output", (0.3, 0.1, 1e-3)),
    ):
        texts = [f"{kind}:{size}" for size in sizes]
        assert calls(texts[0]) < calls(texts[1]) < calls(texts[2])
        assert calls(texts[1]) < calls(texts[1], alpha=1e-6)
        assert calls(texts[1]) < calls(texts[1], share=1e-3)


@pytest.mark.parametrize(
    ("claim", "text", "message"),
    [
        (
            ApproxDP(1.0, 1e-5),
            "tail:0.1",
            "known for claims with δ = 0 alone, and this one is (1, 1e-05)-DP; find a level",
        ),
        (GaussianDP(1.0), "output:0.1", "and this one is 1-GDP"),
        (
            PureDP(60.0),
            "level:1.5",
            "calls do not find the worst pair that the claim would allow at 1.5 times its level",
        ),
        (
            AccountedDP([(0.0, 0.4), (1.0, 0.1)], quoted=0.1),
            "level:2",
            "1e+15 calls do not find",
        ),
    ],
)
def test_a_fault_whose_calls_are_not_known_is_refused(claim, text, message):
    with pytest.raises(ConfigurationError) as raised:
        calls_to_find(Fault.read(text), claim, alpha=0.05, share=0.5, white_box=True)
    assert message in str(raised.value)


def played(find, *, pairs, mechanism=None):
    """A game that is to find a fault, on a mechanism that keeps the claim unless another is given."""
    mechanism = as_mechanism(mechanism or LaplaceMechanism(1.0))
    return play_game(
        *(mechanism, PureDP(1.0), as_adjacency(pairs)),
        GameOptions(alpha=0.05, budget=AuditBudget.of(1, fault=Fault.read(find))),
        streams=STREAMS,
    )


@pytest.mark.parametrize(
    "pairs",
    [[(0.0, 1.0)], [(0.0, 1.0), (5.0, 6.0), (0.0, -1.0)]],
    ids=["one pair", "three"],
)
@pytest.mark.parametrize("find", ["level:1.5", "tail:0.3", "output:0.05"])
def test_the_power_line_of_such_a_game_is_what_was_asked_or_better(pairs, find):
    def noisy(data, size, *, rng):  # a black box
        return data + rng.laplace(size=size)

    found = played(find, pairs=pairs, mechanism=noisy)
    assert found.verdict is Verdict.NOT_REFUTED
    level, (tail, alone) = (
        found.details.detectable_epsilon,
        found.details.detectable_rarely,
    )
    fault = Fault.read(find)
    assert {"level": level, "tail": tail, "output": alone}[fault.kind] <= fault.size
    assert f"(--find {fault})" in found.details.calls_to_find
    if len(pairs) == 1:  # the smallest such number of calls
        fewer = {"alpha": 0.05, "share": 1e-9, "white_box": False}
        assert found.calls < calls_to_find(fault, PureDP(1.0), **fewer)


def test_a_stated_law_needs_fewer_calls_for_a_level():
    white = played("level:1.5", pairs=AnyValues((0, 1)), mechanism=Response(1.0))
    black = played(
        "level:1.5",
        pairs=AnyValues((0, 1)),
        mechanism=lambda data, size, *, rng: Response(1.0)(data, size, rng=rng),
    )
    assert white.calls < black.calls
    assert (
        max(white.details.detectable_epsilon, black.details.detectable_epsilon) <= 1.5
    )


@pytest.mark.statistical
@pytest.mark.full
def test_the_fault_is_found_nine_times_in_ten_by_games_that_were_given_its_calls(
    repeats,
):
    """Randomised response at 1.5 times the claim, in any of two pairs. α = 1e-6."""
    games, found = repeats(150, least=20), 0
    for k in range(games):
        settings = Settings(0.05, Budget(1, fault=Fault("level", 1.5)), k)
        pairs = [Pair(1, 0), Pair(0, 1)]
        audit = Audit(
            Response(1.5),
            PureDP(1.0),
            pairs,
            evidence=["game"],
            forecasters=[LikelihoodRatio()],
        )
        (evidence,) = run_audit(audit, settings).evidence
        found += evidence.details.refuted_at is not None
    assert found >= repeats.fewest(games, 0.9)


def test_pairs_that_were_found_have_the_calls_too():
    found = played("level:1.08", pairs=Box(0.0, 1.0))
    each = int(found.details.calls_to_find.split()[0].replace(",", ""))
    pairs = len(found.details.pairs)
    spent = found.details.search_calls + found.details.independence_calls
    assert sum(pair.calls for pair in found.details.pairs) >= each * pairs
    assert found.calls > spent + each * pairs
    assert found.details.search_calls > 0


def test_an_audit_that_names_its_calls_has_at_least_these():
    def calls(named, **budget):
        audit = Audit(
            LaplaceMechanism(1.0),
            PureDP(1.0),
            [(0.0, 1.0)],
            evidence=["game"],
            calls=named,
        )
        return run_audit(audit, Settings(0.05, Budget(500, **budget), 1)).calls

    needed = calls(None, fault=Fault("level", 1.5))
    assert needed not in (500, 1)
    assert calls(10 * needed, fault=Fault("level", 1.5)) >= 10 * needed
    assert calls(10, fault=Fault("level", 1.5)) == needed
    named = calls(200), calls(200, minimum=300), calls(400, minimum=300)
    assert all(
        0.6 * most < made <= most
        for made, most in zip(named, (200, 300, 400), strict=True)
    )


def test_an_absurd_fault_is_refused_with_the_number_of_its_calls():
    with pytest.raises(
        ConfigurationError,
        match=r"find tail:1e-09: [\d,]{13,} calls would find outputs of prob",
    ):
        played("tail:1e-9", pairs=[(0.0, 1.0)])
    with pytest.raises(
        ConfigurationError, match=r"on each of 2 pairs\).* 1,000,000,000 are the most"
    ):
        played("tail:1e-9", pairs=[(0.0, 1.0), (2.0, 3.0)])


def test_an_assertion_and_a_check_take_a_fault():
    result = assert_private(
        LaplaceMechanism(1.0), PureDP(1.0), [(0.0, 1.0)], find="level:2", alpha=0.01
    )
    checked = check(
        LaplaceMechanism(1.0),
        PureDP(1.0),
        [(0.0, 1.0)],
        find="level:2",
        alpha=0.01,
        evidence=["game"],
    )
    for found in (result.evidence, checked.evidence):
        (game,) = [evidence for evidence in found if evidence.kind == "game"]
        assert 1 < game.details.detectable_epsilon <= 2
        assert game.calls < BUDGETS["quick"]
    with pytest.raises(AssertionError, match=r"find='level:2'"):
        assert_private(
            LaplaceMechanism(0.2), PureDP(1.0), [(0.0, 1.0)], find="level:2", alpha=0.01
        )
    with pytest.raises(
        ConfigurationError, match="unknown fault 'levle:2'; did you mean 'level'"
    ):
        check(LaplaceMechanism(1.0), PureDP(1.0), [(0.0, 1.0)], find="levle:2")


def test_the_number_is_the_same_for_every_alternative_order_of_magnitude():
    """From the formulas: the calls of a rare output grow like one over its probability."""
    ratio = [
        calls_to_find(
            Fault("output", size), PureDP(1.0), alpha=0.05, share=0.01, white_box=False
        )
        * size
        for size in (1e-3, 1e-5, 1e-7)
    ]
    assert np.ptp(ratio) < 1e-3 * math.fsum(ratio)
