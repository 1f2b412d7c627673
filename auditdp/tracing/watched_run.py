"""One run of watched code: its draws and its releases.

`WatchedRun` is a run under way: either a recorded run, in which it calls the samplers,
or a replay. A replay returns the recorded draws, and forces each release to its
recorded result. Both leave a `TracedRun`, which is their record.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from auditdp.adjacency import Pair
from auditdp.adjacency.symmetry import changed_record
from auditdp.adjacency.tabular import number_of_records
from auditdp.tracing.among import AMONG, among
from auditdp.tracing.draws import ALONE, COIN, Release, Term, WatchedDraw
from auditdp.tracing.forced_values import (
    copied,
    forced_result,
    moved_draw,
    renamed_result,
)
from auditdp.tracing.noise_families import NoiseLaw, same
from auditdp.tracing.plain_values import any_of, ndim, shape_of
from auditdp.tracing.sites import NOWHERE, CodeLine, is_importing

Key = tuple[CodeLine, str]
"""A line with a family, for its releases; or with a sampler's name, for its draws."""
Alignment = Mapping[Key, Sequence[int | None]]
"""Correspondence of the items of a replay with those of its record, for each key.

The value has the number of the recorded item for each item of the replay, in order. It
has None for an item that only the replay has.
"""
Item = TypeVar("Item", WatchedDraw, Release)


@dataclass(slots=True, eq=False)
class TracedRun:
    """Record of a watched run.

    Attributes:
        data: Its input.
        output: The value that the code returned; for an exception an
            ``auditdp.mechanism.calls.leaves.Raised``. In a recorded run it equals that
            of a plain run with the same seed.
        releases: The releases, in order.
        draws: The draws, in order.
        seeds: Lines at which the code seeded a generator, each with the seed as text.
        parted: Lines at which a replay has other draws, releases or seeds than the
            record, each with a sentence.
        untraceable: Reason for which the code does not run on watched noise; else
            empty.
        state: Type of the bit generator of the run, and its state at the start.
        constants: Lines at which the sum of a constant and noise counts as noise, not
            as a release.
        coarse: Whether noise was converted to a type of lower precision.
    """

    data: Any
    output: Any = None
    releases: list[Release] = field(default_factory=list)
    draws: list[WatchedDraw] = field(default_factory=list)
    seeds: list[tuple[CodeLine, str]] = field(default_factory=list)
    parted: list[tuple[CodeLine, str]] = field(default_factory=list)
    untraceable: str = ""
    state: Any = None
    constants: frozenset[CodeLine] = frozenset()
    coarse: bool = False

    @property
    def opaque(self) -> list[tuple[CodeLine, str]]:
        """Lines that the trace does not understand, each with the reason."""
        found = [(NOWHERE, self.untraceable)] if self.untraceable else []
        for release in self.releases:
            law = release.law
            noise = f"{law.family} noise" if law.known is not None else law.family
            if release.why:
                found.append((release.site, f"{noise} {release.why}"))
            elif not release.is_known:
                found.append((release.site, f"the law of {noise} is not known"))
        return list(dict.fromkeys(found))


class Locations:
    """The lines at which samplers of a function drew around a location.

    A location that is 0 in one run may be data in another one. So at a line that had
    another location in any run, a location of 0 counts as a value with noise as well.
    """

    def __init__(self) -> None:
        self._with: set[CodeLine] = set()
        self._without: set[CodeLine] = set()

    def are_at(self, site: CodeLine, location: Any) -> bool:
        """Note a draw, and return True if its location counts as a value."""
        if any_of(location):
            self._with.add(site)
        else:
            self._without.add(site)
        return site in self._with

    @property
    def ambiguous(self) -> int:
        """Number of lines with draws around 0 and around other locations.

        If it grows, earlier runs took such a draw for noise alone.
        """
        return len(self._with & self._without)


