"""Law of the output over the outcomes that chance decides, for fixed noisy values.

Randomised response inverts the answer by a coin that does not depend on the data. With
the same coin, its outputs differ on every pair, but only the law of the output counts.
Here every outcome of the events and choices of a run is forced on both inputs, and the
noisy values keep their recorded results. The probability of each outcome is known. So
the law of the output given the noisy values is exact, if the limit of runs suffices for
all outcomes. If it does not, outcomes that differ from the recorded ones in one place
come first.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from auditdp.mechanism.calls.leaves import Raised, form_key, leaves
from auditdp.tracing.chance import is_by_chance, other_outcomes, probability_of
from auditdp.tracing.draws import CHOICE, Release
from auditdp.tracing.trace import Trace
from auditdp.tracing.trace_limits import LIMITS
from auditdp.tracing.watched_run import TracedRun, family_key, sampler_key

MOST_RUNS = 64
"""Default limit, for each input, of the runs that force outcomes."""


@dataclass(frozen=True)
class Outcomes:
    """Law of the output on both inputs, given the recorded noisy values.

    Attributes:
        masses: Probabilities of each output on the first and on the second input, by
            the key of the output (see ``output_key``). They sum to less than 1 if not
            all outcomes were tried.
        complete: Whether all outcomes were tried on both inputs.
        matched: Whether some outcome gave the recorded output on the second input.
        runs: Number of runs on both inputs together.
        outputs: The outputs by their keys.
        telling: Release numbers of the choices that the output reveals. Each run that
            changed only such a choice had another output than the recorded run.
    """

    masses: Mapping[bytes, tuple[float, float]]
    complete: bool
    matched: bool
    runs: int
    outputs: Mapping[bytes, Any]
    telling: frozenset[int] = frozenset()

    @property
    def epsilon(self) -> float:
        """The largest absolute log ratio of the two probabilities of one output.

        Outputs that only one input gives are left out; ``delta`` has these.
        """
        both = [(p, q) for p, q in self.masses.values() if p > 0 and q > 0]
        return max((abs(math.log(p / q)) for p, q in both), default=0.0)

    @property
    def delta(self) -> float:
        """Total probability of the outputs that only one input gives.

        It is the larger one of the two inputs' probabilities.
        """
        return self.delta_at(math.inf)

    def delta_at(self, epsilon: float) -> float:
        """Return the larger of Σ (p − e^ε p′)₊ and Σ (p′ − e^ε p)₊ over all outputs.

        Here p and p′ are the probabilities of an output on the two inputs.
        """
        if epsilon == math.inf:
            pairs = self.masses.values()
            first = math.fsum(p for p, q in pairs if q <= 0)
            return max(first, math.fsum(q for p, q in pairs if p <= 0))
        factor = math.exp(min(epsilon, LIMITS.exponent))
        first = math.fsum(max(p - factor * q, 0.0) for p, q in self.masses.values())
        second = math.fsum(max(q - factor * p, 0.0) for p, q in self.masses.values())
        return max(first, second)


def explored(
    trace: Trace, recorded: TracedRun, neighbour: Any, max_runs: int = MOST_RUNS
) -> Outcomes:
    """Return the law of the output on both inputs, over the outcomes of chance.

    Args:
        trace: Trace of the function.
        recorded: The recorded run on the first input.
        neighbour: The second input.
        max_runs: Limit of the runs on each input.
    """
    own_key = output_key(recorded.output)
    # Both inputs replay one book of draws, which grows with the outcomes that are
    # tried.
    book = replace(recorded, releases=[*recorded.releases], draws=[*recorded.draws])
    masses: list[dict[bytes, float]] = []
    outputs: dict[bytes, Any] = {}
    reveals: dict[int, bool] = {}
    is_complete, runs = True, 0
    for data in (recorded.data, neighbour):
        masses.append(defaultdict(float))
        # The recorded outcomes come first, then those that differ in one outcome.
        waiting: deque[dict[int, Any]] = deque([{}])
        made = 0
        while waiting and made < max_runs:
            forced = waiting.popleft()
            run = trace.replay(data, book, forced=forced)
            made += 1
            # Draws and releases that only this outcome leads to are the same on both
            # inputs.
            _add_missing(book.draws, run.draws, sampler_key)
            _add_missing(book.releases, run.releases, family_key)
            key = output_key(run.output)
            decided = [release for release in run.releases if is_by_chance(release)]
            masses[-1][key] += math.prod(map(probability_of, decided))
            outputs.setdefault(key, run.output)
            changed = _changed_choice(recorded, forced)
            if len(masses) == 1 and changed is not None:
                reveals[changed] = reveals.get(changed, True) and key != own_key
            is_complete &= _add_later_outcomes(waiting, decided, forced)
        is_complete = is_complete and not waiting
        runs += made
    both = {key: (masses[0][key], masses[1][key]) for key in outputs}
    is_matched = masses[1][own_key] > 0
    telling = frozenset(number for number, reveal in reveals.items() if reveal)
    return Outcomes(both, is_complete, is_matched, runs, outputs, telling)


def _changed_choice(recorded: TracedRun, forced: Mapping[int, Any]) -> int | None:
    """Return the choice whose outcome is the only one that a run changes.

    Args:
        recorded: The recorded run.
        forced: The forced results, by the number of the release.

    Returns:
        The number of the release. None if there is no such choice, or if another
        outcome also differs from the recorded one.
    """
    releases, last = recorded.releases, max(forced, default=-1)
    if not 0 <= last < len(releases) or releases[last].kind != CHOICE:
        return None
    is_unchanged = all(
        np.array_equal(releases[number].result, result)
        for number, result in forced.items()
        if number != last
    )
    return last if is_unchanged else None


def _add_missing(
    kept: list[Any], made: Sequence[Any], key: Callable[[Any], Any]
) -> None:
    """Append to ``kept`` the items of ``made`` that it lacks, counted by their key.

    If ``kept`` has n items of a key, all items of ``made`` with this key are appended
    except the first n.
    """
    counts, passed = Counter(map(key, kept)), Counter[Any]()
    for item in made:
        passed[key(item)] += 1
        if passed[key(item)] > counts[key(item)]:
            kept.append(item)


def _add_later_outcomes(
    waiting: deque[dict[int, Any]],
    decided: Sequence[Release],
    forced: Mapping[int, Any],
) -> bool:
    """Add to ``waiting`` the runs that change one outcome after the last forced one.

    Args:
        waiting: The forced results of each run that is still to be made.
        decided: The releases by chance of a run that was made.
        forced: The forced results of that run.

    Returns:
        True if every other outcome of these releases was added, False if some have too
        many outcomes.
    """
    is_all, last = True, max(forced, default=-1)
    for place, release in enumerate(decided):
        if release.number <= last:
            continue
        # The earlier outcomes are forced as well: else they would be as recorded.
        before = {earlier.number: earlier.result for earlier in decided[:place]}
        others, is_all_of_it = other_outcomes(release)
        is_all = is_all and is_all_of_it
        waiting.extend({**before, release.number: other} for other in others)
    return is_all


def output_key(output: Any) -> bytes:
    """Return a key that two outputs share if their types and numbers are equal.

    Zeros of different signs count as unequal. Exceptions share a key if their classes
    have the same name.
    """
    if isinstance(output, Raised):
        return str(output).encode()
    try:
        return np.array(list(leaves(output)), float).tobytes() + form_key(output)
    except Exception:
        # A type that no output of an audit may have.
        return repr(output).encode()
