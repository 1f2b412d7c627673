"""``check``: one audit from a notebook or a script, which returns what it found and raises on no finding."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from auditdp.auditing.declaration import Audit
from auditdp.auditing.judging import run_audit
from auditdp.auditing.settings import Settings
from auditdp.betting.watching import Watcher, watched
from auditdp.claims.base import Claim
from auditdp.claims.estimates import Promise
from auditdp.mechanism.protocol import name_of
from auditdp.record.results import AuditResult

CALLS = 50_000
"""Calls of the mechanism, unless another number is given."""
REDRAWN = 0.2
"""Seconds between two drawings of a progress bar."""


def check(
    mechanism: Any,
    claim: Claim | Promise | Callable[[int], Claim],
    pairs: Any = None,
    *,
    inputs: Mapping[str, Sequence[Any]] | None = None,
    calls: int | None = None,
    find: str = "",
    alpha: float = 0.05,
    seed: int = 0,
    controls: Sequence[Any] = (),
    evidence: Sequence[str] | None = None,
    forecasters: Sequence[Any] | None = None,
    trace: bool = True,
    observe: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> AuditResult:
    """Audit a claim and return what was found; for a notebook.

    An interrupt (Ctrl-C, or the notebook's stop button) ends the game and keeps what it has; the second one is a
    ``KeyboardInterrupt``. A game that ends early has the same guarantee, as one may stop whenever one likes. Checking again
    with another seed is a new experiment that may err with probability alpha again.

    Args:
        mechanism: ``f(data, size, *, rng)`` or ``f(data, rng)``.
        claim: What it promises, such as ``PureDP(1.0)``; a function of the number of records where it depends on that (see
            ``Audit``); or a promise about an estimate.
        pairs: An adjacency such as ``NeighbourList(nodes=8)``, one ``Pair``, or a list of pairs (data, neighbour).
        inputs: In place of pairs, for a promise about an estimate: lists of inputs by the name of their class.
        calls: Runs of the mechanism at most, those that trace it or confirm a finding among them; 50,000 unless given.
        find: A fault that is to be found nine times in ten, such as 'level:1.5', 'tail:0.005' or 'output:0.001' (see
            ``auditdp.record.budgets.Fault``): the game then has as many calls as that takes, and at least those given.
        alpha: Probability that a true claim is refuted, or that the lower bound exceeds the truth.
        seed: Root seed; the same one gives the same result.
        controls: Broken twins, each of which has to be refuted.
        evidence: Kinds of evidence; those that apply unless given.
        forecasters: Forecasters for the game; chosen automatically unless given.
        trace: Whether the code is traced first, for pairs to play and what its noise tells; False leaves that out.
        observe: What of 'stdout', 'logging' and 'files' is part of the output, beside what is returned (see ``Audit``).
        progress: Called with the calls made and those to make; in a notebook a bar is shown unless it is given.

    Returns:
        The result, which a notebook shows as a card; ``interrupted`` says whether it was ended early.

    Raises:
        AuditError: If the inputs or the mechanism cannot be used.

    >>> from auditdp import PureDP, check
    >>> check(lambda x, rng: x + rng.laplace(scale=0.5), PureDP(1.0), [(0.0, 1.0)], calls=5000).verdict.value
    'VIOLATED'
    """
    built = Audit(
        mechanism,
        claim,
        pairs,
        inputs=inputs,
        calls=calls,
        find=find,
        controls=list(controls),
        evidence=evidence,
        forecasters=forecasters,
        trace=trace,
        observe=observe,
    )
    return carried_out(built, Settings(alpha, CALLS, seed, name_of(mechanism)), progress)


def carried_out(built: Audit, settings: Settings, progress: Callable[[int, int], None] | None = None) -> AuditResult:
    """Return the result of an audit that can be watched and stopped."""
    with watched(Watcher(progress if progress is not None else _bar())) as watcher:
        result = run_audit(built, settings)
        return replace(result, interrupted=watcher.stopped)


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
