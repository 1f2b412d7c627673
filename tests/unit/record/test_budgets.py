"""Budgets as texts, and games that have as many calls as find a fault."""

import math
from functools import partial

import numpy as np
import pytest

from auditdp import assert_private
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
from auditdp.record.budget import AuditBudget, Budget, Fault
from auditdp.record.results import Verdict
from auditdp.testing import LaplaceMechanism, Response

PAIR = [(0.0, 1.0)]
HALF_AS_MUCH_AGAIN = Fault("level", 1.5)


@pytest.mark.parametrize(
    ("text", "calls", "minimum", "fault", "written"),
    [
        ("quick", 2_000, 1, None, "quick"),
        ("thorough", 1_000_000, 1, None, "thorough"),
        ("1e5", 100_000, 100_000, None, "100000"),
        ("level:1.5", 50_000, 1, HALF_AS_MUCH_AGAIN, "level:1.5"),
        ("tail:5e-3", 50_000, 1, Fault("tail", 0.005), "tail:0.005"),
        ("standard, 1e6,thorough", 50_000, 1, None, "standard,1000000,1000000"),
        ("200,output:.1", 200, 200, None, "200,output:0.1"),
    ],
)
def test_a_budget_is_a_text(text, calls, minimum, fault, written):
    budget = Budget.read(text)
    assert (budget.calls, budget.minimum, budget.fault) == (calls, minimum, fault)
    assert str(budget) == written
    assert Budget.read(written) == budget
    assert budget.is_limit is (text == "quick")


OPTIONS = "expected quick, standard, thorough, a number"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("standart", f"unknown budget 'standart'; did you mean 'standard'?; {OPTIONS}"),
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
def test_another_text_is_refused_with_the_expected_form(text, message):
    with pytest.raises(ConfigurationError) as raised:
        Budget.read(text)
    assert message in str(raised.value)


def needed(text, claim=PureDP(1.0), *, alpha=0.05, share=0.1, white_box=False):  # noqa: B008
    fault = Fault.read(text)
    options = {"alpha": alpha, "share": share, "white_box": white_box}
    return calls_to_find(fault, claim, **options)


def detectable(fault, claim, calls, white_box):
    """The smallest fault of this kind that is found after a number of calls."""
    test = {"alpha": 0.05, "share": 0.1, "calls": calls}
    if fault.kind == "level":
        level, *_ = detectable_level(claim, white_box=white_box, **test)
        return level / claim.level
    return detectable_rarely(claim, **test)[fault.kind == "output"]


@pytest.mark.dear
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
def test_the_calls_find_the_fault_and_one_less_does_not(claim, text, white_box):
    calls, fault = needed(text, claim, white_box=white_box), Fault.read(text)
    assert detectable(fault, claim, calls, white_box) <= fault.size
    assert detectable(fault, claim, calls - 1, white_box) > fault.size


@pytest.mark.parametrize(
    ("kind", "large", "middle", "small"),
    [("level", 3.0, 1.5, 1.1), ("tail", 0.3, 0.1, 1e-3), ("output", 0.3, 0.1, 1e-3)],
)
def test_smaller_faults_less_alpha_and_less_of_the_wealth_need_more_calls(
    kind, large, middle, small
):
    calls = needed(f"{kind}:{middle}")
    assert needed(f"{kind}:{large}") < calls < needed(f"{kind}:{small}")
    assert calls < needed(f"{kind}:{middle}", alpha=1e-6)
    assert calls < needed(f"{kind}:{middle}", share=1e-3)


def test_the_calls_for_a_rare_output_grow_like_one_over_its_probability():
    ratios = [
        needed(f"output:{size}", share=0.01) * size for size in (1e-3, 1e-5, 1e-7)
    ]
    assert np.ptp(ratios) < 1e-3 * math.fsum(ratios)


ONLY_PURE = "known for claims with δ = 0 alone, and this one is (1, 1e-05)-DP"
CURVE = AccountedDP([(0.0, 0.4), (1.0, 0.1)], quoted=0.1)


@pytest.mark.parametrize(
    ("claim", "text", "message"),
    [
        (ApproxDP(1.0, 1e-5), "tail:0.1", f"{ONLY_PURE}; find a level"),
        (GaussianDP(1.0), "output:0.1", "and this one is 1-GDP"),
        (PureDP(60.0), "level:1.5", "claim would allow at 1.5 times its level"),
        (CURVE, "level:2", "1e+15 calls do not find"),
    ],
)
def test_a_fault_of_unknown_calls_is_refused(claim, text, message):
    with pytest.raises(ConfigurationError) as raised:
        needed(text, claim, share=0.5, white_box=True)
    assert message in str(raised.value)


