"""Broken twins of any mechanism, derived from its draws, its code and its parameters."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array, as_mechanism, name_of
from auditdp.mutation import draws, source
from auditdp.mutation.reach import reached

OFFERED = ("query", "sensitivity", "norm")
"""What a mechanism says about what it computes before its noise: part of its code, not of the law that it states."""


@dataclass(frozen=True)
class Mutant:
    """A mechanism with one fault that its author does not know of: it still states the law of the original."""

    operator: str
    name: str
    """The fault and its place, unique among the mutants of a mechanism."""
    description: str
    """The fault in a sentence."""
    original: Any = field(repr=False)
    """The mechanism, whose law is what the mutant states."""
    broken: Any = field(repr=False)
    """What runs. A mutant has the ``query`` of that, because a query is code; one that is broken in its draws has none,
    because there is nothing new to learn from it.
    """
    id: str = ""
    """The name, but for the names of a function's own variables, which may be renamed."""

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return ``size`` independent outputs of the broken mechanism."""
        return as_mechanism(self.broken)(data, size, rng=rng)

    def __getattr__(self, attribute: str) -> Any:
        """Offer what the mechanism offers: its stated law, but the query of the broken one."""
        if attribute.startswith("__") or attribute in ("original", "broken"):  # while a copy is being made
            raise AttributeError(attribute)
        return getattr(self.broken if attribute in OFFERED else self.original, attribute)


def mutants(mechanism: Any, inputs: Sequence[Any]) -> list[Mutant]:
    """Return broken twins of a mechanism, the same ones every time.

    It is run on the inputs, to see where it draws and which code it executes.

    Raises:
        MechanismError: If it cannot run on an input.
    """
    return derive(mechanism, inputs)[0]


def derive(mechanism: Any, inputs: Sequence[Any]) -> tuple[list[Mutant], list[str]]:
    """Return broken twins of a mechanism, and the names of its functions that were left alone.

    Raises:
        MechanismError: If it cannot run on an input.
    """
    try:
        found = list(_of_draws(mechanism, inputs))
    except MechanismError:
        raise
    except Exception as error:
        raise MechanismError(
            f"{name_of(mechanism)} raised {type(error).__name__}: {error} while its mutants were derived"
        ) from error
    rewritten, left_alone = _of_source(mechanism, inputs)
    return _distinct([*found, *_of_parameters(mechanism), *rewritten]), left_alone


def _of_draws(mechanism: Any, inputs: Sequence[Any]) -> Iterator[Mutant]:
    """Spoil one place that draws, or the seed."""
    sites = draws.sites(mechanism, inputs)
    for site in sites:
        for operator in site.operators:
            broken = draws.Spoiled(mechanism, site, operator)
            place = f"what {site.method} draws in {site.place} (draw {site.number} of a call)"
            name = f"{operator}: {site.name}"
            yield Mutant(operator, name, f"{place} {draws.FAULTS[operator][1]}", mechanism, broken)
    if sites:
        words = "every run starts from the same seed"
        yield Mutant("seed fixed", f"seed fixed: {name_of(mechanism)}", words, mechanism, draws.Seeded(mechanism))


def _of_parameters(mechanism: Any) -> Iterator[Mutant]:
    """Double a privacy parameter, or halve one that the noise grows with, of the mechanism or of a part of it."""
    for path, before, after, broken in _altered(mechanism):
        operator = "parameter doubled" if after > before else "parameter halved"
        words = f"{path} is {after:g} instead of {before:g}"
        yield Mutant(operator, f"{operator}: {path} = {after:g}", words, mechanism, broken)


def _altered(part: Any) -> Iterator[tuple[str, float, float, Any]]:
    """Yield (field, value, new value, copy) for every parameter of a dataclass and of the dataclasses in it."""
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        return
    for place in (f for f in dataclasses.fields(part) if f.init):
        value = getattr(part, place.name)
        if dataclasses.is_dataclass(value):
            inner = [(f"{place.name}.{path}", *numbers, new) for path, *numbers, new in _altered(value)]
        elif isinstance(value, bool) or not isinstance(value, int | float):
            continue
        elif source.SPENT.search(place.name):
            inner = [(place.name, value, 2 * value, 2 * value)]
        elif source.NOISE.search(place.name):
            inner = [(place.name, value, value / 2, value / 2)]
        else:
            continue
        for path, before, after, new in inner:
            try:
                yield path, before, after, dataclasses.replace(part, **{place.name: new})
            except Exception:  # the mechanism refuses the value
                continue


def _of_source(mechanism: Any, inputs: Sequence[Any]) -> tuple[list[Mutant], list[str]]:
    """Change one expression of the code; none where the mechanism cannot be copied, or runs no code of its own."""
    try:
        codes = reached(mechanism, inputs, draws.SAMPLE)
    except Exception:  # it did run on these inputs, so it is the copy that fails
        codes = []
    changes, left_alone = source.changes(mechanism, codes) if codes else ([], [name_of(mechanism)])
    return [
        Mutant(
            change.operator,
            change.name,
            f"in {change.function}, {change.before} is "
            + (f"replaced by {change.after}" if change.after else "left out"),
            mechanism,
            source.Rewritten(mechanism, change),
            change.id,
        )
        for change in changes
    ], left_alone


def _distinct(found: Sequence[Mutant]) -> list[Mutant]:
    """Number the mutants that share a name: the same change of the same text in several places of a function."""
    names, ids = Counter[str](), Counter[str]()
    distinct = []
    for mutant in found:
        identity = mutant.id or mutant.name
        again, same = _again(names, mutant.name), _again(ids, identity)
        named = {"name": mutant.name + again, "id": identity + same, "description": mutant.description + again}
        distinct.append(dataclasses.replace(mutant, **named))
    return distinct


def _again(seen: Counter[str], name: str) -> str:
    seen[name] += 1
    return f" (place {seen[name]})" if seen[name] > 1 else ""
