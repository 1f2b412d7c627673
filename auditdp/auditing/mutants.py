"""Mutants of a mechanism: copies with a fault in one draw, or with a fixed seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from auditdp.auditing import mutated_draws
from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array, as_mechanism, name_of

BEFORE_NOISE = ("query", "sensitivity", "norm")
"""Attributes about the computation before the noise. A mutant does not offer them,
because its fault does not change them."""


@dataclass(frozen=True)
class Mutant:
    """A mechanism with one fault; it still states the law of the original."""

    operator: str
    """Name of the fault."""
    name: str
    """Name of the fault and of its place, unique among the mutants of a mechanism."""
    description: str
    """The fault in a sentence."""
    original: Any = field(repr=False)
    """The original mechanism, whose law the mutant states."""
    broken: Any = field(repr=False)
    """The mechanism with the fault."""

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return ``size`` independent outputs of the broken mechanism."""
        return as_mechanism(self.broken)(data, size, rng=rng)

    def __getattr__(self, attribute: str) -> Any:
        """Return an attribute of the original, such as its law.

        Raises:
            AttributeError: If the attribute is in ``BEFORE_NOISE``, begins with two
                underscores, or is missing in the original.
        """
        # While a copy is being made, a mutant has no fields yet.
        if attribute.startswith("__") or attribute in (
            "original",
            "broken",
            *BEFORE_NOISE,
        ):
            raise AttributeError(attribute)
        return getattr(self.original, attribute)


def mutants(mechanism: Any, inputs: Sequence[Any]) -> list[Mutant]:
    """Return the mutants of a mechanism, the same at every call.

    The mechanism runs on the inputs, which shows the sites where it draws. There is one
    mutant for each site and each fault that applies there, and one with a fixed seed.
    There are none if the mechanism does not draw.

    Raises:
        MechanismError: If the mechanism cannot run on an input.
    """
    try:
        return list(_mutants(mechanism, inputs))
    except MechanismError:
        raise
    except Exception as error:
        raise MechanismError(
            f"{name_of(mechanism)} raised {type(error).__name__}: {error} while its mutants were derived"
        ) from error


def _mutants(mechanism: Any, inputs: Sequence[Any]) -> Iterator[Mutant]:
    sites = mutated_draws.sites(mechanism, inputs)
    for site in sites:
        for operator in site.operators:
            broken = mutated_draws.Spoiled(mechanism, site, operator)
            place = f"what {site.method} draws in {site.place} (draw {site.number} of a call)"
            name = f"{operator}: {site.name}"
            yield Mutant(
                operator,
                name,
                f"{place} {mutated_draws.FAULTS[operator][1]}",
                mechanism,
                broken,
            )
    if sites:
        words = "every run starts from the same seed"
        yield Mutant(
            "seed fixed",
            f"seed fixed: {name_of(mechanism)}",
            words,
            mechanism,
            mutated_draws.Seeded(mechanism),
        )
