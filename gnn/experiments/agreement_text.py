"""The answers to tables and figures in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from auditdp.report.numbers import count
from gnn.experiments.agreement import (
    AGREES,
    CONFIRMED,
    DEVIATIONS,
    DIFFERS,
    FEW,
    NOT_RUN,
    OPEN,
    REVERSED,
    Answer,
    Cell,
    Contrast,
)
from gnn.experiments.summary import FEWEST
from gnn.experiments.words import are, counted, joined


def verdict(found: Iterable[Answer]) -> str:
    """Return the sentence for a paper: its results against ours, and its statements."""
    found = list(found)
    cells = [c for each in found if not each.printed.exact for c in each.cells]
    by = Counter(cell.outcome for cell in cells)
    first = "It prints its results as plots, without numbers."
    if cells:
        agreeing = f"{by[AGREES]:,} of {len(cells):,} printed results"
        parts = [f"{agreeing} are within {DEVIATIONS} sd of ours"]
        parts += counted((by[DIFFERS], "not"), (by[FEW] + by[NOT_RUN], "open"))
        first = f"{joined(parts)}."
    stated = [contrast for each in found for contrast in each.contrasts]
    if not stated:
        return first
    by = Counter(each.outcome for each in stated)
    parts = counted(
        (by[CONFIRMED], "confirmed"),
        (by[REVERSED], "reversed"),
        (by[OPEN], f"within {DEVIATIONS} sd"),
        (by[FEW] + by[NOT_RUN], "open"),
    )
    return f"{first} Of {len(stated):,} stated comparisons, {joined(parts)}."


def sentence(answer: Answer) -> str:
    """Return the answer to a table or figure."""
    if not answer.printed.plot:
        return "Nothing to run: it shows no measurement."
    if answer.printed.reason and not answer.printed.cells:
        return f"Not run, because {answer.printed.reason}."
    parts = [numbers(answer.cells, exact=answer.printed.exact)]
    if not answer.cells:
        parts = ["It prints no number.", _runs(answer)]
    parts += [contrasts(answer.contrasts), answer.printed.remark]
    return " ".join(filter(None, parts))


def _runs(answer: Answer) -> str:
    if answer.recorded and answer.recorded == answer.planned:
        return f"All {answer.planned:,} planned runs of ours are recorded."
    if answer.recorded:
        return f"{answer.recorded:,} of {answer.planned:,} planned runs of ours are recorded."
    none = f"Not run: our {answer.planned:,} runs are planned and not computed yet."
    if not answer.quick:
        return none
    return f"{none} {count(answer.quick, 'run')} with less data and fewer epochs {are(answer.quick)} recorded."


def numbers(cells: Sequence[Cell], *, exact: bool = False) -> str:
    """Return the sentence that counts the cells by outcome; empty without cells."""
    if not cells:
        return ""
    by = Counter(cell.outcome for cell in cells)
    reasons = Counter(cell.because for cell in cells if cell.outcome == NOT_RUN)
    if by[NOT_RUN] == len(cells):
        return f"None of its {len(cells):,} cells is run{_because(reasons)}."
    rule = "equal to ours" if exact else f"within {DEVIATIONS} sd of ours"
    parts = [f"{by[AGREES]:,} of {len(cells):,} cells are {rule}"]
    parts += counted((by[DIFFERS], "not"))
    parts += [_few(by[FEW])] if by[FEW] else []
    parts += counted((by[NOT_RUN], NOT_RUN))
    constants = sum(cell.outcome == AGREES and bool(cell.note) for cell in cells)
    return f"{joined(parts)}{_because(reasons)}.{_constants(constants)}"


def contrasts(found: Sequence[Contrast]) -> str:
    """Return the sentence that counts the comparisons by outcome; empty without one."""
    if not found:
        return ""
    by = Counter(each.outcome for each in found)
    parts = counted(
        (by[CONFIRMED], "confirmed"),
        (by[REVERSED], "reversed"),
        (by[OPEN], f"within {DEVIATIONS} sd"),
    )
    parts += [_few(by[FEW])] if by[FEW] else []
    parts += counted((by[NOT_RUN], NOT_RUN))
    if len(found) == 1:
        return f"The one comparison that it states {parts[0].removeprefix('1 ')}."
    if by[NOT_RUN] == len(found):
        return f"None of the {len(found):,} comparisons that it states is run."
    return f"Of {count(len(found), 'comparison')} that it states, {joined(parts)}."


def _few(number: int) -> str:
    return f"{number:,} {'has' if number == 1 else 'have'} fewer than {FEWEST} runs of ours"


def _because(reasons: Counter[str]) -> str:
    if not reasons:
        return ""
    if len(reasons) == 1:
        return f", because {next(iter(reasons))}"
    return ": " + ", ".join(
        f"{number:,} because {reason}" for reason, number in reasons.items()
    )


def _constants(number: int) -> str:
    if not number:
        return ""
    return f" In {number} of those within, some of our runs predict one class for every node."
