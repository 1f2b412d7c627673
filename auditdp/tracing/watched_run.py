"""One watched run: it keeps draws and releases, and on a replay forces the results of the recorded ones."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from auditdp.adjacency import Pair
from auditdp.adjacency.symmetry import changed_record
from auditdp.adjacency.tabular import number_of_records
from auditdp.mechanism.calls.inputs import of_tensor
from auditdp.tracing.among import AMONG, among
from auditdp.tracing.coordinates import coordinates
from auditdp.tracing.draws import (
    ALONE,
    COIN,
    NOISY,
    SHARED,
    Release,
    Term,
    WatchedDraw,
    law_of,
)
from auditdp.tracing.noise_families import NoiseLaw, same
from auditdp.tracing.plain_values import PLAIN, any_of, ndim, shape_of
from auditdp.tracing.sites import CodeLine, is_importing, label


@dataclass(slots=True, eq=False)
class TracedRun:
    """A run that was watched.

    Attributes:
        data: Its input.
        output: What the code returned; what a plain run returns on the same seed, bit for bit. An exception stands as
            ``auditdp.mechanism.calls.leaves.Raised``.
        releases: In order.
        draws: In order.
        seeds: Where the code seeded a generator, and with what.
        parted: Where a replay's draws or releases are not those of the record: line and sentence.
        untraceable: Why the code does not run on watched noise; empty where it does.
        state: The state of the generator at the start.
        constants: Lines at which what is added to noise is taken for part of the noise.
        coarse: Whether noise was converted to numbers of fewer digits.
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
        """What the trace does not understand: line and reason, each once."""
        found = [(CodeLine("", 0, ""), self.untraceable)] if self.untraceable else []
        for release in self.releases:
            if release.why:
                found.append((release.site, f"{_noise(release.law)} {release.why}"))
            elif not release.is_known:
                found.append(
                    (release.site, f"the law of {_noise(release.law)} is not known")
                )
        return list(dict.fromkeys(found))


def _noise(law: NoiseLaw) -> str:
    return f"{law.family} noise" if law.known is not None else law.family


Key = tuple[CodeLine, str]
"""A line and a family."""
Waiting = TypeVar("Waiting", WatchedDraw, Release)


