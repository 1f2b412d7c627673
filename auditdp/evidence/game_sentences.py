"""Sentences of the game's evidence, for readers who know neither forecasters nor bets.

The name of a forecaster, such as "[1] - [0] in cells, nested", is for readers of the
code. It names the part of an output that the forecaster uses, and the estimator of its
counts. The sentences describe only the part.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from auditdp.adjacency import Adjacency
from auditdp.betting.forecasters.estimators import ESTIMATOR_NAMES
from auditdp.betting.game import Game
from auditdp.mechanism.calls.calling import Shown
from auditdp.mechanism.calls.leaves import Raised, row_keys
from auditdp.mechanism.calls.representation import short_keys
from auditdp.numerics.rounding import count
from auditdp.record.results import Counterexample
from auditdp.record.traces import GameTrace

MOST_WRITTEN = 10**9
"""Odds up to this are written out."""
MANY_PAIRS = 150
"""Smallest number of compared pairs for which a search needs no notice."""
SEVERAL = "several parts of the output together, by a rule that was learned from earlier calls"
LOOKED_AT = {
    "value": "the value of the output",
    "output": "the value of the output",
    "fingerprint": "which of the possible outputs occurred",
    "sum": "the sum of the output's numbers",
    "largest": "the largest of the output's numbers",
    "smallest": "the smallest of the output's numbers",
    "place of the largest": "which of the output's numbers is the largest",
    "place of the smallest": "which of the output's numbers is the smallest",
    "number of parts": "how many parts the output has",
    "its type": "the type of the output",
    "what does not fit": "a part of the output that most outputs do not have",
    "nearer input": "which of the two inputs the output is nearer to",
    "steps nearer to input": "which of the two inputs the differences between the output's numbers are nearer to",
    "along the change": "how far the output lies in the direction from one input to the other",
    "coordinates above their medians": "how many of the output's numbers are above their medians",
    "differences above their medians": "how many differences between the output's numbers are above their medians",
    "interaction": "two of the output's numbers together",
    "smallest of the scaled": SEVERAL,
    "votes": SEVERAL,
    "linear": SEVERAL,
    "additive": SEVERAL,
    "trees": SEVERAL,
    "likelihood ratio": "how likely the output is on either input, by the law that the mechanism states",
    "replayed ratio": "how likely the output is on either input, by the noise that a trace found in the code",
    "normal ratio": "how likely the output is on either input, by two normal laws fitted to earlier calls",
    "score": "the score that the mechanism gives the output",
    "possible outputs": "whether the input can give exactly this output",
}
"""Phrases for the used part of an output, by the name of a view or a forecaster."""
NO_PART = {"number of parts", "its type", "what does not fit"}
"""Entries of an output's row of numbers that are no part of the output itself. A
difference between such an entry and a part has no meaning."""
TELLING = 0.5
"""Smallest difference of two shares at which a finding is attributed to an exception.

They are the shares of the calls on either input that raise this exception.
"""
SHOWN = {
    "stdout": ("prints", "line"),
    "logging": ("logs", "message"),
    "files": ("writes", "file"),
}
"""The verb of each side effect of a call, and the unit in which it is counted."""
BITS = "bits: "
"""Prefix of the names of views of the last bits of numbers."""


def looked_at(forecaster: str) -> str:
    """Return a phrase for the input of a forecaster, which can follow "based on".

    >>> looked_at("[1] - [0] in cells, nested")
    'the difference between output[1] and output[0]'
    >>> looked_at("report['age'], seen before")
    "whether exactly this value of report['age'] occurred before"
    """
    name, _, variant = forecaster.rpartition(" in ")
    name = name if variant in ESTIMATOR_NAMES else forecaster
    if name.startswith(BITS):
        return f"the last bits of {_part(name.removeprefix(BITS))}"
    if name in LOOKED_AT:
        return LOOKED_AT[name]
    if name.endswith(", seen before"):
        part = _part(name.removesuffix(", seen before"))
        return (
            "whether exactly "
            f"{part if part.startswith('the value') else f'this value of {part}'} "
            "occurred before"
        )
    if name.endswith(" beyond the steps of its noise"):
        part = _part(name.removesuffix(" beyond the steps of its noise"))
        return f"the part of {part} that is finer than the steps of its noise"
    if name.startswith("telling coordinate "):
        return "one of the output's numbers, chosen by earlier calls"
    if name.count(" - ") == 1:
        one, other = name.split(" - ")
        alike = not {one, other} & NO_PART and not other.startswith("part ")
        first, second = _part(one), _part(other)
        return (
            f"the difference between {first} and {second}"
            if alike
            else f"{first} beside {second}"
        )
    if re.match(r"\[|(number \d+ in |[a-z ]+ of )?output\b|part \d", name):
        return _part(name)
    return f"the part of the output that the forecaster {forecaster!r} uses"


def _part(name: str) -> str:
    """Return a phrase for a part of an output, by its name in a forecaster's name."""
    if name in LOOKED_AT:
        return LOOKED_AT[name]
    if name.startswith("["):
        return f"output{name}"
    if name.startswith("part "):
        return f"{name} of the output, which not every output has"
    return re.sub(r"(^|[a-z] )output$", r"\1the output", name)


