"""What a game found, in words: every forecaster has some, and numbers are whole and on the right side."""

import math
import re
from dataclasses import dataclass, replace

import numpy as np
import pytest

from auditdp.adjacency import Neighbours, Pair
from auditdp.betting.forecasters.forecaster import default_forecasters
from auditdp.betting.game import Game
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.evidence.game_evidence import play_game
from auditdp.evidence.game_sentences import looked_at, odds, suspected
from auditdp.evidence.output_support import BitPatterns
from auditdp.evidence.request import GameOptions
from auditdp.mechanism.protocol import as_mechanism
from auditdp.numerics.streams import stream
from auditdp.record.budget import AuditBudget
from auditdp.record.results import Verdict
from auditdp.testing import Response


@dataclass
class Report:
    who: str
    mean: float


def streams(purpose, batch):
    return stream(0, "wording", purpose, batch)


OUTPUTS = {
    "a number": lambda data, rng: data + rng.laplace(),
    "a number with steps": lambda data, rng: float(data + np.float32(rng.laplace())),
    "numbers": lambda data, rng: rng.laplace(size=3) + data,
    "many numbers": lambda data, rng: rng.laplace(size=40) + data,
    "a matrix": lambda data, rng: rng.laplace(size=(2, 2)) + data,
    "missing numbers": lambda data, rng: np.where(rng.random(3) < 0.5, np.nan, 1.0),
    "lists": lambda data, rng: [0] * int(rng.integers(1, 5)),
    "text": lambda data, rng: f"{rng.integers(4)} of {data}",
    "keys": lambda data, rng: {
        "a - b": data,
        "output": rng.random(),
        "n": 2**60 + 1,
        "z": 1j,
    },
    "a class": lambda data, rng: Report("me", rng.random()),
    "types": lambda data, rng: 5 if rng.random() < 0.5 else 5.0,
    "bits": lambda data, size, *, rng: rng.integers(0, 2, (size, 4)).astype(np.int8),
    "a law": Response(1.0),
}


@pytest.mark.parametrize("mechanism", OUTPUTS.values(), ids=OUTPUTS)
def test_what_every_forecaster_looks_at_is_said_without_its_name(mechanism):
    mechanism = as_mechanism(mechanism)
    for forecasters in (default_forecasters(mechanism), [BitPatterns()]):
        game = Game(mechanism, PureDP(1.0), [Pair(1, 0)], forecasters, streams)
        assert len(game.names) > 10 or forecasters[0].name == "bit patterns"
        for name in game.names:
            message = looked_at(name)
            assert " in cells" not in message
            assert "forecaster" not in message, name
            assert not message.startswith("["), name


def test_what_is_looked_at_leads_to_the_users_own_keys():
    assert (
        looked_at("[1] - [0] in cells, nested")
        == "the difference between output[1] and output[0]"
    )
    assert (
        looked_at("number 1 in output in cells, cautious") == "number 1 in the output"
    )
    assert looked_at("output in cells") == "the value of the output"
    assert (
        looked_at("report['output'] in halves")
        == "what the forecaster \"report['output'] in halves\" looks at"
    )
    assert (
        looked_at("output['a'][0], seen before")
        == "whether exactly this value of output['a'][0] had come before"
    )
    assert (
        looked_at("output, seen before")
        == "whether exactly the value of the output had come before"
    )
    assert looked_at("value beyond the steps of its noise in cells") == (
        "the part of the value of the output that is finer than the steps of its noise"
    )
    assert (
        looked_at("output - its type in cells")
        == "the value of the output beside the type of the output"
    )
    assert (
        looked_at("part 5 in cells, cautious")
        == "part 5 of the output, which not every output has"
    )
    assert (
        looked_at("possible outputs")
        == "whether the input can give exactly this output"
    )


@pytest.mark.parametrize(
    "value", [1.0, 7.9, 20.0, 53.4, 999.0, 2468.0, 12345678.0, 9.99e8]
)
def test_odds_are_whole_and_rounded_down(value):
    shown = int(odds(math.log(value)).replace(",", ""))
    assert shown <= value * (1 + 1e-9)
    assert shown >= min(value * 0.99, value - 1)
    assert odds(math.log(5e9)) == "10^9"
    assert odds(5000.0) == "10^2171"