class WatchedRun:
    """What a run under way keeps.

    Args:
        data: The input.
        record: The run that is replayed; None where this one is recorded.
        forced: Results that releases get by their number, whatever was drawn.
        aligned: For lines and families of which the replay has more or fewer releases: the number of the recorded release
            that each of its own corresponds to, None where it is none.
        constants: See ``TracedRun``; a replay has those of the record.
        located: Lines whose sampler was given a location other than 0 in any run: there it is a value with noise,
            even where it is 0. Lines are added.
        draws: The same as ``aligned`` for lines and samplers, whose draws they are.
        free: Whether releases of a replay are computed from its draws, not forced to the recorded ones.
        fresh: Numbers of recorded draws that are drawn anew.
    """

    def __init__(
        self,
        data: Any,
        record: TracedRun | None = None,
        forced: Mapping[int, Any] | None = None,
        aligned: Mapping[Key, Sequence[int | None]] | None = None,
        constants: frozenset[CodeLine] = frozenset(),
        located: set[CodeLine] | None = None,
        draws: Mapping[Key, Sequence[int | None]] | None = None,
        *,
        free: bool = False,
        fresh: frozenset[int] = frozenset(),
    ) -> None:
        self.free, self.fresh = free, fresh
        self.located = set() if located is None else located
        self.traced = TracedRun(
            data, constants=constants if record is None else record.constants
        )
        self.record = record
        self.forced = forced or {}
        self.thread = threading.get_ident()
        self.inside = False
        self.filled: dict[int, tuple[Any, Any]] = {}
        """Memory of tensors that noise was written into, by its place: all of it as a tensor, and as noise."""
        self._origins: dict[Any, WatchedDraw] = {}
        self._changed: list[tuple[int, tuple[int, int]] | None] = []
        self._draws: dict[Key, list[WatchedDraw | None]] = {}
        self._releases: dict[Key, list[Release | None]] = {}
        if record is not None:
            for draw in reversed(record.draws):
                self._draws.setdefault((draw.site, draw.method), []).append(draw)
            for release in reversed(record.releases):
                self._releases.setdefault(
                    (release.site, release.law.family), []
                ).append(release)
            for key, numbers in (aligned or {}).items():
                self._releases[key] = [
                    None if n is None else record.releases[n] for n in reversed(numbers)
                ]
            for key, numbers in (draws or {}).items():
                self._draws[key] = [
                    None if n is None else record.draws[n] for n in reversed(numbers)
                ]

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
        """Return a draw: of the generator on a record, that of the record on a replay.

        Args:
            method: The sampler.
            perform: Draws.
            law: Of the draw without its location.
            site: The line.
            location: What the sampler adds to the draw.
            shape: The shape of what is drawn, where it is known beforehand.
            origin: What only draws share that are the same number of a generator with the same seed.
        """
        traced = self.traced
        earlier = self._origins.get(origin) if origin is not None else None
        expected = self._expected(self._draws, (site, method), f"{method} is drawn")
        kept = None
        if expected is None or expected.number in self.fresh:
            value = perform()
        elif (
            not any_of(location)
            and (changed := self._changed_among(expected.law, law)) is not None
        ):
            value = among(law.family, expected.numbers, perform(), *changed)
        elif shape is not None and shape_of(expected.value) != shape:
            fresh = perform()
            value = (
                self._of_records(expected.numbers, fresh)
                if law.family == "uniform"
                else None
            )
            if value is None:
                value, drawn = (
                    fresh,
                    f"{tuple(shape_of(expected.value))} on one input and {shape} on the other",
                )
                self._part(site, f"{method} draws numbers of shape {drawn}")
        elif same(expected.law.scale, law.scale) and same(expected.location, location):
            kept = expected.drawn
            value = expected.value if kept is None else _copied(kept)
        else:
            value = (
                perform()
                if expected.law.known is None
                else _moved(expected, law, location)
            )
        made = WatchedDraw(len(traced.draws), method, law, value, site, location)
        traced.draws.append(made)
        if (
            earlier is not None
            and earlier.law.family == law.family
            and shape_of(earlier.value) == shape_of(value)
        ):
            made.used = earlier.used
            return made
        if hasattr(value, "detach") or isinstance(value, np.ndarray):
            made.drawn = _copied(value) if kept is None else kept
        if origin is not None:
            self._origins[origin] = made
        return made

    def _expected(
        self, recorded: dict[Key, list[Waiting | None]], key: Key, what: str
    ) -> Waiting | None:
        """Return the next of what the record has at a line; None where there is none, or no record."""
        if self.record is not None and not recorded.get(key):
            self._part(key[0], f"{what} more often")
        return recorded[key].pop() if recorded.get(key) else None

    def _of_records(self, recorded: Any, plain: Any) -> Any:
        """Return what is recorded of each record for an input with one more, or less; None where it is of something else."""
        mine, theirs = shape_of(recorded), shape_of(plain)
        if not (
            mine and theirs and mine[1:] == theirs[1:] and abs(mine[0] - theirs[0]) == 1
        ):
            return None
        if (changed := self._changed_record()) is None or changed[1] != (
            mine[0],
            theirs[0],
        ):
            return None
        place, values = changed[0], _array_of(recorded)
        if mine[0] > theirs[0]:
            values = np.delete(values, place, axis=0)
        else:
            values = np.insert(values, place, _array_of(plain)[place], axis=0)
        return plain.new_tensor(values) if hasattr(plain, "detach") else values

    def _changed_record(self) -> tuple[int, tuple[int, int]] | None:
        """Return ``changed_record`` of the inputs of the record and of the replay."""
        if not self._changed and self.record is not None:
            self._changed.append(
                changed_record(Pair(self.record.data, self.traced.data))
            )
        return self._changed[0]

    def _changed_among(
        self, before: NoiseLaw, now: NoiseLaw
    ) -> tuple[int, bool] | None:
        """Return the place of the record that one input lacks, and whether this one has it, of draws among all records."""
        if (
            before.family != now.family
            or now.family not in AMONG
            or same(before.parameter, now.parameter)
        ):
            return None
        changed = (
            None
            if ndim(before.parameter) or ndim(now.parameter)
            else self._changed_record()
        )
        if changed is None or changed[1] != (before.parameter, now.parameter):
            return None
        return changed[0], changed[1][1] > changed[1][0]

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
        """Note a release and return its result: what was computed on a record, what the record has on a replay."""
        traced = self.traced
        number = len(traced.releases)
        earlier = tuple(
            dict.fromkeys(
                before for term in terms for before in term.draw.earlier(term.index)
            )
        )
        for term in terms:
            term.draw.use(term.index, number)
        factor = terms[0].factor if len(terms) == 1 else 1.0
        expected = self._expected(
            self._releases, (site, law.family), f"{kind} ({law.family}) is released"
        )
        result = (
            plain
            if expected is None or self.free
            else self._forced(expected, kind, law, plain, names)
        )
        if number in self.forced:
            given = self.forced[number]
            result = (forced_result if shape_of(given) == shape_of(plain) else _like)(
                plain, given
            )
        kept = result if type(result) in PLAIN else _array_of(result)
        made = Release(
            number, kind, law, location, kept, site, groups, factor, earlier, why, names
        )
        made.label = label() if kind == NOISY else ""
        made.recorded = None if expected is None else expected.number
        made.terms = terms if kind != COIN else ()
        traced.releases.append(made)
        return result

    def _forced(
        self,
        expected: Release,
        kind: str,
        law: NoiseLaw,
        plain: Any,
        names: tuple[Any, ...] | None,
    ) -> Any:
        """Return the recorded result as it is on this input."""
        recorded = _renamed(expected, names)
        if (
            kind == ALONE
            and (changed := self._changed_among(expected.law, law)) is not None
        ):
            return among(law.family, recorded, plain, *changed)
        if shape_of(recorded) != shape_of(plain):
            if (
                kind == COIN
                and (of_records := self._of_records(recorded, plain)) is not None
            ):
                return of_records
            shapes = f"{tuple(shape_of(recorded))} on one input and {tuple(shape_of(plain))} on the other"
            self._part(
                expected.site, f"{kind} ({expected.law.family}) has shape {shapes}"
            )
        return forced_result(plain, recorded)

    def _part(self, site: CodeLine, sentence: str) -> None:
        self.traced.parted.append((site, sentence))

    def seed(self, site: CodeLine, seed: str) -> None:
        """Note that a generator is made with a seed."""
        self.traced.seeds.append((site, seed))
        if self.record is not None:
            number = len(self.traced.seeds) - 1
            if number < len(self.record.seeds) and self.record.seeds[number] != (
                site,
                seed,
            ):
                self._part(site, "a generator is seeded with another number")

    def unwatched(
        self, function: Callable[..., Any], *arguments: Any, **keywords: Any
    ) -> Callable[[], Any]:
        """Return a call of a sampler during which the samplers that it uses itself are left alone."""

        def perform() -> Any:
            before, self.inside = self.inside, True
            try:
                return function(*arguments, **keywords)
            finally:
                self.inside = before

        return perform

    def finish(self) -> TracedRun:
        """Return the run, once what the record has beyond it is noted."""
        for (site, method), waiting in self._draws.items():
            if waiting:
                self._part(site, f"{method} is drawn less often")
        self._mark_records()
        if not self.traced.parted:
            for (site, family), left in self._releases.items():
                if left and left[-1] is not None:
                    self._part(
                        site, f"{left[-1].kind} ({family}) is released less often"
                    )
        return self.traced

    def _mark_records(self) -> None:
        """Note which coins were tossed once for each record, in a loop."""
        coins: dict[CodeLine, list[Release]] = {}
        for release in self.traced.releases:
            if release.kind == COIN and not release.shape:
                coins.setdefault(release.site, []).append(release)
        most = max(map(len, coins.values()), default=0)
        records = number_of_records(self.traced.data) if most > 1 else None
        for tossed in coins.values():
            if records and records > 1 and not len(tossed) % records:
                for release in tossed:
                    release.of_record = True


