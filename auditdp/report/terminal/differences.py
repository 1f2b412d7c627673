"""What a run changes of what was known, for a terminal: worst first, one paragraph each."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence

from auditdp.history.baseline.differences import FINDINGS, REGRESSIONS, Difference, Kind
from auditdp.report.numbers import count
from auditdp.report.text import printable, shell, terminal

MOST = {Kind.NOT_RUN: 0, Kind.CHANCE: 10, Kind.STRONGER: 10, Kind.NEW: 10, Kind.ACCEPTED: 10}
"""How many differences of a kind are listed, where not all are: nobody has to look at these."""


def differences_text(
    differences: Sequence[Difference], *, known: int, against: str, found_it: str = "", width: int = 100
) -> str:
    """Return every difference, and then how many there are of each kind.

    ``known`` is how many audits were known before, and ``found_it`` says what a run that is not worse would have found.
    """
    lines = []
    seen: Counter[Kind] = Counter()
    for difference in differences:
        seen[difference.kind] += 1
        if seen[difference.kind] > MOST.get(difference.kind, len(differences)):
            continue
        lines.append(f"{difference.kind.value:<18} {printable(difference.audit)}")
        lines += textwrap.wrap(printable(difference.text), width, initial_indent=" " * 4, subsequent_indent=" " * 4)
        if difference.kind in FINDINGS and difference.result is not None:
            lines += [f"    reproduce: {command}"] if (command := shell(difference.result.reproduce)) else []
    closing = verdict(differences, known=known, against=against, found_it=found_it)
    return terminal("\n".join([*lines, *[""] * bool(lines), *textwrap.wrap(printable(closing), width)]))


def verdict(differences: Sequence[Difference], *, known: int, against: str, found_it: str = "") -> str:
    """Return one sentence: how many differences of each kind there are, and of how many audits."""
    counts = Counter(difference.kind for difference in differences)
    counted = ", ".join(f"{counts[kind]} {kind.value}" for kind in Kind if counts[kind])
    whole = f"{count(known, 'audit')} in {against}"
    bad = sum(counts[kind] for kind in (*FINDINGS, Kind.CRASHED, *REGRESSIONS))
    if not bad:
        said = f"{whole}: nothing worse was seen" + (f" ({counted})" if counted else "")
        return f"{said}; {found_it}" if found_it else said
    return f"{whole}: {counted}"