def black_box(mechanism):
    """The mechanism without its law."""
    return lambda data, size, *, rng: mechanism(data, size, rng=rng)


def played(find, pairs=PAIR, mechanism=LaplaceMechanism(1.0)):  # noqa: B008
    """A game that is to find a fault in a mechanism that keeps its claim."""
    options = GameOptions(alpha=0.05, budget=AuditBudget.of(1, fault=Fault.read(find)))
    streams = partial(stream, 3, "budgets")
    adjacency = as_adjacency(pairs)
    parts = as_mechanism(mechanism), PureDP(1.0), adjacency
    return play_game(*parts, options, streams=streams)


@pytest.mark.dear
@pytest.mark.parametrize("pairs", [PAIR, [*PAIR, (5.0, 6.0), (0.0, -1.0)]])
@pytest.mark.parametrize("find", ["level:1.5", "tail:0.3", "output:0.05"])
def test_a_game_detects_the_fault_that_it_is_to_find(find, pairs):
    found = played(find, pairs, black_box(LaplaceMechanism(1.0)))
    assert found.verdict is Verdict.NOT_REFUTED
    tail, output = found.details.detectable_rarely
    level, fault = found.details.detectable_epsilon, Fault.read(find)
    assert {"level": level, "tail": tail, "output": output}[fault.kind] <= fault.size
    assert f"(--find {fault})" in found.details.calls_to_find
    if len(pairs) == 1:
        # The smallest such number of calls.
        assert found.calls < needed(find, share=1e-9)


def test_a_stated_law_needs_fewer_calls_for_a_level():
    law, bits = Response(1.0), AnyValues((0, 1))
    white = played("level:1.5", bits, law)
    black = played("level:1.5", bits, black_box(law))
    assert white.calls < black.calls
    for game in (white, black):
        assert game.details.detectable_epsilon <= 1.5


@pytest.mark.statistical
@pytest.mark.full
def test_the_fault_is_found_nine_times_in_ten_by_games_with_its_calls(repeats):
    """Randomised response at 1.5 times the claim, in any of two pairs. α = 1e-6."""
    options = {"evidence": ["game"], "forecasters": [LikelihoodRatio()]}
    audit = Audit(Response(1.5), PureDP(1.0), [Pair(1, 0), Pair(0, 1)], **options)
    games, found = repeats(150, least=20), 0
    for seed in range(games):
        settings = Settings(0.05, Budget(1, fault=HALF_AS_MUCH_AGAIN), seed)
        (evidence,) = run_audit(audit, settings).evidence
        found += evidence.details.refuted_at is not None
    assert found >= repeats.fewest(games, 0.9)


def test_pairs_of_a_search_have_the_calls_too():
    game = played("level:1.08", Box(0.0, 1.0))
    details = game.details
    each = int(details.calls_to_find.split()[0].replace(",", ""))
    total = each * len(details.pairs)
    assert sum(pair.calls for pair in details.pairs) >= total
    assert details.search_calls > 0
    assert game.calls > details.search_calls + details.independence_calls + total


def test_an_audit_that_names_its_calls_has_at_least_these():
    def calls(named, **budget):
        options = {"evidence": ["game"], "calls": named}
        audit = Audit(LaplaceMechanism(1.0), PureDP(1.0), PAIR, **options)
        return run_audit(audit, Settings(0.05, Budget(500, **budget), 1)).calls

    of_the_fault = calls(None, fault=HALF_AS_MUCH_AGAIN)
    assert of_the_fault not in (500, 1)
    more = 10 * of_the_fault
    assert calls(more, fault=HALF_AS_MUCH_AGAIN) >= more
    assert calls(10, fault=HALF_AS_MUCH_AGAIN) == of_the_fault
    for named, minimum, limit in ((200, 1, 200), (200, 300, 300), (400, 300, 400)):
        assert 0.6 * limit < calls(named, minimum=minimum) <= limit


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (PAIR, r"tail:1e-09: [\d,]{13,} calls would find outputs of prob"),
        ([*PAIR, (2.0, 3.0)], r"on each of 2 pairs\).* the limit is 1,000,000,000"),
    ],
)
def test_an_absurd_fault_is_refused_with_the_number_of_its_calls(pairs, message):
    with pytest.raises(ConfigurationError, match=message):
        played("tail:1e-9", pairs)


def test_a_failed_assertion_reproduces_its_fault():
    with pytest.raises(AssertionError, match=r"find='level:2'"):
        assert_private(LaplaceMechanism(0.2), PureDP(1.0), PAIR, find="level:2")