class WatchedRun:
    """A run under way: a recorded one, or a replay.

    Args:
        data: The input.
        record: The recorded run that this one replays; None if this run is recorded.
        forced: Results that replace computed or recorded ones, by the number of the
            release in this run.
        releases: Alignment of the releases with those of the record. Releases of keys
            that it does not have correspond in order.
        draws: Alignment of the draws with those of the record, in the same way.
        constants: Lines at which the sum of a constant and noise counts as noise. A
            replay has those of its record instead.
        locations: The lines at which any run of the function drew around a location;
            the run adds its own.
        free: Whether the releases of a replay are computed from its draws, instead of
            forced to the recorded results.
        fresh: Numbers of the recorded draws that a replay draws anew.
    """

    def __init__(
        self,
        data: Any,
        record: TracedRun | None = None,
        *,
        forced: Mapping[int, Any] | None = None,
        releases: Alignment | None = None,
        draws: Alignment | None = None,
        constants: frozenset[CodeLine] = frozenset(),
        locations: Locations | None = None,
        free: bool = False,
        fresh: frozenset[int] = frozenset(),
    ) -> None:
        self.traced = TracedRun(data, constants=constants)
        self.record = record
        self.forced = forced or {}
        self.locations = locations or Locations()
        self.free, self.fresh = free, fresh
        self.thread = threading.get_ident()
        self.inside = False
        self.filled: dict[int, tuple[Any, Any]] = {}
        """Tensors that noise was written into, by the address of their memory.

        The value is the whole memory as a flat tensor, and the noise that it stands
        for.
        """
        self._origins: dict[Any, WatchedDraw] = {}
        self._draws: dict[Key, deque[WatchedDraw | None]] = {}
        self._releases: dict[Key, deque[Release | None]] = {}
        if record is not None:
            self.traced.constants = record.constants
            self.traced.state = record.state
            # Each line has its own queue, so an additional draw at one line shifts no
            # other line.
            self._draws = _queues(record.draws, sampler_key, draws)
            self._releases = _queues(record.releases, family_key, releases)

    def draw(
        self,
        method: str,
        perform: Callable[[], Any],
        law: NoiseLaw,
        site: CodeLine,
        *,
        location: Any = 0.0,
        shape: tuple[int, ...] | None = None,
        origin: Any = None,
    ) -> WatchedDraw:
        """Record a draw, and return it.

        A recorded run calls the sampler. A replay uses the recorded draw, moved to the
        location and scale of this input. It calls the sampler if no recorded draw is
        left for the line, if the draw is in ``fresh``, or if the recorded draw has
        another shape than ``shape``. It also does so if the law is unknown and the
        location or scale differs.

        Args:
            method: Name of the sampler.
            perform: Function without arguments that calls the sampler.
            law: Law of the draw without its location.
            site: The line that draws.
            location: Number or array that the sampler adds to the draw.
            shape: Shape of the draw, if it is known beforehand.
            origin: Key that is equal for two draws of the same numbers, such as draws
                of two generators with the same seed; None if it is unknown. If shape
                and family are equal as well, a use of one draw is a use of both.
        """
        expected = self._next(self._draws, (site, method), f"{method} is drawn")
        if expected is None or expected.number in self.fresh:
            value = perform()
        else:
            value = self._replayed_draw(expected, perform, law, location, shape)
        draw = WatchedDraw(len(self.traced.draws), method, law, value, site, location)
        self.traced.draws.append(draw)
        if hasattr(value, "detach") or isinstance(value, np.ndarray):
            # Code may change the array in place, so the record keeps a copy.
            draw.drawn = _clone(value)
        twin = self._origins.get(origin)
        if twin is not None and _is_same_sample(twin, draw):
            draw.used = twin.used
            return draw
        if origin is not None:
            self._origins[origin] = draw
        return draw

    def _replayed_draw(
        self,
        expected: WatchedDraw,
        perform: Callable[[], Any],
        law: NoiseLaw,
        location: Any,
        shape: tuple[int, ...] | None,
    ) -> Any:
        """Return the numbers of a recorded draw, adapted to this input.

        They are moved to the location and scale of this input. If one record was added
        or removed, the other records keep their numbers in a uniform draw of one number
        for each record, and their places in a draw that orders or chooses records
        (``among``). Any other draw whose shape changed is drawn anew. So is a draw of
        unknown law whose location or scale changed.

        Args:
            expected: The recorded draw.
            perform: Function without arguments that calls the sampler.
            law: Law of the draw on this input, without its location.
            location: Number or array that the sampler adds on this input.
            shape: Shape of the draw on this input; None to compare no shapes.
        """
        if not any_of(location):
            change = self._change_among(expected.law, law)
            if change is not None:
                return among(law.family, expected.numbers, perform(), *change)
        unmoved = same(expected.law.scale, law.scale) and same(
            expected.location, location
        )
        # A draw of another shape cannot be replayed, except one number for each record.
        recorded_shape = shape_of(expected.value)
        if shape is not None and recorded_shape != shape:
            fresh = perform()
            if law.family == "uniform" and unmoved:
                value = self._for_these_records(expected.numbers, fresh)
                if value is not None:
                    return value
            sentence = (
                f"{expected.method} draws numbers of shape {tuple(recorded_shape)}"
            )
            self._part(
                expected.site, f"{sentence} on one input and {shape} on the other"
            )
            return fresh
        if unmoved:
            return expected.value if expected.drawn is None else _clone(expected.drawn)
        # The standard draw is known only for families that the trace knows.
        if expected.law.known is None:
            return perform()
        return moved_draw(expected, law, location)

    def release(
        self,
        kind: str,
        law: NoiseLaw,
        location: Any,
        plain: Any,
        site: CodeLine,
        terms: tuple[Term, ...] = (),
        *,
        groups: Any = None,
        why: str = "",
        names: tuple[Any, ...] | None = None,
    ) -> Any:
        """Record a release, and return its result.

        The result is ``plain``, which the code computed. In a replay that is not
        ``free``, it is the recorded result if there is one. A result in ``forced``
        replaces either. The other arguments are attributes of ``Release``.
        """
        number = len(self.traced.releases)
        # The earlier uses are read before this release is entered as one.
        earlier: dict[int, None] = {}
        for term in terms:
            earlier |= dict.fromkeys(term.draw.earlier(term.index))
        for term in terms:
            term.draw.use(term.index, number)
        expected = self._next(
            self._releases, (site, law.family), f"{kind} ({law.family}) is released"
        )
        result = plain
        if expected is not None and not self.free:
            result = self._forced(expected, law, plain, names)
        if number in self.forced:
            given = self.forced[number]
            if not ndim(given) and ndim(plain):
                given = np.full(shape_of(plain), given)
            result = forced_result(plain, given)
        release = Release(number, kind, law, location, copied(result), site, groups)
        release.factor = terms[0].factor if len(terms) == 1 else 1.0
        release.earlier, release.why, release.names = tuple(earlier), why, names
        release.recorded = None if expected is None else expected.number
        release.terms = terms if kind != COIN else ()
        self.traced.releases.append(release)
        return result

    def _forced(
        self,
        expected: Release,
        law: NoiseLaw,
        plain: Any,
        names: tuple[Any, ...] | None,
    ) -> Any:
        """Return the result of a recorded release, in type and shape like ``plain``.

        Args:
            expected: The recorded release.
            law: Law of the noise on this input.
            plain: The result that the code computed on this input.
            names: Texts of the items of a choice on this input, or None.
        """
        recorded, kind = renamed_result(expected, names), expected.kind
        if kind == ALONE:
            change = self._change_among(expected.law, law)
            if change is not None:
                return among(law.family, recorded, plain, *change)
        if shape_of(recorded) != shape_of(plain):
            if kind == COIN:
                coins = self._for_these_records(recorded, plain)
                if coins is not None:
                    return coins
            shapes = [tuple(shape_of(value)) for value in (recorded, plain)]
            self._part(
                expected.site,
                f"{kind} ({law.family}) has shape {shapes[0]} on one input and {shapes[1]} on the other",
            )
        return forced_result(plain, recorded)

    def _next(
        self, queues: Mapping[Key, deque[Item | None]], key: Key, what: str
    ) -> Item | None:
        """Return the next recorded item of a key.

        Args:
            queues: The recorded items that are left, by key.
            key: The key.
            what: Clause about the item, such as "laplace is drawn".

        Returns:
            The item. None if the alignment has none here, or if none is left. In the
            latter case a replay adds the line to ``parted``, with this clause.
        """
        queue = queues.get(key)
        if queue:
            return queue.popleft()
        if self.record is not None:
            self._part(key[0], f"{what} more often")
        return None

    # Replays on an input that differs in one record.

    @cached_property
    def _changed_record(self) -> tuple[int, tuple[int, int]] | None:
        assert self.record is not None
        return changed_record(Pair(self.record.data, self.traced.data))

    def _for_these_records(self, recorded: Any, plain: Any) -> Any:
        """Return recorded numbers, one for each record, for the records of this input.

        It applies if this input has one record more or fewer. An added record gets its
        number from ``plain``, and the others keep their recorded numbers.

        Returns:
            The numbers, or None if this does not apply.
        """
        before, after = shape_of(recorded), shape_of(plain)
        if not before or not after or before[1:] != after[1:]:
            return None
        counts = before[0], after[0]
        changed = self._changed_record if abs(counts[0] - counts[1]) == 1 else None
        if changed is None or changed[1] != counts:
            return None
        place, values = changed[0], copied(recorded)
        if counts[0] > counts[1]:
            values = np.delete(values, place, axis=0)
        else:
            values = np.insert(values, place, copied(plain)[place], axis=0)
        return plain.new_tensor(values) if hasattr(plain, "detach") else values

    def _change_among(self, before: NoiseLaw, now: NoiseLaw) -> tuple[int, bool] | None:
        """Return the record that one input lacks, if a draw is among all records.

        Args:
            before: Law of the draw on the recorded input.
            now: Law of the draw on this input.

        Returns:
            The place of the record, and whether this input has it. None for any other
            draw, and if both inputs have the same number of records.
        """
        sizes = before.parameter, now.parameter
        if before.family != now.family or now.family not in AMONG or same(*sizes):
            return None
        changed = None if any(map(ndim, sizes)) else self._changed_record
        if changed is None or changed[1] != sizes:
            return None
        return changed[0], now.parameter > before.parameter

    # The end of a run, and notes.

    def _part(self, site: CodeLine, sentence: str) -> None:
        self.traced.parted.append((site, sentence))

    def seed(self, site: CodeLine, seed: str) -> None:
        """Record the seed of a generator.

        In a replay, the line is added to ``parted`` if the recorded seed of the same
        place in the run has another line or number.
        """
        number = len(self.traced.seeds)
        self.traced.seeds.append((site, seed))
        recorded = [] if self.record is None else self.record.seeds
        if number < len(recorded) and recorded[number] != (site, seed):
            self._part(site, "a generator is seeded with another number")

    def unwatched(
        self, function: Callable[..., Any], *arguments: Any, **keywords: Any
    ) -> Callable[[], Any]:
        """Return a function that makes this call, during which no draw is recorded."""

        def perform() -> Any:
            before, self.inside = self.inside, True
            try:
                return function(*arguments, **keywords)
            finally:
                self.inside = before

        return perform

    def finish(self) -> TracedRun:
        """Return the record of the run.

        In a replay, lines with fewer draws than in the record are added to ``parted``.
        If ``parted`` is then empty, so are lines with fewer releases.
        """
        for (site, method), draws in self._draws.items():
            if draws:
                self._part(site, f"{method} is drawn less often")
        # Releases are compared only if the draws are the same: else they differ anyway.
        self._mark_coins_of_records()
        if not self.traced.parted:
            for (site, family), releases in self._releases.items():
                if releases and releases[0] is not None:
                    kind = releases[0].kind
                    self._part(site, f"{kind} ({family}) is released less often")
        return self.traced

    def _mark_coins_of_records(self) -> None:
        """Set ``of_record`` of the coins that a loop tossed once for each record."""
        coins: dict[CodeLine, list[Release]] = defaultdict(list)
        for release in self.traced.releases:
            if release.kind == COIN and not release.shape:
                coins[release.site].append(release)
        if max(map(len, coins.values()), default=0) < 2:
            return
        records = number_of_records(self.traced.data) or 0
        for tossed in coins.values():
            if records > 1 and len(tossed) % records == 0:
                for release in tossed:
                    release.of_record = True


