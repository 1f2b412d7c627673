"""How an audit is declared, collected and run, and ``assert_private`` for people's own tests."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import inspect
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from auditdp.adjacency import Pair, as_adjacency
from auditdp.betting.game import Streams
from auditdp.claims import Claim, GaussianDP
from auditdp.errors import AuditError, CollectionError, ConfigurationError, PrivacyViolation, Skip, did_you_mean
from auditdp.evidence.estimation import Promise, Unbiased, VarianceAtMost, estimation_evidence
from auditdp.evidence.exact import exact_evidence, has_exact_law
from auditdp.evidence.game import play_game
from auditdp.mechanism import as_mechanism, name_of
from auditdp.randomness import stream
from auditdp.results import AuditResult, ClaimRecord, ControlResult, Counterexample, Evidence, Verdict

BUDGETS = {"quick": 5_000, "standard": 50_000, "thorough": 1_000_000}
DATA_VARIABLE = "AUDITDP_DATA"


@dataclass(frozen=True)
class Audit:
    """One mechanism with its claim, its neighbours, and the twins that prove the audit has teeth.

    Args:
        mechanism: ``f(data, size, *, rng)`` or ``f(data, rng)``; see ``auditdp.mechanism``.
        claim: A privacy claim (``PureDP``, ``ApproxDP``, ``GaussianDP``), or a promise about an estimate (``Unbiased``,
            ``VarianceAtMost``).
        pairs: For a privacy claim: an adjacency such as ``EdgeLDP(nodes=8)``, or pairs (data, neighbour).
        inputs: For a promise: inputs by class, such as ``{"degree 3": [list, list]}``.
        controls: Mechanisms that break the claim on purpose. Each kind of evidence must refute each of them with the
            budget that the mechanism had; one that survives makes the audit INCONCLUSIVE.
        play: Pairs for the game where they are not those that the adjacency lists.
        evidence: Kinds of evidence to gather, of 'game' and 'exact'; all that apply unless named.
        forecasters: Forecasters for the game; chosen automatically unless named.
        calls: Calls of the game, instead of the budget's.
        exhaustive: Whether exact evidence enumerates all pairs where it can; False looks at the played ones only.
        figure: ``figure(rng) -> dict`` with a scatter plot for the report.

    Raises:
        CollectionError: If the arguments do not fit together.
    """

    mechanism: Any
    claim: Claim | Promise
    pairs: Any = None
    inputs: Mapping[str, Sequence[Any]] | None = None
    controls: Sequence[Any] = ()
    play: Sequence[Pair] | None = None
    evidence: Sequence[str] | None = None
    forecasters: Sequence[Any] | None = None
    calls: int | None = None
    exhaustive: bool = True
    figure: Callable[[np.random.Generator], dict[str, Any]] | None = None

    def __post_init__(self) -> None:
        if self.is_promise and not self.inputs:
            raise CollectionError(f"an audit of {self.claim} needs inputs={{class: [data, ...]}}, got {self.inputs!r}")
        if not self.is_promise and self.pairs is None:
            raise CollectionError(f"an audit of {self.claim} needs pairs=: an adjacency, or pairs (data, neighbour)")
        for kind in self.evidence or ():
            if kind not in ("game", "exact"):
                raise CollectionError(f"unknown evidence {kind!r}; {did_you_mean(kind, ('game', 'exact'))}")
        if self.calls is not None and self.calls < 1:
            raise CollectionError(f"expected calls >= 1, got calls={self.calls!r}")

    @property
    def is_promise(self) -> bool:
        """Whether the claim is about an estimate and not about privacy."""
        return isinstance(self.claim, Unbiased | VarianceAtMost)


@dataclass(frozen=True)
class Declared:
    """An audit factory with what its decorator says; ``build`` makes the audit for given parameters."""

    factory: Callable[..., Audit]
    source: str = ""
    expect: str = "holds"
    timeout: float | None = None
    id: str = ""
    path: str = ""

    @property
    def parameters(self) -> dict[str, Any]:
        """The factory's parameters and their defaults."""
        return {name: p.default for name, p in inspect.signature(self.factory).parameters.items()}

    @property
    def description(self) -> str:
        """The factory's docstring."""
        return inspect.getdoc(self.factory) or ""

    def read(self, overrides: Mapping[str, str]) -> dict[str, Any]:
        """Return the parameters, with those that are overridden read in the type of their default.

        Raises:
            ConfigurationError: If an override cannot be read as that type.
        """
        given = {name: text for name, text in overrides.items() if name in self.parameters}
        return self.parameters | {name: _read(name, text, self.parameters[name]) for name, text in given.items()}

    def build(self, overrides: Mapping[str, str]) -> tuple[Audit, dict[str, Any]]:
        """Return the audit and its parameters, with command-line overrides read in the type of each default.

        Raises:
            ConfigurationError: If an override cannot be read as that type.
            CollectionError: If the factory does not return an Audit.
            Skip: If the factory cannot run here.
        """
        parameters = self.read(overrides)
        built = self.factory(**parameters)
        if not isinstance(built, Audit):
            raise CollectionError(f"{self.id}: returned {type(built).__name__}, expected an Audit")
        return built, parameters