def explained(fresh: Game) -> Counterexample:
    """Return the counterexample of a finding: its pair, and the gain of the bets."""
    wealth = fresh.wealth
    stake, played = odds(wealth.log_wealth), count(wealth.calls, "fresh call")
    return Counterexample(
        pair=str(fresh.best.pair),
        python=fresh.best.pair.python,
        explanation=(
            f"In {played}, the input was guessed by bets, and a stake of 1 became {stake}. "
            "If the claim were true, this would happen with probability at most "
            f"1/{stake}. {_raised(fresh) or _best_bets(fresh)}"
        ),
    )


def _best_bets(fresh: Game) -> str:
    return f"The best bets were based on {looked_at(fresh.best_forecaster)}"


def _raised(fresh: Game) -> str:
    """Return a sentence on an exception that one input raises far more often.

    It is empty if there is no such exception.
    """
    sides, form = (fresh.best.memory.ones, fresh.best.memory.zeros), fresh.calls.form
    for name in sorted(fresh.calls.raised):
        (key,) = row_keys([Raised.of(type(name, (Exception,), {}))])
        known = {key, *short_keys(key)}
        often = [
            (sum(found in known for found in form.keys(side)), len(side))
            for side in sides
        ]
        more, less = sorted(often, key=lambda one: -one[0] / max(one[1], 1))
        if more[0] / max(more[1], 1) - less[0] / max(less[1], 1) >= TELLING:
            many, few = (f"{raised:,} of {made:,}" for raised, made in (more, less))
            return f"One input raises {name} in {many} calls, and the other in {few}"
    return ""


def odds(log_wealth: float) -> str:
    """Return the odds e^``log_wealth`` as text, with three digits, rounded down.

    >>> odds(math.log(2468)), odds(math.log(12345678)), odds(30.0)
    ('2,460', '12,300,000', '10^13')
    """
    if log_wealth >= math.log(MOST_WRITTEN):
        return f"10^{math.floor(log_wealth / math.log(10))}"
    value = math.exp(log_wealth) * (1 + 1e-12)
    step = 10 ** max(math.floor(math.log10(max(value, 1.0))) - 2, 0)
    return f"{math.floor(value / step) * step:,}"


def notices(game: Game) -> list[str]:
    """Return notices about the calls of a game, whatever its verdict."""
    found, made = [], game.calls
    sides = [
        side
        for table in game.tables
        if table.calls
        for side in (table.memory.ones, table.memory.zeros)
    ]
    first = next((side[:1].tobytes() for side in sides if len(side)), None)
    if first is not None and all(
        side[:few].tobytes() == len(side[:few]) * first
        for few in (8, None)
        for side in sides
    ):
        seen = sum(len(side) for side in sides)
        found.append(
            f"all {seen:,} outputs were the same, whatever the input: a constant was "
            "tested. Check that the mechanism does "
            "its work on these inputs"
        )
    elif made.seeded and not made.drew:
        found.append(
            "the mechanism drew nothing from the given rng, so an input always has "
            "the same output; noise that "
            "protects an input has to be drawn from rng"
        )
    if game.unlisted:
        found.append(
            "the law that the mechanism states gives no probability to "
            f"{game.unlisted:,} of the outputs, whatever the "
            "input, so no bets are made on them by that law; list every output"
        )
    if made.raised:
        kinds = ", ".join(
            f"{name} in {count(many, 'call')}"
            for name, many in sorted(made.raised.items())
        )
        found.append(
            f"the mechanism raised {kinds}; a caller sees them, so an exception counts as an output"
        )
    if game.is_late:
        found.append(
            f"the time limit ended the game after {count(game.wealth.calls, 'call')}; --timeout gives it more"
        )
    for name, reason in game.failures.items():
        found.append(
            f"a forecaster failed and made no bets from then on: {name!r}, by {reason}"
        )
    return found + [text for shown in made.shown for text in _not_audited(shown)]