@pytest.mark.dear
@pytest.mark.parametrize(
    "claim", [PureDP(0.5), ApproxDP(0.5, 0.01), GaussianDP(0.3)], ids=str
)
def test_a_finding_is_said_in_two_sentences_without_letters_that_nobody_defines(claim):
    mechanism = as_mechanism(lambda data, rng: data + rng.laplace(scale=0.3))
    found = play_game(
        mechanism,
        claim,
        Neighbours([(0, 1)]),
        GameOptions(alpha=0.05, budget=AuditBudget.of(2_000)),
        streams=streams,
    )
    assert found.verdict is Verdict.VIOLATED
    assert re.fullmatch(
        r"[\d,]+ calls were enough to refute the claim \([εμ] ≥ [\d.]+, confidence 95%\), and [\d,]+ fresh calls, made "
        r"one by one, confirmed it",
        found.statement,
    )
    message = found.counterexample.explanation
    assert re.fullmatch(
        r"In [\d,]+ fresh calls, bets on which input was used turned 1 unit into ([\d,]+|10\^\d+)\. If the claim were true, "
        r"this would happen with probability at most 1/\1\. The best bets were based on [^()]+",
        message,
    )


def test_calls_that_are_too_few_for_any_violation_are_said_to_be():
    found = play_game(
        Response(1.0),
        PureDP(1.0),
        Neighbours([(0, 1)]),
        GameOptions(alpha=1e-6, budget=AuditBudget.of(90)),
        streams=streams,
    )
    assert re.fullmatch(
        r"\d+ calls did not refute the claim; no size of violation is known that they would have refuted nine times in ten",
        found.statement,
    )


def test_a_lower_bound_of_nothing_is_not_spoken_of():
    found = play_game(
        Response(0.01),
        PureDP(1.0),
        Neighbours([(0, 1)]),
        GameOptions(alpha=0.05, budget=AuditBudget.of(300)),
        streams=streams,
    )
    assert found.epsilon_lower == 0.0
    assert "≥" not in found.statement
    assert "nine times in ten they would have refuted ε = " in found.statement


def test_a_loss_that_was_read_off_and_that_no_calls_show_is_said_with_the_calls_that_show_it():
    def halved(data, rng):
        return data + rng.laplace(scale=1 / 1.3)

    def play(calls, claim):
        options = GameOptions(
            alpha=0.001, budget=AuditBudget.of(calls, stop_when_refuted=True)
        )
        return play_game(
            as_mechanism(halved),
            PureDP(claim),
            Neighbours([(0, 1)]),
            options,
            streams=streams,
        )

    found = play(500, 1.0)
    assert found.verdict is Verdict.NOT_REFUTED
    said = re.search(
        r"suspicion: .*scale 0\.769.* moves by 1; 1-DP needs scale 1\. .*About ([\d,]+) calls",
        found.details.notices[0],
    )
    assert said is not None, found.details.notices
    enough = int(said[1].replace(",", ""))
    assert play(enough, 1.0).verdict is Verdict.VIOLATED
    assert not any("suspicion" in notice for notice in play(500, 1.3).details.notices)
    trace = found.details.trace
    assert suspected(trace, lambda: enough, enough - 1)
    assert not suspected(trace, lambda: enough, enough)
    assert not suspected(
        replace(trace, findings=[replace(trace.findings[0], confirmed=False)]),
        lambda: enough,
        100,
    )


def raises_on_one(data, rng):
    if data and rng.random() < 0.9:
        raise ValueError(data)
    return rng.random()


def raises_on_both(data, rng):
    if rng.random() < 0.5:
        raise ValueError(data)
    return data + rng.random()


@pytest.mark.parametrize("shape", [float, lambda x: {"a": x}], ids=["number", "dict"])
def test_an_exception_that_tells_the_inputs_apart_is_named(shape):
    def explanation(function):
        mechanism = as_mechanism(lambda data, rng: shape(function(data, rng)))
        options = GameOptions(
            alpha=0.05, budget=AuditBudget.of(300), trace=False, control=not False
        )
        found = play_game(
            mechanism, PureDP(0.5), Neighbours([(1, 0)]), options, streams=streams
        )
        return found.counterexample.explanation

    assert re.search(
        r"One input raises ValueError in \d+ of \d+ calls, and the other in 0 of \d+$",
        explanation(raises_on_one),
    )
    assert "raises ValueError" not in explanation(raises_on_both)