def audit(*, source: str = "", expect: str = "holds", timeout: float | None = None) -> Callable[[Any], Declared]:
    """Declare an audit: a factory whose parameters all have defaults and which returns an ``Audit``.

    Args:
        source: Where the claim is stated: paper, theorem, version.
        expect: 'holds', or 'violation' for a published claim that is known to be false: finding it is then success.
        timeout: Seconds after which it is stopped, unless the command line says otherwise.

    Raises:
        CollectionError: If ``expect`` is unknown or a parameter has no default.
    """
    if expect not in ("holds", "violation"):
        raise CollectionError(f"expected expect='holds' or 'violation', got {expect!r}")

    def declare(factory: Callable[..., Audit]) -> Declared:
        for name, parameter in inspect.signature(factory).parameters.items():
            if parameter.default is inspect.Parameter.empty:
                raise CollectionError(f"audit {factory.__name__}: parameter {name!r} needs a default")
        return Declared(factory, source=source, expect=expect, timeout=timeout)

    return declare


def _read(name: str, text: str, default: Any) -> Any:
    kind = type(default)
    try:
        if kind is bool:
            return {"true": True, "false": False, "1": True, "0": False}[text.lower()]
        if kind in (int, float, str):
            return kind(text)
        value = ast.literal_eval(text)
        if not isinstance(value, kind):
            raise ValueError(text)
        return value
    except (KeyError, ValueError, SyntaxError):
        raise ConfigurationError(
            f"-P {name}={text}: expected a value of type {kind.__name__}, like {default!r}"
        ) from None


