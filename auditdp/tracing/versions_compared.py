"""Two versions of the code: the same input and the same generator under both, release by release."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from auditdp.claims.claim import Claim
from auditdp.tracing import findings
from auditdp.tracing.draws import CHOICE, COIN, Release
from auditdp.tracing.findings import Printed
from auditdp.tracing.losses import Moved
from auditdp.tracing.noise_families import moves, same
from auditdp.tracing.outcomes import MOST_RUNS
from auditdp.tracing.outputs import brief, where_differ
from auditdp.tracing.pair import PairTrace, compare
from auditdp.tracing.plain_values import any_of, shape_of
from auditdp.tracing.trace import Trace
from auditdp.tracing.watched_run import TracedRun


@dataclass(frozen=True, eq=False)
class VersionChange:
    """What differs between the versions at one release.

    Attributes:
        before: The release of the old version; None where the new one has it alone.
        after: That of the new version; None where it is gone.
        sentence: What differs.
    """

    before: Release | None
    after: Release | None
    sentence: str


@dataclass(frozen=True, eq=False)
class VersionsTrace(Printed):
    """An old and a new version on the same input, and on the same pair where a neighbour was given.

    It says what differs on the input and the run looked at, and of no other.

    Attributes:
        old: The run of the old version.
        new: The run of the new one.
        changes: What differs, release by release, in the order of the new version.
        output: Where the outputs differ; None where they are the same.
        pairs: Both versions on the pair; None where there was no neighbour.
    """

    old: TracedRun
    new: TracedRun
    changes: Sequence[VersionChange]
    output: str | None
    pairs: tuple[PairTrace, PairTrace] | None = None

    @classmethod
    def of(cls, old: PairTrace, new: PairTrace) -> VersionsTrace:
        """Return what differs between two versions that were traced on the same pair with the same generator."""
        changes = list(_changes(old, new))
        return cls(
            old.first,
            new.first,
            changes,
            where_differ(old.first.output, new.first.output),
            (old, new),
        )

    @property
    def differs(self) -> bool:
        """Whether anything was seen to differ."""
        return bool(self.changes) or self.output is not None

    def __str__(self) -> str:
        """Return the changes as sentences."""
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
    """Run two versions of a function on the same input with the same generator, and say what differs.

    Args:
        old: The version that stands.
        new: The changed one.
        data: The input.
        rng: The generator; the old version's run leaves it where it is.
        neighbour: Where it is given, both versions are compared on this pair, and values that move further are said.
        claim: What both are to satisfy; for the pair.
    """
    other, outcomes = (data, 0) if neighbour is None else (neighbour, MOST_RUNS)
    generators = rng, copy.deepcopy(rng)
    one, two = (
        compare(Trace(version), data, other, generator, claim=claim, outcomes=outcomes)
        for version, generator in zip((old, new), generators, strict=True)
    )
    found = VersionsTrace.of(one, two)
    return replace(found, pairs=None) if neighbour is None else found


def _changes(*pairs: PairTrace) -> Iterator[VersionChange]:
    moved = [{pair.first.number: pair for pair in one.moved} for one in pairs]
    old, new = (one.first.releases for one in pairs)
    keys = [
        [(release.kind, release.law.family, release.site.function) for release in side]
        for side in (old, new)
    ]
    for tag, a, b, c, d in SequenceMatcher(
        None, keys[0], keys[1], autojunk=False
    ).get_opcodes():
        common = min(b - a, d - c) if tag in ("equal", "replace") else 0
        for k in range(common):
            before, after = old[a + k], new[c + k]
            said = _difference(
                before, after, moved[0].get(before.number), moved[1].get(after.number)
            )
            if said:
                yield VersionChange(before, after, said)
        for release in old[a + common : b]:
            yield VersionChange(
                release,
                None,
                f"gone: {findings.what_it_does(release)} of the old version",
            )
        for release in new[c + common : d]:
            yield VersionChange(None, release, f"new: {findings.what_it_does(release)}")


def _difference(
    before: Release, after: Release, old: Moved | None, new: Moved | None
) -> str:
    """Return in what two releases differ; nothing where they do not."""
    said = []
    if (before.kind, before.law.family) != (after.kind, after.law.family):
        return f"{findings.what_it_does(after)}; the old version: {findings.what_it_does(before)}"
    if not same(before.law.scale, after.law.scale) or not same(
        before.law.parameter, after.law.parameter
    ):
        said.append(
            f"the scale is {findings.scale_of(after)} and was {findings.scale_of(before)}"
        )
    if before.shape != after.shape:
        said.append(f"the shape is {after.shape} and was {before.shape}")
    elif not _equal(before, after):
        name = (
            "the probability"
            if before.kind == COIN
            else "the table"
            if before.kind == CHOICE
            else "the value"
        )
        said.append(
            f"{name} is {brief(after.location)} and was {brief(before.location)}"
        )
    if old is not None and new is not None and abs(new.distance - old.distance) > 1e-9:
        said.append(f"it moves by {new.distance:.6g} and moved by {old.distance:.6g}")
    return (
        f"line {after.site.line} (line {before.site.line} of the old version): {'; '.join(said)}"
        if said
        else ""
    )


def _equal(before: Release, after: Release) -> bool:
    if before.location is None or after.location is None:
        return before.location is after.location
    return shape_of(before.location) == shape_of(after.location) and not any_of(
        moves(before.location, after.location)
    )