def _copied(value: Any) -> Any:
    """Return a copy of an array or a tensor, which code may go on to change."""
    return value.copy() if isinstance(value, np.ndarray) else value.detach().clone()


Active = Callable[[], WatchedRun | None]
"""Returns the run under way; None where there is none, or in another thread."""


def in_run(
    function: Callable[..., Any], active: Active, draw: Callable[..., Any]
) -> Callable[..., Any]:
    """Return what takes the place of a function: in a run ``draw(run, …)`` with a call's arguments, else itself.

    What a module draws when it is imported is no part of a run: that happens once.
    """

    def replaced(*arguments: Any, **keywords: Any) -> Any:
        run = active()
        return (
            function(*arguments, **keywords)
            if run is None or is_importing()
            else draw(run, *arguments, **keywords)
        )

    return replaced


def _moved(draw: WatchedDraw, law: NoiseLaw, location: Any) -> Any:
    """Return a recorded draw with another scale and location."""
    with np.errstate(all="ignore"):
        scales = law.scale, draw.law.scale
        ratio = (
            1.0
            if same(*scales)
            else np.divide(*(np.asarray(scale, float) for scale in scales))
        )
        moved = location + (_array_of(draw.numbers) - draw.location) * ratio
    if hasattr(draw.value, "detach"):
        return draw.value.new_tensor(moved)
    if hasattr(draw.value, "aval"):
        return draw.value.at[...].set(moved)
    return moved if isinstance(draw.value, np.ndarray) else type(draw.value)(moved)