def _not_audited(shown: Shown) -> list[str]:
    """Return a notice about a side effect of calls that is not part of the output.

    The list is empty if the side effect does not depend on the input.
    """
    if shown.depends is False:
        return []
    verb, one = SHOWN[shown.stream]
    depends = ", and this depends on the input" if shown.depends else ""
    many = f"{verb} {count(shown.many, one)} a call{depends}"
    return [
        f"the mechanism {many}: not audited; observe=({shown.stream!r},) makes that part of the output"
    ]


def suspected(
    trace: GameTrace | None, calls: Callable[[], int | None], made: int
) -> list[str]:
    """Return a notice about a loss that a trace suggests and bets do not show.

    The notice is omitted if the game had enough calls to show this loss.

    Args:
        trace: The record of the trace; None without a trace.
        calls: Returns the number of calls that would show a loss, by the laws of the
            trace; None if no number would.
        made: The number of calls of the game.
    """
    found = (
        [each for each in trace.findings if each.kind == "loss" and each.confirmed]
        if trace
        else []
    )
    if not found or (enough := calls()) is None or enough <= made:
        return []
    return [
        f"suspicion: {found[0].located}. A trace decides nothing, since it rests on a "
        f"few runs of this pair. About {enough:,} "
        "calls would decide"
    ]


def shows_nothing(same: int | None) -> list[str]:
    """Return a notice if all pairs have equal outputs on both inputs, else no notice.

    ``same`` is the result of ``same_outputs``: the number of calls with equal outputs,
    or None if some outputs differed.
    """
    if same is None:
        return []
    return [
        f"both inputs of every pair gave the same outputs in {count(same, 'call')} "
        "with the same randomness, so no loss can "
        "be found on them: give pairs on which the outputs differ"
    ]


def unsearched(
    game: Game, adjacency: Adjacency, *, searched: bool, compared: int
) -> list[str]:
    """Return notices about neighbours that were not searched, with the remedy.

    Args:
        game: The game.
        adjacency: The adjacency.
        searched: Whether the game searched for pairs that the audit does not list.
        compared: Number of pairs that the trace compared.

    Returns:
        The notices; empty if enough neighbours were searched or compared.
    """
    every, pairs = adjacency.exhaustive(), len(game.tables)
    if every is not None and len(every) <= pairs:
        return []
    if not searched:
        listed = "pair" if pairs == 1 else f"{pairs:,} pairs"
        return [
            f"the audit tested only the {listed} that it lists, and the "
            "privacy loss may be larger on other pairs. To let it search for others, give "
            "it an adjacency that generates pairs, such as Rows(...) or Neighbours(..., "
            f"search=...){f' ({why})' if (why := getattr(adjacency, 'unsearched', '')) else ''}"
        ]
    if game.looked_at == 0:
        played = (
            "the only pair of neighbours"
            if pairs == 1
            else f"{pairs} pairs of neighbours"
        )
        trace = (
            f", and {count(compared, 'pair')} compared by a trace"
            if compared > pairs
            else ""
        )
        return [
            f"{played} tested{trace}; there were too few calls to search for others "
            "by their outputs. Other pairs may lose "
            "more; more calls search for some (calls=…, or --budget quick and standard)"
        ]
    if game.looked_at < MANY_PAIRS:
        return [
            f"the search compared only {game.looked_at} pairs of neighbours, by a few calls "
            "each. Other pairs may lose more; --budget "
            "standard compares up to about 300, by more calls"
        ]
    return []