def sampler_key(draw: WatchedDraw) -> Key:
    """Return the key of a draw: its line and its sampler."""
    return draw.site, draw.method


def _is_same_sample(draw: WatchedDraw, other: WatchedDraw) -> bool:
    is_same_shape = shape_of(draw.value) == shape_of(other.value)
    return is_same_shape and draw.law.family == other.law.family


def family_key(release: Release) -> Key:
    """Return the key of a release: its line and the family of its noise."""
    return release.site, release.law.family


def _queues(
    items: Sequence[Item], key: Callable[[Item], Key], aligned: Alignment | None
) -> dict[Key, deque[Item | None]]:
    """Return the recorded items of each key, in the order of the replay.

    None stands for an item that only the replay has. Keys that ``aligned`` does not
    have keep the order of the record.
    """
    queues: dict[Key, deque[Item | None]] = defaultdict(deque)
    # The line of the last item comes first when surplus items are reported.
    for item in reversed(items):
        queues[key(item)].appendleft(item)
    for name, numbers in (aligned or {}).items():
        queues[name] = deque(None if n is None else items[n] for n in numbers)
    return dict(queues)


def _clone(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value.detach().clone()


Active = Callable[[], WatchedRun | None]
"""Function that returns the run under way in this thread, or None."""


def in_run(
    function: Callable[..., Any], active: Active, draw: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a substitute of a function, which calls ``draw(run, …)`` in a run.

    Outside of runs, and while a module is imported, the substitute calls the function
    itself. A module is imported once, so its draws belong to no run.

    Args:
        function: The function.
        active: Function that returns the run under way in this thread, or None.
        draw: Function that gets the run and the arguments of the call.
    """

    def replaced(*arguments: Any, **keywords: Any) -> Any:
        run = active()
        if run is None or is_importing():
            return function(*arguments, **keywords)
        return draw(run, *arguments, **keywords)

    return replaced