def collect(path: Path, root: Path | None = None) -> list[Declared]:
    """Import an audit file and return what it declares, in the order of the file.

    Ids are the path relative to ``root`` (the current directory unless given) and the factory's name, as in
    ``audits/audit_edges.py::dprr``.

    Raises:
        CollectionError: If the file does not import; the message holds the reason.
    """
    root = (root or Path.cwd()).resolve()
    resolved = path.resolve()
    label = resolved.relative_to(root).as_posix() if resolved.is_relative_to(root) else resolved.as_posix()
    spec = importlib.util.spec_from_file_location(f"_auditdp_{resolved.stem}_{abs(hash(str(resolved)))}", resolved)
    if spec is None or spec.loader is None:
        raise CollectionError(f"{label}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with _on_path(str(root), str(resolved.parent)):
        try:
            spec.loader.exec_module(module)
        except AuditError as error:
            raise CollectionError(f"{label}: {error}") from error
        except (Exception, SystemExit) as error:
            line = _line_in(error, str(resolved))
            raise CollectionError(f"{label}{line}: does not import: {type(error).__name__}: {error}") from error
    return [
        replace(value, id=f"{label}::{name}", path=str(resolved))
        for name, value in vars(module).items()
        if isinstance(value, Declared) and value.factory.__module__ == spec.name
    ]


@contextlib.contextmanager
def _on_path(*folders: str) -> Iterator[None]:
    """Let an audit file import what lies beside it and at the root; kept afterwards, for imports inside factories."""
    sys.path[:0] = [folder for folder in folders if folder not in sys.path]
    yield


def _line_in(error: BaseException, filename: str) -> str:
    lines = []
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.lineno:
        lines.append(error.lineno)
    return f", line {lines[-1]}" if lines else ""


def data_file(name: str) -> Path:
    """Return a file of the data folder that ``--data`` or ``AUDITDP_DATA`` names.

    Raises:
        Skip: If no folder is given or it has no such file; the audit is then SKIPPED with this reason.
    """
    folder = os.environ.get(DATA_VARIABLE, "")
    if not folder:
        raise Skip(f"needs {name}; give its folder with --data or {DATA_VARIABLE}")
    path = Path(folder) / name
    if not path.is_file():
        raise Skip(f"needs {name}, which is not in {folder}")
    return path


@dataclass(frozen=True)
class Settings:
    """What a run decides for an audit: its level, its budget, and the root of its randomness."""

    alpha: float
    calls: int
    root_seed: int
    key: str = field(default="audit")

    def streams(self, purpose: str) -> Streams:
        """Return the streams of one purpose, keyed by audit, purpose and batch."""
        return partial(_stream, self.root_seed, self.key, purpose)


def _stream(root: int, key: str, purpose: str, kind: str, batch: int) -> np.random.Generator:
    return stream(root, key, purpose, kind, batch)


def run_audit(built: Audit, settings: Settings) -> AuditResult:
    """Gather all evidence for one audit, run its controls, and draw the verdict.

    Numerical libraries run single-threaded inside, so that no sum depends on the number of threads.

    Raises:
        AuditError: If the audit cannot be carried out; the runner turns this into ERROR.
    """
    with threadpool_limits(limits=1):
        return _run_audit(built, settings)


def _run_audit(built: Audit, settings: Settings) -> AuditResult:
    started, cpu = time.perf_counter(), time.process_time()
    evidence = _gather(built, built.mechanism, settings, "mechanism")
    if built.figure is not None:
        figure = built.figure(settings.streams("figure")("figure", 0))
        evidence[-1] = replace(evidence[-1], details={**evidence[-1].details, **figure})
    controls = [_control(built, twin, settings, k) for k, twin in enumerate(built.controls)]
    verdict, summary = _conclude(evidence, controls)
    bounds = _bounds(evidence)
    found = next((e.counterexample for e in evidence if e.counterexample is not None), None)
    return AuditResult(
        id=settings.key,
        verdict=verdict,
        summary=summary,
        mechanism=name_of(built.mechanism),
        claim=_claim_record(built),
        evidence=evidence,
        epsilon_lower=bounds[0],
        epsilon_upper=bounds[1],
        log_e_value=next((e.log_e_value for e in evidence if e.log_e_value is not None), None),
        alpha=settings.alpha,
        calls=sum(e.calls for e in evidence),
        controls=controls,
        counterexample=found if verdict is Verdict.VIOLATED else None,
        cpu_seconds=time.process_time() - cpu,
        seconds=time.perf_counter() - started,
    )


def _gather(built: Audit, mechanism: Any, settings: Settings, purpose: str, *, control: bool = False) -> list[Evidence]:
    """Run every applicable kind of evidence on one mechanism; the game against a control stops when it is refuted."""
    adapted, streams = as_mechanism(mechanism), settings.streams(purpose)
    calls = built.calls if built.calls is not None else settings.calls
    if isinstance(built.claim, Unbiased | VarianceAtMost):
        assert built.inputs is not None  # checked when the audit was made
        return [
            estimation_evidence(adapted, built.claim, built.inputs, alpha=settings.alpha, calls=calls, streams=streams)
        ]
    adjacency = as_adjacency(built.pairs)
    kinds = built.evidence if built.evidence is not None else ("exact", "game")
    found: list[Evidence] = []
    if "exact" in kinds and has_exact_law(mechanism):
        limited = None if built.exhaustive else (built.play or adjacency.pairs())
        found.append(exact_evidence(mechanism, built.claim, adjacency, pairs=limited))
    if "game" in kinds:
        game = play_game(
            adapted,
            built.claim,
            adjacency,
            alpha=settings.alpha,
            calls=calls,
            streams=streams,
            forecasters=built.forecasters,
            pairs=built.play,
            stop_when_refuted=control,
        )
        found.append(game)
    if not found:
        raise CollectionError(
            f"no evidence can be gathered: {name_of(mechanism)} states no law for evidence={list(kinds)}; add 'game'"
        )
    return found


def _control(built: Audit, twin: Any, settings: Settings, number: int) -> ControlResult:
    """Audit a broken twin as the mechanism was audited; each kind of evidence must refute it, or it has survived."""
    evidence = _gather(built, twin, settings, f"control {number}", control=True)
    blind = [e for e in evidence if e.verdict is not Verdict.VIOLATED]
    return ControlResult(
        name=name_of(twin),
        verdict=blind[0].verdict if blind else Verdict.VIOLATED,
        statement="; ".join(f"{e.kind}: {e.statement}" for e in blind or evidence),
        calls=sum(e.calls for e in evidence),
        epsilon_lower=_bounds(evidence)[0],
    )


def _conclude(evidence: Sequence[Evidence], controls: Sequence[ControlResult]) -> tuple[Verdict, str]:
    """Draw one verdict: a refutation beats everything, a proof beats a clean game, surviving controls beat all."""
    order = (Verdict.VIOLATED, Verdict.INCONCLUSIVE, Verdict.CERTIFIED, Verdict.EQUIVALENT, Verdict.NOT_REFUTED)
    leading = min(evidence, key=lambda e: order.index(e.verdict))
    summary = leading.statement
    by_kind = {e.kind: e.verdict for e in evidence}
    if by_kind.get("game") is Verdict.VIOLATED and by_kind.get("exact") is Verdict.CERTIFIED:
        summary += "; the stated law is certified, so the code does not draw from the law that it states"
    surviving = [control.name for control in controls if control.verdict is not Verdict.VIOLATED]
    if surviving:
        return Verdict.INCONCLUSIVE, (
            f"The audit has no teeth: it did not refute the broken {', '.join(surviving)}; for the mechanism itself: "
            f"{leading.verdict}, {summary}"
        )
    return leading.verdict, summary


def _bounds(evidence: Sequence[Evidence]) -> tuple[float | None, float | None]:
    """Return the bounds that lead.

    Where an upper bound is known the game's lower bound stands against it, so that the two show each other's quality;
    else it is the largest lower bound of any evidence.
    """
    lower = {e.kind: e.epsilon_lower for e in evidence if e.epsilon_lower is not None}
    upper = [e.epsilon_upper for e in evidence if e.epsilon_upper is not None]
    if upper and math.isfinite(upper[0]) and "game" in lower:
        return lower["game"], upper[0]
    return max(lower.values(), default=None), min(upper, default=None)


def _claim_record(built: Audit) -> ClaimRecord:
    claim = built.claim
    if isinstance(claim, Unbiased | VarianceAtMost):
        classes = len(built.inputs or {})
        return ClaimRecord(claim.kind, str(claim), f"{classes} classes of inputs", source=claim.source, parameter="")
    return ClaimRecord(
        kind=type(claim).__name__,
        text=str(claim),
        adjacency=as_adjacency(built.pairs).name,
        source=claim.source,
        parameter=claim.parameter,
        epsilon=None if isinstance(claim, GaussianDP) else claim.level,
        delta=None if isinstance(claim, GaussianDP) else claim.delta,
        mu=claim.mu if isinstance(claim, GaussianDP) else None,
    )


def assert_private(
    mechanism: Any,
    claim: Claim,
    pairs: Any,
    *,
    calls: int = 20_000,
    alpha: float = 1e-6,
    seed: int = 0,
    forecasters: Sequence[Any] | None = None,
) -> AuditResult:
    """Raise if the claim is refuted; for a test in one's own suite.

    Passing means that this budget saw no violation, never that the mechanism is private; the result that is returned
    says how large a violation would have been seen.

    Args:
        mechanism: ``f(data, size, *, rng)`` or ``f(data, rng)``.
        claim: What it promises, such as ``PureDP(1.0)``.
        pairs: An adjacency such as ``EdgeLDP(nodes=8)``, one ``Pair``, or a list of pairs (data, neighbour).
        calls: Calls of the mechanism to spend.
        alpha: Probability that a private mechanism fails the test: its flake rate.
        seed: Root seed; with a fixed one the test is deterministic.
        forecasters: Forecasters for the game; chosen automatically unless given.

    Returns:
        The result of the audit.

    Raises:
        PrivacyViolation: If the claim is refuted; an AssertionError whose message holds the counterexample.
        AuditError: If the inputs or the mechanism cannot be used.

    >>> import numpy as np
    >>> from auditdp import PureDP, assert_private
    >>> noisy = lambda x, size, *, rng: x + rng.laplace(scale=1.0, size=size)
    >>> assert_private(noisy, PureDP(1.0), [(0.0, 1.0)], calls=2000).verdict.value
    'NOT_REFUTED'
    """
    if not 0 < alpha < 1:
        raise ConfigurationError(f"expected alpha strictly between 0 and 1, got alpha={alpha!r}")
    if not calls >= 1:
        raise ConfigurationError(f"expected calls >= 1, got calls={calls!r}")
    built = Audit(mechanism, claim, pairs, forecasters=forecasters)
    result = run_audit(built, Settings(alpha=alpha, calls=int(calls), root_seed=seed, key=name_of(mechanism)))
    if result.verdict is Verdict.VIOLATED:
        assert result.counterexample is not None  # a violation always has one
        raise PrivacyViolation(_spell_out(result, result.counterexample, seed))
    return result


def _spell_out(result: AuditResult, counterexample: Counterexample, seed: int) -> str:
    assert result.claim is not None  # run_audit always states the claim
    lines = [
        f"{result.mechanism} is not {result.claim.text} ({result.claim.adjacency})",
        f"  {result.summary}",
        f"  pair: {counterexample.pair}",
        *([f"  output: {counterexample.output}"] if counterexample.output else []),
        f"  why: {counterexample.explanation}",
        f"  reproduce: seed={seed}, calls={result.calls:,}, alpha={result.alpha:g}",
    ]
    return "\n".join(lines)
