"""Games that continue: the recorded part is played again to the last bit."""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

from auditdp import ApproxDP, Audit, Box, GaussianDP, PureDP, unseeded
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.errors import ConfigurationError
from auditdp.numerics.streams import stream
from auditdp.record.budget import Budget, Fault
from auditdp.record.details import Part
from auditdp.testing import GaussianMechanism, Response
from tests.unit.evidence.toys import (
    BIT,
    CERTIFIED,
    INCONCLUSIVE,
    NOT_REFUTED,
    VIOLATED,
    played,
)

PURE = PureDP(1.0)
TWO_PAIRS = [(0.0, 1.0), (5.0, 6.0)]


def noisy(data, size, *, rng):
    return np.asarray(data) + rng.laplace(size=(size, *np.shape(data)))


def play(calls, further=(), *, mechanism=noisy, claim=PURE, pairs=TWO_PAIRS, **options):
    streams = partial(stream, 10, "continued")
    options["streams"] = streams
    return played(mechanism, claim, pairs, calls, further=further, **options)


def continued(before, calls, further, **options):
    """The same game with further calls."""
    return play(calls, further, recorded=before.log_e_value, **options)


def response(epsilon, **options):
    return {"mechanism": Response(epsilon), "pairs": BIT, **options}


@pytest.mark.dear
@pytest.mark.parametrize(
    ("calls", "game"),
    [
        (1_500, {}),
        (16_000, {"pairs": Box(0.0, 1.0)}),
        (1_500, response(1.0, claim=ApproxDP(1.0, 0.05))),
        (
            1_500,
            {
                "mechanism": GaussianMechanism(1.0),
                "claim": GaussianDP(1.0),
                "pairs": BIT,
            },
        ),
    ],
    ids=["black box", "searched", "approximate", "Gaussian"],
)
def test_the_first_part_is_the_recorded_game_to_the_last_bit(calls, game):
    before = play(calls, **game)
    after = continued(before, calls, [calls + 1_000], **game)
    (first,) = before.details.parts

    assert first == Part(calls=first.calls, log_e_value=before.log_e_value)
    again, second = after.details.parts
    assert again == first
    assert first.calls < before.calls <= calls
    assert calls < second.calls < after.calls <= calls + 1_000
    assert second.log_e_value == after.log_e_value != before.log_e_value
    assert after.epsilon_lower >= before.epsilon_lower
    assert after.details.search_calls == before.details.search_calls

    path = before.details.wealth_path
    assert after.details.wealth_path[: len(path)] == path
    assert f"after {first.calls:,} calls, with an e-value of" in after.details.went_on


@cache
def short():
    return play(400)


def test_a_continued_game_can_continue_again():
    second = continued(short(), 400, [800])
    third = continued(second, 400, [800, 1_200])
    assert third.details.parts[:2] == second.details.parts
    assert 800 < third.details.parts[2].calls < third.calls <= 1_200


@pytest.mark.parametrize("factor", [1 + 1e-3, 0.5])
def test_another_game_than_the_recorded_one_does_not_continue(factor):
    other = replace(short(), log_e_value=short().log_e_value * factor)
    match = r"the log wealth after \d+ calls is .* this is another game; run it anew"
    with pytest.raises(ConfigurationError, match=match):
        continued(other, 400, [800])


def test_a_mechanism_with_its_own_randomness_cannot_continue():
    rng = np.random.default_rng()
    own = unseeded(lambda data: data + rng.laplace())
    match = r"draws its own randomness.* may be multiplied"
    with pytest.raises(ConfigurationError, match=match):
        play(400, [800], mechanism=own)


def test_further_calls_find_a_smaller_violation_or_a_given_fault():
    small = response(1.1)
    few = play(300, **small)
    more = continued(few, 300, [40_000], **small)

    assert (few.verdict, more.verdict) == (NOT_REFUTED, VIOLATED)
    assert more.counterexample is not None

    true = response(1.0)
    few = play(300, **true)
    more = continued(few, 300, [Fault("level", 1.2)], **true)

    assert more.verdict is NOT_REFUTED
    assert more.details.detectable_epsilon <= 1.2 < few.details.detectable_epsilon


def test_a_continued_finding_has_a_larger_bound_and_is_confirmed_anew():
    few = play(2_000, **response(1.5))
    more = continued(few, 2_000, [12_000], **response(1.5))
    assert few.verdict is more.verdict is VIOLATED
    assert 1 <= few.epsilon_lower < more.epsilon_lower <= 1.5
    assert few.details.refuted_at == more.details.refuted_at

    fresh = few.details.confirmation.log_e_value
    assert fresh != more.details.confirmation.log_e_value


def test_a_game_that_ended_at_its_verdict_continues_from_there():
    game = response(2.0, stop_when_refuted=True)
    few = play(2_000, **game)
    more = continued(few, 2_000, [2_500], **game)
    first, second = more.details.parts

    assert [first] == few.details.parts
    assert first.calls < 2_000
    assert first.calls < second.calls < more.calls <= 2_500

    # A control that is refuted needs no further calls.
    one, other = continued(few, 2_000, [2_500], control=True, **game).details.parts
    assert one == other


def test_other_evidence_stays_as_it_is_and_controls_continue():
    audit = Audit(
        Response(0.9),
        PURE,
        BIT,
        controls=[Response(1.06)],
        evidence=["exact", "game", "counting"],
    )
    settings = Settings(0.05, Budget(4_000), 1, "key")
    before = run_audit(audit, settings)
    log_e_value = before.evidence[1].log_e_value
    budget = replace(settings.budget, later=(60_000,))
    after = run_audit(audit, replace(settings, budget=budget, recorded=log_e_value))
    changed = [
        then.kind
        for then, now in zip(before.evidence, after.evidence, strict=True)
        if then != now
    ]

    assert changed == ["game"]
    assert before.controls[0].survived
    assert not after.controls[0].survived
    assert (before.verdict, after.verdict) == (INCONCLUSIVE, CERTIFIED)


def test_the_calls_that_an_audit_names_are_its_first_part():
    audit = Audit(Response(0.9), PURE, BIT, evidence=["game"], calls=300)
    limit = Settings(0.05, Budget(200, is_limit=True), 1, "key")
    assert run_audit(audit, limit).lacking == 100
    for settings, first in ((Settings(0.05, Budget(5_000), 1), 300), (limit, 200)):
        budget = replace(settings.budget, later=(700,))
        result = run_audit(audit, replace(settings, budget=budget))
        least, most = (part.calls for part in result.evidence[0].details.parts)
        assert least <= first < most < 700
        assert result.lacking == 0
