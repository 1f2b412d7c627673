"""``check``: one audit from a notebook or a script, which returns what it found and raises on no finding."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from auditdp.auditing.declaration import Audit
from auditdp.auditing.judging import run_audit
from auditdp.auditing.settings import Settings
from auditdp.betting.watching import Watcher, watched
from auditdp.claims.base import Claim
from auditdp.claims.estimates import Promise
from auditdp.errors import ConfigurationError
from auditdp.mechanism.protocol import name_of
from auditdp.record.budgets import Fault
from auditdp.record.results import RESULT, AuditResult, Counterexample, Evidence, Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REDRAWN = 0.2
"""Seconds between two drawings of a progress bar."""


@dataclass(frozen=True, repr=False)
class Checked:
    """What a check found.

    Attributes:
        result: The whole result, as a record of a run has it.
        interrupted: Whether the game was stopped before it had spent its calls.
    """

    result: AuditResult
    interrupted: bool = False

    @property
    def verdict(self) -> Verdict:
        """The verdict."""
        return self.result.verdict

    @property
    def epsilon_lower(self) -> float | None:
        """Certified lower bound on the claim's parameter."""
        return self.result.epsilon_lower

    @property
    def epsilon_upper(self) -> float | None:
        """Certified upper bound, within the scope that its evidence states."""
        return self.result.epsilon_upper

    @property
    def counterexample(self) -> Counterexample | None:
        """Why the claim, or the calibration of its noise, is false; None where neither is refuted."""
        return self.result.counterexample

    @property
    def evidence(self) -> Sequence[Evidence]:
        """Everything that was gathered."""
        return self.result.evidence

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data that JSON can hold; an infinite number is the string "inf"."""
        found: dict[str, Any] = json.loads(RESULT.dump_json(self.result))
        return {**found, "interrupted": self.interrupted}

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the bounds against the claim, on Matplotlib's current axes unless others are given, and return the axes."""
        from auditdp.report.html.notebook import plot_interval

        return plot_interval(self.result, axes)

    def __repr__(self) -> str:
        from auditdp.report.html.notebook import short

        return short(self.result, interrupted=self.interrupted)

    def _repr_html_(self) -> str:
        from auditdp.report.html.notebook import card

        return card(self.result, interrupted=self.interrupted)


def check(
    mechanism: Any,
    claim: Claim | Promise | Callable[[int], Claim],
    pairs: Any = None,
    *,
    inputs: Mapping[str, Sequence[Any]] | None = None,
    calls: int = 50_000,
    find: str = "",
    alpha: float = 0.05,
    seed: int = 0,
    controls: Sequence[Any] = (),
    evidence: Sequence[str] | None = None,
    forecasters: Sequence[Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Checked:
    """Audit a claim and return what was found; for a notebook.

    An interrupt (Ctrl-C, or the notebook's stop button) ends the game and keeps what it has; the second one is a
    ``KeyboardInterrupt``. A game that ends early has the same guarantee, as one may stop whenever one likes. Checking again
    with another seed is a new experiment that may err with probability alpha again.

    Args:
        mechanism: ``f(data, size, *, rng)`` or ``f(data, rng)``.
        claim: What it promises, such as ``PureDP(1.0)``; a function of the number of records where it depends on that (see
            ``Audit``); or a promise about an estimate.
        pairs: An adjacency such as ``EdgeLDP(nodes=8)``, one ``Pair``, or a list of pairs (data, neighbour).
        inputs: In place of pairs, for a promise about an estimate: lists of inputs by the name of their class.
        calls: Calls of the mechanism to spend.
        find: A fault that is to be found nine times in ten, such as 'level:1.5', 'tail:0.005' or 'output:0.001' (see
            ``auditdp.record.budgets.Fault``): it decides how many calls the game has, instead of ``calls``.
        alpha: Probability that a true claim is refuted, or that the lower bound exceeds the truth.
        seed: Root seed; the same one gives the same result.
        controls: Broken twins, each of which has to be refuted.
        evidence: Kinds of evidence; those that apply unless given.
        forecasters: Forecasters for the game; chosen automatically unless given.
        progress: Called with the calls made and those to make; in a notebook a bar is shown unless it is given.

    Raises:
        AuditError: If the inputs or the mechanism cannot be used.

    >>> from auditdp import PureDP, check
    >>> check(lambda x, rng: x + rng.laplace(scale=0.5), PureDP(1.0), [(0.0, 1.0)], calls=5000).verdict.value
    'VIOLATED'
    """
    if not calls >= 1:
        raise ConfigurationError(f"expected calls >= 1, got calls={calls!r}")
    fault = Fault.read(find) if find else None
    settings = Settings(alpha=alpha, calls=int(calls), root_seed=seed, key=name_of(mechanism), find=fault)
    built = Audit(
        mechanism, claim, pairs, inputs=inputs, controls=list(controls), evidence=evidence, forecasters=forecasters
    )
    return Checked(*carried_out(built, settings, progress))


def carried_out(
    built: Audit, settings: Settings, progress: Callable[[int, int], None] | None = None
) -> tuple[AuditResult, bool]:
    """Return the result of an audit that can be watched and stopped, and whether it was stopped.

    Args:
        built: The audit.
        settings: Its level, budget and randomness.
        progress: As of ``check``.
    """
    with watched(Watcher(progress if progress is not None else _bar())) as watcher:
        return run_audit(built, settings), watcher.stopped


def _bar() -> Callable[[int, int], None] | None:
    """A bar in the notebook in which this runs; None elsewhere."""
    import sys

    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or "IPKernelApp" not in getattr(shell, "config", {}):
        return None
    from IPython.display import HTML, display  # type: ignore[import-not-found,unused-ignore]

    from auditdp.report.html.notebook import bar

    handle, drawn = display(HTML(bar(0, 1)), display_id=True), 0.0

    def show(done: int, of: int) -> None:
        nonlocal drawn
        if done >= of or time.monotonic() - drawn >= REDRAWN:
            drawn = time.monotonic()
            handle.update(HTML("" if done >= of else bar(done, of)))

    return show