def _renamed(recorded: Release, names: tuple[Any, ...] | None) -> Any:
    """Return a recorded result; of a choice among other items, the places of the same ones where they are there."""
    if names is None or recorded.names is None or names == recorded.names:
        return recorded.result
    place = {name: k for k, name in reversed(list(enumerate(names)))}
    moved = [
        place.get(recorded.names[k], 0) for k in np.ravel(recorded.result).tolist()
    ]
    return np.array(moved).reshape(shape_of(recorded.result))[()]


def forced_result(plain: Any, recorded: Any) -> Any:
    """Return a recorded result as the type that the code computed; entries that the record lacks as computed.

    Only the real part of a complex number has noise.
    """
    if hasattr(plain, "iloc"):
        values = forced_result(plain.to_numpy(), recorded)
        named = (
            {"name": plain.name}
            if hasattr(plain, "name")
            else {"columns": plain.columns}
        )
        return type(plain)(values, index=plain.index, **named)
    if hasattr(plain, "detach"):
        made = plain.new_tensor(forced_result(of_tensor(plain), recorded))
        return made.requires_grad_() if plain.requires_grad else made
    if hasattr(plain, "aval"):  # of jax
        return plain.at[...].set(forced_result(np.asarray(plain), recorded))
    if isinstance(plain, np.ndarray):
        made = plain.copy()
        target = made.real if made.dtype.kind == "c" else made
        source = np.real(recorded)
        if shape_of(source) == target.shape:
            with np.errstate(all="ignore"):
                target[...] = source
        elif target.ndim and ndim(source) == target.ndim:
            common = tuple(
                slice(0, min(a, b))
                for a, b in zip(target.shape, shape_of(source), strict=True)
            )
            target[common] = source[common]
        return made
    return plain if ndim(recorded) else _like(plain, recorded)


def _array_of(result: Any) -> Any:
    """Return a copy of a result as an array; plain numbers as they are."""
    if isinstance(result, np.ndarray):
        return result.copy()
    if hasattr(result, "iloc"):
        return result.to_numpy().copy()
    if hasattr(result, "aval"):
        return np.array(result)
    return of_tensor(result).copy() if hasattr(result, "detach") else result


def _like(plain: Any, recorded: Any) -> Any:
    if type(plain) is type(recorded):
        return (
            complex(recorded.real, plain.imag)
            if isinstance(plain, complex)
            else recorded
        )
    try:
        if isinstance(plain, complex | np.complexfloating):
            return type(plain)(complex(np.real(recorded), plain.imag))
        if isinstance(plain, np.ndarray):
            return np.broadcast_to(
                np.asarray(recorded, plain.dtype), plain.shape
            ).copy()
        return type(plain)(recorded)
    except (TypeError, ValueError, OverflowError):
        return recorded


def law_and_groups(
    terms: tuple[Term, ...], shape: tuple[int, ...]
) -> tuple[NoiseLaw, Any]:
    """Return the law of a linear form, and which entries of a value of some shape share a draw, if any do."""
    law = law_of(terms)
    if math.prod(shape) < 2 or _each_its_own(terms, shape):
        return law, None
    of = coordinates(terms, shape)
    columns = of.columns
    if np.unique(columns).size == columns.size:
        return law, None
    if len(np.unique(of.rows)) == len(of.rows):  # one draw for each entry
        groups = -np.arange(1, math.prod(shape) + 1)
        groups[of.rows] = columns
        return law, groups.reshape(shape)
    is_read = law.family == "Gaussian" or law.known is None
    return law if is_read else NoiseLaw(f"{law.family}{SHARED}"), np.arange(
        math.prod(shape)
    ).reshape(shape)


def _each_its_own(terms: tuple[Term, ...], shape: tuple[int, ...]) -> bool:
    """Return whether no two entries have a draw in common, as is seen at once where no function has mixed any."""
    alone = len({id(term.draw.used) for term in terms}) == len(terms)
    return alone and all(
        type(term.draw) is WatchedDraw
        and shape_of(term.index) == shape
        and np.bincount(np.ravel(term.index)).max(initial=0) < 2
        for term in terms
    )
