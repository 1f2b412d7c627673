"""Games that go on: what was played is played again to the last bit, and all of it is one game."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

from auditdp import unseeded
from auditdp.adjacency import AnyValues, Box, as_adjacency
from auditdp.auditing.declaration import Audit
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.errors import ConfigurationError
from auditdp.evidence.game_evidence import play_game
from auditdp.evidence.request import GameOptions
from auditdp.mechanism.protocol import as_mechanism
from auditdp.numerics.streams import stream
from auditdp.record.budget import AuditBudget, Budget, Fault
from auditdp.record.details import Part
from auditdp.record.results import Verdict
from auditdp.testing import GaussianMechanism, Response

pytestmark = pytest.mark.dear

STREAMS = partial(stream, 10, "continued")
BITS = AnyValues((0, 1))


def noisy(data, size, *, rng):
    return np.asarray(data) + rng.laplace(size=(size, *np.shape(data)))


def play(
    calls,
    further=(),
    *,
    mechanism=noisy,
    claim=PureDP(1.0),  # noqa: B008
    pairs=((0.0, 1.0), (5.0, 6.0)),
    stop_when_refuted=False,
    **options,
):
    """A game of so many calls, and what it goes on to."""
    adjacency = as_adjacency(list(pairs) if isinstance(pairs, tuple) else pairs)
    return play_game(
        as_mechanism(mechanism),
        claim,
        adjacency,
        GameOptions(
            alpha=0.05,
            budget=AuditBudget.of(
                calls, later=further, stop_when_refuted=stop_when_refuted
            ),
            **options,
        ),
        streams=STREAMS,
    )


@pytest.mark.parametrize(
    "game",
    [
        {},
        {"pairs": Box(0.0, 1.0), "calls": 16_000},  # pairs are searched for
        {"mechanism": Response(1.2), "pairs": BITS},
        {"mechanism": GaussianMechanism(1.0), "claim": GaussianDP(1.0), "pairs": BITS},
        {"mechanism": Response(1.0), "claim": ApproxDP(1.0, 0.05), "pairs": BITS},
    ],
    ids=["black box", "searched", "pure", "Gaussian", "approximate"],
)
def test_the_first_part_is_the_game_that_it_was_to_the_last_bit(game):
    calls = game.get("calls", 1_500)
    options = {name: value for name, value in game.items() if name != "calls"}
    before = play(calls, **options)
    after = play(calls, [calls + 1_000], recorded=before.log_e_value, **options)
    (first,) = before.details.parts
    assert first == Part(calls=first.calls, log_e_value=before.log_e_value)
    assert after.details.parts[0] == first
    assert (
        first.calls
        < before.calls
        <= calls
        < after.details.parts[1].calls
        < after.calls
        <= calls + 1_000
    )
    assert after.details.parts[1].log_e_value == after.log_e_value != before.log_e_value
    assert after.epsilon_lower >= before.epsilon_lower
    assert after.details.search_calls == before.details.search_calls
    shorter = len(before.details.wealth_path)
    assert after.details.wealth_path[:shorter] == before.details.wealth_path
    assert f"after {first.calls:,} calls, with an e-value of" in after.details.went_on


@cache
def short():
    return play(400)


def test_a_game_that_went_on_can_go_on_again():
    first = short()
    second = play(400, [800], recorded=first.log_e_value)
    third = play(400, [800, 1_200], recorded=second.log_e_value)
    assert third.details.parts[:2] == second.details.parts
    assert 800 < third.details.parts[2].calls < third.calls <= 1_200


@pytest.mark.parametrize("off", [1e-3, -0.5])
def test_another_game_than_the_recorded_one_does_not_go_on(off):
    won = short().log_e_value
    assert won != 0
    with pytest.raises(
        ConfigurationError,
        match=r"the log wealth after \d+ calls is .* this is another game; run it anew",
    ):
        play(400, [800], recorded=won * (1 + off))


def test_more_calls_find_what_a_few_do_not_and_a_fault_says_how_many():
    response = {"mechanism": Response(1.1), "pairs": BITS}
    few = play(300, **response)
    more = play(300, [60_000], recorded=few.log_e_value, **response)
    assert (few.verdict, more.verdict) == (Verdict.NOT_REFUTED, Verdict.VIOLATED)
    assert more.counterexample is not None
    few = play(300, mechanism=Response(1.0), pairs=BITS)
    asked = play(
        300,
        [Fault("level", 1.2)],
        recorded=few.log_e_value,
        mechanism=Response(1.0),
        pairs=BITS,
    )
    assert asked.verdict is Verdict.NOT_REFUTED
    assert asked.details.detectable_epsilon <= 1.2 < few.details.detectable_epsilon


def test_a_finding_that_goes_on_has_a_sharper_bound_and_is_confirmed_on_other_randomness():
    response = {"mechanism": Response(1.5), "pairs": BITS}
    few = play(2_000, **response)
    more = play(2_000, [20_000], recorded=few.log_e_value, **response)
    assert few.verdict is more.verdict is Verdict.VIOLATED
    assert 1 <= few.epsilon_lower < more.epsilon_lower <= 1.5
    assert few.details.refuted_at == more.details.refuted_at
    assert few.details.confirmation.log_e_value != more.details.confirmation.log_e_value


def test_one_that_ended_at_its_verdict_goes_on_from_there():
    response = {"mechanism": Response(2.0), "pairs": BITS, "stop_when_refuted": True}
    few = play(2_000, **response)
    more = play(2_000, [2_500], recorded=few.log_e_value, **response)
    assert few.details.parts[0].calls < 2_000
    first, second = more.details.parts
    assert [first] == few.details.parts
    assert first.calls < second.calls < more.calls <= 2_500
    twin = play(2_000, [2_500], control=True, **response)  # a control needs no more
    assert twin.details.parts[0] == twin.details.parts[1]


def test_a_mechanism_with_its_own_randomness_cannot_go_on():
    rng = np.random.default_rng()
    with pytest.raises(
        ConfigurationError, match=r"draws its own randomness.* may be multiplied"
    ):
        play(400, [800], mechanism=unseeded(lambda data: data + rng.laplace()))


def test_all_other_evidence_stays_as_it_is_and_controls_go_on_too():
    audit = Audit(
        Response(0.9),
        PureDP(1.0),
        BITS,
        controls=[Response(1.06)],
        evidence=["exact", "game", "counting"],
    )
    settings = Settings(0.05, Budget(4_000), 1, "key")
    before = run_audit(audit, settings)
    game = next(evidence for evidence in before.evidence if evidence.kind == "game")
    after = run_audit(
        audit,
        replace(
            settings,
            budget=replace(settings.budget, later=(80_000,)),
            recorded=game.log_e_value,
        ),
    )
    assert [evidence.kind for evidence in before.evidence] == [
        "exact",
        "game",
        "counting",
    ]
    for then, now in zip(before.evidence, after.evidence, strict=True):
        assert (then == now) is (then.kind != "game")
    assert before.controls[0].survived
    assert not after.controls[0].survived
    assert (before.verdict, after.verdict) == (Verdict.INCONCLUSIVE, Verdict.CERTIFIED)


def test_the_calls_that_an_audit_names_are_its_first_part():
    audit = Audit(Response(0.9), PureDP(1.0), BITS, evidence=["game"], calls=300)
    brief = Settings(0.05, Budget(200, is_limit=True), 1, "key")
    assert run_audit(audit, brief).lacking == 100
    for settings, first in (
        (Settings(0.05, Budget(5_000), 1, "key"), 300),
        (brief, 200),
    ):
        result = run_audit(
            audit, replace(settings, budget=replace(settings.budget, later=(700,)))
        )
        least, most = (part.calls for part in result.evidence[0].details.parts)
        assert least <= first < most < 700
        assert result.lacking == 0
