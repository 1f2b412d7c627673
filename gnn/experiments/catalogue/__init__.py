"""The experiments, a module for each group; every module here has a tuple ``EXPERIMENTS``.

A new one is an ``Experiment`` in such a tuple. Its cell is a function of the module: (parameters, seed, device) → metrics by
name, numbers or curves. It draws everything from the seed, reads files under ``gnn.experiments.execute.data_folder()``, and
raises where it fails. What needs torch is imported inside the cell, so that ``list`` and ``report`` work without it.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from auditdp.errors import ConfigurationError, MissingExtraError, did_you_mean
from gnn.experiments.experiment import Experiment


@dataclass(frozen=True)
class Catalogue:
    """The available experiments.

    Attributes:
        experiments: By name.
        unavailable: Modules whose experiments need a package that is not installed, and which one.
    """

    experiments: Mapping[str, Experiment]
    unavailable: Mapping[str, str]

    @classmethod
    def of(
        cls,
        experiments: Iterable[Experiment],
        unavailable: Mapping[str, str] | None = None,
    ) -> Catalogue:
        """Return the catalogue of these experiments.

        Raises:
            ConfigurationError: If two have one name.
        """
        found: dict[str, Experiment] = {}
        for experiment in experiments:
            if experiment.name in found:
                raise ConfigurationError(
                    f"two experiments are called {experiment.name!r}; rename one"
                )
            found[experiment.name] = experiment
        return cls(found, unavailable or {})

    def chosen(self, names: Iterable[str]) -> list[Experiment]:
        """Return the experiments of these names; all of them for "all".

        Raises:
            ConfigurationError: If there is none of a name.
        """
        asked = list(names)
        for name in asked:
            if name != "all" and name not in self.experiments:
                lacking = "".join(
                    f"; {module}: {reason}"
                    for module, reason in self.unavailable.items()
                )
                raise ConfigurationError(
                    f"no experiment {name!r}; {did_you_mean(name, [*self.experiments, 'all'])}{lacking}"
                )
        return (
            list(self.experiments.values())
            if "all" in asked
            else [self.experiments[name] for name in asked]
        )


@cache
def catalogue() -> Catalogue:
    """Return all experiments of this package."""
    found: list[Experiment] = []
    unavailable: dict[str, str] = {}
    for module in pkgutil.iter_modules(__path__):
        try:
            found += import_module(f"{__name__}.{module.name}").EXPERIMENTS
        except ModuleNotFoundError as error:
            missing = MissingExtraError.of(error)
            if missing is None:
                raise
            unavailable[module.name] = str(missing)
    return Catalogue.of(found, unavailable)
