"""The cells of a grid: settings, what ``--only`` leaves of them, and the seed of each cell."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from auditdp.errors import ConfigurationError, did_you_mean
from auditdp.numerics.streams import stream
from gnn.experiments.experiment import (
    FORM,
    PUBLISHED,
    REPAIRED,
    Experiment,
    Parameters,
    Profile,
    Value,
)


@dataclass(frozen=True)
class GridCell:
    """One repetition of one setting.

    Attributes:
        experiment: The experiment's name.
        version: The experiment's version.
        parameters: The setting.
        repetition: Which repetition, from 0.
        root_seed: The seed of the run.
        common: Parameters that the cell's seed does not depend on.
    """

    experiment: str
    version: int
    parameters: Parameters
    repetition: int
    root_seed: int
    common: tuple[str, ...] = ()

    @property
    def seed(self) -> int:
        """The cell's seed, below 2^63: of the root seed, the experiment, the setting and the repetition alone."""
        own = {
            name: value
            for name, value in self.parameters.items()
            if name not in self.common
        }
        generator = stream(
            self.root_seed,
            "experiment",
            self.experiment,
            canonical(own),
            "repetition",
            self.repetition,
        )
        return int(generator.integers(2**63))

    @property
    def key(self) -> str:
        """The key of the cell's record."""
        whole = [
            self.experiment,
            self.version,
            canonical(self.parameters),
            self.repetition,
            self.seed,
        ]
        return hashlib.blake2b(json.dumps(whole).encode(), digest_size=12).hexdigest()


def canonical(parameters: Parameters) -> str:
    """Return a setting as JSON with sorted names; infinity is the string "inf".

    A number has one form, whether it is written 1 or 1.0.
    """
    return json.dumps(
        {name: plain(parameters[name]) for name in sorted(parameters)},
        ensure_ascii=False,
    )


def plain(value: Value) -> Value:
    """Return a value as records hold it: whole floats as integers, infinity as "inf"."""
    if isinstance(value, float):
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return int(value) if value.is_integer() else value
    return value


def settings(experiment: Experiment, profile: Profile) -> list[Parameters]:
    """Return the settings of the grid, a repaired one right after the published one that it repairs."""
    names = [factor.name for factor in experiment.factors]
    found: list[Parameters] = []
    for values in itertools.product(
        *(factor.values(profile) for factor in experiment.factors)
    ):
        setting = dict(zip(names, values, strict=True))
        if not experiment.keep(setting):
            continue
        found.append(setting | {FORM: PUBLISHED} if experiment.has_repairs else setting)
        if experiment.repaired(setting):
            found.append(setting | {FORM: REPAIRED})
    return found


def cells(
    experiment: Experiment,
    *,
    profile: Profile,
    root_seed: int,
    only: Sequence[str] = (),
) -> list[GridCell]:
    """Return the cells of a run: every setting once, then every setting again.

    Args:
        experiment: The experiment.
        profile: Which values and how many repetitions.
        root_seed: The seed of the run.
        only: Restrictions "factor=value"; of one factor any may hold, of several all must.

    Raises:
        ConfigurationError: If a restriction names no factor or no value of it.
    """
    chosen = restricted(experiment, settings(experiment, profile), only)
    return [
        GridCell(
            experiment.name,
            experiment.version,
            setting,
            repetition,
            root_seed,
            experiment.common,
        )
        for repetition in range(experiment.repetitions[profile])
        for setting in chosen
    ]


def restricted(
    experiment: Experiment, found: Sequence[Parameters], only: Sequence[str]
) -> list[Parameters]:
    """Return the settings that the restrictions leave.

    Raises:
        ConfigurationError: If one names no factor, or no value of it, or nothing is left.
    """
    wanted: dict[str, set[str]] = {}
    for text in only:
        name, equals, value = text.partition("=")
        known = [factor.name for factor in experiment.factors] + (
            [FORM] if experiment.has_repairs else []
        )
        if not equals:
            raise ConfigurationError(
                f"--only {text}: expected FACTOR=VALUE, such as {known[0]}={found[0][known[0]]}"
            )
        if name not in known:
            raise ConfigurationError(
                f"--only {text}: {experiment.name} has no factor {name!r}; {did_you_mean(name, known)}"
            )
        values = {_text(setting[name]) for setting in found}
        written = _text(_number(value))
        if written not in values:
            raise ConfigurationError(
                f"--only {text}: {name} has no value {value!r} here; {did_you_mean(written, values)}"
            )
        wanted.setdefault(name, set()).add(written)
    left = [
        s
        for s in found
        if all(_text(s[name]) in values for name, values in wanted.items())
    ]
    if not left:
        raise ConfigurationError(
            f"--only {' --only '.join(only)}: no setting of {experiment.name} has all of these"
        )
    return left


def _number(text: str) -> Value:
    try:
        return float(text)
    except ValueError:
        return text


def _text(value: Value) -> str:
    return str(plain(value))
