"""Audit one mechanism: ``check`` in a notebook, ``assert_private`` in a test."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from auditdp.auditing.declaration import Audit
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.betting.game import Watcher, watched
from auditdp.claims.claim import Claim
from auditdp.claims.estimates import Promise
from auditdp.errors import (
    ControlSurvived,
    MiscalibrationWarning,
    NotConfirmed,
    PrivacyViolation,
)
from auditdp.mechanism.protocol import OWN_RANDOMNESS, is_seeded, name_of
from auditdp.record.budget import Budget
from auditdp.record.results import AuditResult, Counterexample, Verdict
from auditdp.record.verdict import MISCALIBRATION, REMEDY

CALLS = 50_000
"""Default limit of the runs of the mechanism in ``check``."""
REDRAWN = 0.2
"""Smallest number of seconds between two updates of a progress bar."""


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
    """Audit a claim and return the result; for a notebook or a script.

    An interrupt (Ctrl-C, or the stop button of the notebook) ends the game and keeps
    its result; a second one raises ``KeyboardInterrupt``. A game that ends early has
    the same guarantee, since bets may stop at any time. A check with another seed is a
    new experiment, which may err with probability alpha again.

    Args:
        mechanism: ``f(data, size, *, rng)`` or ``f(data, rng)``.
        claim: The claim, such as ``PureDP(1.0)``; a function of the number of records,
            if the claim depends on it (see ``Audit``); or a promise about an estimate.
        pairs: An adjacency such as ``NeighbourList(nodes=8)``, one ``Pair``, or a list
            of pairs (data, neighbour).
        inputs: For a promise about an estimate, instead of pairs: lists of inputs by
            the name of their class.
        calls: Limit of the runs of the mechanism, including those of the trace and of
            the confirmation; 50,000 by default.
        find: A fault to find nine times in ten, such as 'level:1.5' (the worst pair of
            laws at 1.5 times the claimed level), 'tail:0.005' (outputs of this
            probability that lose twice the claim) or 'output:0.001' (an output of this
            probability that only one input gives). The game then has the number of
            calls that this takes, and at least ``calls`` if that is given.
        alpha: Largest probability that a true claim is refuted, or that the lower bound
            exceeds the true privacy loss.
        seed: Root seed. Equal seeds give equal results, if the mechanism draws only
            from the given ``rng``.
        controls: Broken twins; the audit has to refute each of them.
        evidence: Names of kinds of evidence (``auditdp.record.details.KINDS``); by
            default all that apply except 'support' and 'one_run' (see ``Audit``).
        forecasters: Forecasters for the game; chosen automatically by default.
        trace: Whether to trace the code first. A trace proposes pairs and fits laws to
            the noise.
        observe: Side outputs that belong to the output: 'stdout', 'logging', 'files'
            (see ``Audit``).
        progress: Called with the number of calls so far and in total; a notebook draws
            a bar by default.

    Returns:
        The result, which a notebook shows as a card. Its ``interrupted`` is True if the
        check was ended early.

    Raises:
        AuditError: If the mechanism, the inputs or another argument cannot be used.

    >>> from auditdp import PureDP, check
    >>> noisy = lambda x, rng: x + rng.laplace(scale=0.5)
    >>> check(noisy, PureDP(1.0), [(0.0, 1.0)], calls=5000).verdict.value
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
    return carried_out(
        built, Settings(alpha, Budget(CALLS), seed, name_of(mechanism)), progress
    )


def carried_out(
    built: Audit, settings: Settings, progress: Callable[[int, int], None] | None = None
) -> AuditResult:
    """Run an audit that a person may interrupt, and return its result.

    Args:
        built: The audit.
        settings: The settings of the run.
        progress: Called with the number of calls so far and in total; by default a
            notebook draws a bar.
    """
    with watched(Watcher(progress if progress is not None else _bar())) as watcher:
        result = run_audit(built, settings)
        return replace(result, interrupted=watcher.stopped)


def _bar() -> Callable[[int, int], None] | None:
    """Return a function that draws a progress bar in a notebook, or None elsewhere."""
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


ASSERTION_CALLS = 20_000
"""Default limit of the runs of the mechanism in ``assert_private``."""
ALPHA = 1e-6
"""Default bound on the probability that ``assert_private`` refutes a true claim."""


