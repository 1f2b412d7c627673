"""Comparison of two versions of the code, release by release.

Both run on the same input with the same generator.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from auditdp.claims.claim import Claim
from auditdp.tracing.draws import CHOICE, COIN, Release
from auditdp.tracing.findings import Printed, scale_of, what_it_does
from auditdp.tracing.losses import Moved
from auditdp.tracing.noise_families import moves, same
from auditdp.tracing.outcomes import MOST_RUNS
from auditdp.tracing.outputs import brief, where_differ
from auditdp.tracing.pair import PairTrace, compare
from auditdp.tracing.plain_values import any_of, shape_of
from auditdp.tracing.trace import Trace
from auditdp.tracing.trace_limits import ROUNDING
from auditdp.tracing.watched_run import TracedRun


@dataclass(frozen=True, eq=False)
class VersionChange:
    """A difference between two versions at one release.

    Attributes:
        before: The release of the old version; None if only the new one has it.
        after: The release of the new version; None if only the old one has it.
        sentence: The difference as a sentence.
    """

    before: Release | None
    after: Release | None
    sentence: str


@dataclass(frozen=True, eq=False)
class VersionsTrace(Printed):
    """An old and a new version on the same input, and on a pair if there is one.

    Its differences hold for the recorded runs, and for no other runs.

    Attributes:
        old: The recorded run of the old version.
        new: The recorded run of the new version.
        changes: The differences, in the order of the releases.
        output: Phrase about the first difference of the outputs (see ``where_differ``);
            None if they are equal.
        pairs: The comparisons of the two inputs, of the old and of the new version;
            None without a neighbour.
    """

    old: TracedRun
    new: TracedRun
    changes: Sequence[VersionChange]
    output: str | None
    pairs: tuple[PairTrace, PairTrace] | None = None

    @classmethod
    def of(cls, old: PairTrace, new: PairTrace) -> VersionsTrace:
        """Return the comparison of two versions that were traced on one pair.

        Both traces have to start with a generator in the same state.
        """
        output = where_differ(old.first.output, new.first.output)
        return cls(old.first, new.first, list(_changes(old, new)), output, (old, new))

    @property
    def differs(self) -> bool:
        """True if any difference was observed."""
        return bool(self.changes) or self.output is not None

    def __str__(self) -> str:
        """Return the changes and the difference of the outputs, one sentence a line."""
        lines = [change.sentence for change in self.changes]
        if self.output is not None:
            lines.append(f"outputs differ: {self.output}")
        return "\n".join(lines) or "no release differs on this input and run"


def compare_versions(
    old: Any,
    new: Any,
    data: Any,
    rng: np.random.Generator,
    *,
    neighbour: Any = None,
    claim: Claim | None = None,
) -> VersionsTrace:
    """Run two versions of a function with the same generator, and compare them.

    Args:
        old: The present version.
        new: The changed version.
        data: The input.
        rng: The generator; the old version's run advances it.
        neighbour: A neighbour of the input, or None. With it, both versions are also
            traced on the pair. A value is then different as well if its move between
            the two inputs changed.
        claim: The claim with which each version is compared on the pair; None for none.
    """
    other, outcomes = (data, 0) if neighbour is None else (neighbour, MOST_RUNS)
    pairs = []
    # Both pairs exist before the loop, so the copy has the state before any run.
    for version, generator in ((old, rng), (new, copy.deepcopy(rng))):
        trace = Trace(version)
        pairs.append(
            compare(trace, data, other, generator, claim=claim, outcomes=outcomes)
        )
    found = VersionsTrace.of(*pairs)
    return replace(found, pairs=None) if neighbour is None else found


def _changes(old: PairTrace, new: PairTrace) -> Iterator[VersionChange]:
    before, after = old.first.releases, new.first.releases
    old_moves, new_moves = (
        {each.first.number: each for each in pair.moved} for pair in (old, new)
    )
    # By default the matcher ignores items that are frequent in long sequences.
    matcher = SequenceMatcher(None, _keys(before), _keys(after), autojunk=False)
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        # Releases that were replaced are compared as far as both versions have them.
        common = 0
        if tag in ("equal", "replace"):
            common = min(end - start, new_end - new_start)
        for k in range(common):
            one, other = before[start + k], after[new_start + k]
            sentence = _difference(
                one, other, old_moves.get(one.number), new_moves.get(other.number)
            )
            if sentence:
                yield VersionChange(one, other, sentence)
        for release in before[start + common : end]:
            sentence = f"gone: {what_it_does(release)} of the old version"
            yield VersionChange(release, None, sentence)
        for release in after[new_start + common : new_end]:
            yield VersionChange(None, release, f"new: {what_it_does(release)}")


def _keys(releases: Sequence[Release]) -> list[tuple[str, str, str]]:
    return [(each.kind, each.law.family, each.site.function) for each in releases]


def _difference(
    before: Release, after: Release, old: Moved | None, new: Moved | None
) -> str:
    """Return the difference of two releases as a sentence, or "" if there is none.

    Args:
        before: The release of the old version.
        after: The release of the new version.
        old: The old release on both inputs; None if the replay lacks it.
        new: The new release on both inputs; None if the replay lacks it.
    """
    law, old_law = after.law, before.law
    if (before.kind, old_law.family) != (after.kind, law.family):
        return f"{what_it_does(after)}; the old version: {what_it_does(before)}"
    parts = []
    is_same_scale = same(old_law.scale, law.scale)
    if not is_same_scale or not same(old_law.parameter, law.parameter):
        parts.append(f"the scale is {scale_of(after)} and was {scale_of(before)}")
    if before.shape != after.shape:
        parts.append(f"the shape is {after.shape} and was {before.shape}")
    elif not _is_same_location(before, after):
        names = {COIN: "the probability", CHOICE: "the table"}
        name, values = names.get(before.kind, "the value"), (after, before)
        now, then = (brief(release.location) for release in values)
        parts.append(f"{name} is {now} and was {then}")
    if old is not None and new is not None:
        if abs(new.distance - old.distance) > ROUNDING:
            now, then = f"{new.distance:.6g}", f"{old.distance:.6g}"
            parts.append(f"the inputs differ by {now} in it and differed by {then}")
        if new.why == "reuse" and old.why != "reuse":
            parts.append("its noise was used before, or for another entry")
    if not parts:
        return ""
    lines = f"line {after.site.line} (line {before.site.line} of the old version)"
    return f"{lines}: {'; '.join(parts)}"


def _is_same_location(before: Release, after: Release) -> bool:
    values = before.location, after.location
    if any(value is None for value in values):
        return values[0] is values[1]
    if shape_of(values[0]) != shape_of(values[1]):
        return False
    return not any_of(moves(*values))
