"""Trace the mechanism of one audit on its pairs, and describe the result in a sentence.

This runs in the process that imported the audit file. The traces decide no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from auditdp.adjacency import Adjacency, Pair
from auditdp.adjacency.adjacency import different, offers
from auditdp.adjacency.pair_search import draws
from auditdp.auditing.declaration import Audit
from auditdp.claims.claim import Claim
from auditdp.errors import AdjacencyError, ConfigurationError, MechanismError
from auditdp.evidence.trace_records import Traced, findings_of, lines_of
from auditdp.mechanism.calls.leaves import Raised
from auditdp.numerics.streams import stream
from auditdp.record.results import SYMBOLS
from auditdp.runner.run_record import TracedAudit
from auditdp.tracing import Finding, PairTrace, Trace, compare

TRIED = 10
"""Limit of the drawn pairs, as a multiple of the pairs that are to be generated. Drawn
pairs that are listed or not adjacent are skipped."""
PROPOSAL = "a trace proposes, it proves nothing"
CONFIRMED = "in runs with other draws as well"
SUSPECTED = "if the output reveals the noise and random decisions there: runs with other draws did not confirm it"
OF_OUTPUTS = ("round", "seed")
"""Kinds of findings about the output itself. They break a claim even if the loss of the
releases satisfies it."""


def traced(built: Audit, key: str, root: Path, *, pairs: int, seed: int) -> TracedAudit:
    """Return the trace of an audit's mechanism, with one run on each input of a pair.

    Args:
        built: The audit.
        key: The audit's id, which keys the randomness.
        root: The working folder.
        pairs: Limit of the pairs that are generated in addition to the listed ones.
            The listed pairs are those in ``play``, or else those of the adjacency.
        seed: Root seed.

    Raises:
        ConfigurationError: If the audit has no mechanism, no claim of privacy, or no
            pairs.
        AdjacencyError: If a listed pair is not adjacent.
        MechanismError: If the mechanism raises on every input.
    """
    claim = built.claim
    if built.is_formula or not isinstance(claim, Claim):
        lacking = (
            "no mechanism, only accountants"
            if built.is_formula
            else "no pairs, since it is of a promise"
        )
        raise ConfigurationError(
            f"{key} has {lacking}; trace an audit of a mechanism whose claim is one of privacy"
        )
    listed = list(built.play or built.adjacency.pairs())
    for pair in listed:
        built.adjacency.check(pair)
    generated = generated_pairs(built.adjacency, listed, pairs, seed)
    if not listed and not generated:
        raise ConfigurationError(
            f"{key} lists no pairs, and {pairs} were to be generated; give --pairs or Audit(play=...)"
        )
    with Trace(built.mechanism) as trace:
        found = [
            (
                pair,
                compare(
                    trace,
                    pair.data,
                    pair.neighbour,
                    stream(seed, key, "trace", number),
                    claim=claim,
                ),
            )
            for number, pair in enumerate([*listed, *generated])
        ]
    # Exceptions on some inputs are outputs; on all inputs, the mechanism is broken.
    if all(
        isinstance(run.output, Raised)
        for _, pair in found
        for run in (pair.first, pair.second)
    ):
        output = found[0][1].first.output
        raise MechanismError(f"{trace.name} {output} on every input: {output.error}")
    findings, opaque = findings_of(found, claim, root, trace)
    return TracedAudit(
        str(claim),
        claim.parameter,
        len(found),
        len(generated),
        sum(pair.is_bound for _, pair in found),
        max(pair.level for _, pair in found),
        lines_of(found, claim, root),
        findings,
        opaque,
        _result(found, claim),
    )


def generated_pairs(
    adjacency: Adjacency, listed: Sequence[Pair], count: int, seed: int
) -> list[Pair]:
    """Return at most ``count`` generated pairs that are adjacent and not listed.

    A pair also counts as listed in the other order. The result is empty if the
    adjacency cannot generate pairs.
    """
    strategy = offers(adjacency).generated
    if strategy is None or not count:
        return []
    drawn = islice(draws(strategy, seed=seed), TRIED * count)
    fresh = (made.value for made in drawn if _is_neighbouring(adjacency, made.value))
    # Of equal pairs the first stays, so the listed ones come first and are cut off.
    return different([*listed, *fresh])[len(different(listed)) :][:count]


def _is_neighbouring(adjacency: Adjacency, pair: Pair) -> bool:
    try:
        adjacency.check(pair)
    except AdjacencyError:
        return False
    return True


def _result(found: Traced, claim: Claim) -> str:
    """Return a sentence on the worst finding that breaks the claim.

    If there is no such finding, the sentence is about the largest traced loss.
    """
    broken = [
        (pair, trace, finding) for pair, trace in found for finding in breaking(trace)
    ]
    if broken:
        pair, trace, finding = max(
            broken, key=lambda each: (each[2].is_confirmed, each[1].share)
        )
        lossy = sorted(
            {
                moved.first.site.line
                for moved in trace.moved
                if moved.loss and any(moved.loss)
            }
        )
        if finding.kind == "loss" and len(lossy) > 1:
            where = f"lines {', '.join(map(str, lossy))} together lose"
        else:
            where = (
                f"line {finding.site.line} loses"
                if finding.site.line
                else "the output loses"
            )
        where += f" more than the claim, {claim}, on {pair}"
        return (
            f"{where}, {CONFIRMED if finding.is_confirmed else SUSPECTED} ({PROPOSAL})"
        )
    level = max(trace.level for _, trace in found)
    symbol = SYMBOLS.get(claim.parameter, claim.parameter)
    loss = f"{symbol} = {'∞' if level == math.inf else f'{level:.6g}'}"
    on = f"on {len(found)} pair{'s' * (len(found) != 1)} traced ({PROPOSAL})"
    if not any(trace.first.draws or trace.second.draws for _, trace in found):
        return f"the loss of the output is not known: no draw was observed {on}"
    if unbounded := [trace for _, trace in found if not trace.is_bound]:
        reasons = list(dict.fromkeys(map(_why_no_bound, unbounded)))
        return (
            f"the understood part has a loss of {loss} {on}; the output may lose "
            f"more: {', '.join(reasons)}"
        )
    return (
        f"at most {loss} {on}"
        if level < math.inf
        else f"the trace shows no finite {symbol} {on}"
    )


def _why_no_bound(trace: PairTrace) -> str:
    """Return why the loss of the releases may be smaller than that of the output."""
    if trace.extent != "full" or any(moved.loss is None for moved in trace.moved):
        return "part of the code is opaque"
    if trace.outcomes is not None and not trace.outcomes.complete:
        return "not every outcome of chance was tried"
    if trace.covers:
        return "noise or chance reaches the output by ways that runs with other draws did not confirm"
    return (
        "draws or releases are not the same"
        if trace.second.parted
        else "outputs differ"
    )


def is_shown(trace: PairTrace, finding: Finding) -> bool:
    """Return True if the output reveals the values that a finding is about.

    Otherwise the output may lose less than the releases, and the finding may be false.
    """
    if finding.kind in OF_OUTPUTS or not trace.by_chance:
        return finding.kind in OF_OUTPUTS or trace.is_visible
    settled = trace.outcomes is not None and trace.outcomes.complete
    return settled and not any(moved.loss and any(moved.loss) for moved in trace.noisy)


def breaking(trace: PairTrace) -> Iterator[Finding]:
    """Yield the findings that break the claim.

    Findings on code that the trace does not understand are left out.
    """
    for finding in trace.findings:
        if finding.is_read_off and (
            trace.satisfies is False or finding.kind in OF_OUTPUTS
        ):
            yield finding