def assert_private(
    mechanism: Any,
    claim: Claim | Promise | Callable[[int], Claim],
    pairs: Any = None,
    *,
    inputs: Mapping[str, Sequence[Any]] | None = None,
    calls: int | None = None,
    find: str = "",
    alpha: float = ALPHA,
    seed: int = 0,
    controls: Sequence[Any] = (),
    evidence: Sequence[str] | None = None,
    forecasters: Sequence[Any] | None = None,
    trace: bool = True,
    observe: Sequence[str] = (),
) -> AuditResult:
    """Audit a claim in a test suite; raise if it is refuted, or if a control is not.

    A passed test means that this budget found no violation, never that the mechanism is
    private. The result states how large a violation the test would have found.

    A declared sensitivity (``query`` and ``sensitivity``, see
    ``auditdp.mechanism.protocol``) that is too small refutes the argument for the
    claim, but not the claim: the noise may be larger than needed. Then there is a
    warning, and the verdict of the result is MISCALIBRATED.

    Args:
        mechanism: ``f(data, size, *, rng)`` or ``f(data, rng)``.
        claim: The claim, such as ``PureDP(1.0)``; a function of the number of records,
            if the claim depends on it (see ``Audit``); or a promise about an estimate.
        pairs: An adjacency such as ``NeighbourList(nodes=8)``, one ``Pair``, or a list
            of pairs (data, neighbour).
        inputs: For a promise about an estimate, instead of pairs: lists of inputs by
            the name of their class.
        calls: Limit of the runs of the mechanism, including those of the trace and of
            the confirmation; 20,000 by default.
        find: A fault to find nine times in ten, such as 'level:1.5' (the worst pair of
            laws at 1.5 times the claimed level), 'tail:0.005' (outputs of this
            probability that lose twice the claim) or 'output:0.001' (an output of this
            probability that only one input gives). The game then has the number of
            calls that this takes, and at least ``calls`` if that is given.
        alpha: Largest probability that the test refutes a true claim, with or without a
            confirmation: its flake rate.
        seed: Root seed. With a fixed seed the test is deterministic, if the mechanism
            draws only from the given ``rng``.
        controls: Broken twins; the audit has to refute each of them.
        evidence: Names of kinds of evidence (``auditdp.record.details.KINDS``); by
            default all that apply except 'support' and 'one_run' (see ``Audit``).
        forecasters: Forecasters for the game; chosen automatically by default.
        trace: Whether to trace the code first. A trace proposes pairs and fits laws to
            the noise.
        observe: Side outputs that belong to the output: 'stdout', 'logging', 'files'
            (see ``Audit``).

    Returns:
        The result of the audit.

    Raises:
        PrivacyViolation: If the claim is refuted. This is an AssertionError; its
            message has the counterexample, and its ``result`` is the result of the
            audit.
        NotConfirmed: If the claim is refuted without a confirmation; it has a
            ``result`` as well.
        ControlSurvived: If a control is not refuted; it has a ``result`` as well.
        AuditError: If the mechanism, the inputs or another argument cannot be used.

    Warns:
        MiscalibrationWarning: If the noise is calibrated to less than two neighbours
            need, and the claim is not refuted.

    >>> import numpy as np
    >>> from auditdp import PureDP, assert_private
    >>> noisy = lambda x, size, *, rng: x + rng.laplace(scale=1.0, size=size)
    >>> assert_private(noisy, PureDP(1.0), [(0.0, 1.0)], calls=2000).verdict.value
    'NOT_REFUTED'
    """
    # A failing test shows the line of the assertion, and none of this function.
    __tracebackhide__ = True
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
    return asserted(
        built, Settings(alpha, Budget(ASSERTION_CALLS), seed, name_of(mechanism))
    )


def asserted(built: Audit, settings: Settings) -> AuditResult:
    """Run an audit, and return or raise as ``assert_private`` does.

    A warning names the line that called ``assert_private``.
    """
    __tracebackhide__ = True
    result = run_audit(built, settings)
    if result.verdict is Verdict.VIOLATED:
        # A violation always has one.
        assert result.counterexample is not None
        raise PrivacyViolation(
            _spell_out(built, result, result.counterexample, settings), result
        )
    if result.surviving_controls:
        raise ControlSurvived(_survived(built, result, settings), result)
    if result.is_unconfirmed:
        raise NotConfirmed(_dropped(built, result, settings), result)
    if result.verdict is Verdict.MISCALIBRATED:
        # A refuted calibration always has one as well.
        assert result.counterexample is not None
        warnings.warn(
            _warning(result, result.counterexample), MiscalibrationWarning, stacklevel=3
        )
    return result


def _again(built: Audit, settings: Settings) -> str:
    """Return the line of a message with the call that reproduces the result."""
    unseeded = "" if is_seeded(built.mechanism) else f" ({OWN_RANDOMNESS})"
    calls = settings.budget.calls if built.calls is None else built.calls
    given = f"seed={settings.root_seed}, calls={calls}, alpha={settings.alpha:g}"
    given += f", find={built.find!r}" if built.find else ""
    return f"  reproduce: assert_private(…, {given}){unseeded}"


def _dropped(built: Audit, result: AuditResult, settings: Settings) -> str:
    from auditdp.report.sentences import unconfirmed

    return "\n".join([*unconfirmed(result), _again(built, settings)])


def _survived(built: Audit, result: AuditResult, settings: Settings) -> str:
    blind = [control for control in result.controls if control.survived]
    lines = [
        f"the audit of {result.mechanism} does not refute {' and '.join(control.name for control in blind)}, which should "
        "break the claim: a fault of this size in the mechanism would be missed",
        *[f"  {control.name}: {control.statement}" for control in blind],
        "  remedy: give calls= or find= that detect it, or a control that breaks the claim by more",
        _again(built, settings),
    ]
    return "\n".join(lines)


def _spell_out(
    built: Audit,
    result: AuditResult,
    counterexample: Counterexample,
    settings: Settings,
) -> str:
    from auditdp.report.guesses import guessing

    # run_audit always states the claim.
    assert result.claim is not None
    lines = [
        f"{result.mechanism} is not {result.claim.text}",
        *[f"  {sentence}" for sentence in [guessing(result)] if sentence],
        f"  neighbours: {result.claim.adjacency}",
        f"  pair: {counterexample.pair}",
        *([f"  output: {counterexample.output}"] if counterexample.output else []),
        f"  why: {counterexample.explanation}",
        f"  found: {result.summary}",
        *[f"  notice: {text}" for text in result.notices],
        _again(built, settings),
    ]
    return "\n".join(lines)


def _warning(result: AuditResult, counterexample: Counterexample) -> str:
    return "\n".join(
        [
            f"the noise of {result.mechanism} is calibrated to less than two neighbours need",
            f"  pair: {counterexample.pair}",
            f"  why: {counterexample.explanation}",
            f"  {MISCALIBRATION} {REMEDY}",
        ]
    )
