"""The ``@audit`` decorator, the check of its options, and the import of audit files."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, overload

from auditdp.auditing.declaration import Audit
from auditdp.configuration import DATA_VARIABLE, given_imports
from auditdp.errors import (
    AuditError,
    CollectionError,
    ConfigurationError,
    MissingExtraError,
    Skip,
    did_you_mean,
)
from auditdp.record.budget import LONGEST


@dataclass(frozen=True)
class Declared:
    """An audit factory with the options of its decorator; ``build`` makes the audit.

    The docstring of ``audit`` describes the options. ``collect`` sets ``id`` and
    ``path``, the path of the audit's file.
    """

    factory: Callable[..., Audit]
    source: str = ""
    expect: str = "holds"
    timeout: float | None = None
    row: str = ""
    reading: str = ""
    repairs: str = ""
    smallest: Mapping[str, Sequence[int]] = field(default_factory=dict)
    wrong: str = ""
    """The fault of the declaration, with its line; empty if there is none.

    An audit with a faulty declaration is collected, and ``build`` raises, so that the
    other audits of its file run.
    """
    id: str = ""
    path: str = ""

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the factory and their defaults."""
        return {
            name: p.default
            for name, p in inspect.signature(self.factory).parameters.items()
        }

    @property
    def description(self) -> str:
        """The docstring of the factory."""
        return inspect.getdoc(self.factory) or ""

    def read(self, overrides: Mapping[str, str]) -> dict[str, Any]:
        """Return the value of each parameter of the factory, by its name.

        The value is the override of the parameter, or else its default. The text of an
        override is converted to the type of the default. An override without such a
        parameter is ignored. If the declaration is faulty, the result is empty.

        Raises:
            ConfigurationError: If an override cannot be read as that type.
        """
        if self.wrong:
            return {}
        given = {
            name: text for name, text in overrides.items() if name in self.parameters
        }
        return self.parameters | {
            name: _read(name, text, self.parameters[name])
            for name, text in given.items()
        }

    def sizes(self, overrides: Mapping[str, str]) -> list[dict[str, str]]:
        """Return the overrides for each size to try, in ascending order.

        Returns:
            One dictionary for each size. If the audit tries no sizes, or the overrides
            contain the parameter with the sizes, the given overrides alone.
        """
        tried = [
            {name: str(size)}
            for name, sizes in self.smallest.items()
            if name not in overrides
            for size in sizes
        ]
        return [dict(overrides) | size for size in tried] or [dict(overrides)]

    def build(self, overrides: Mapping[str, str]) -> tuple[Audit, dict[str, Any]]:
        """Return the audit and the values of its parameters, by their names.

        ``overrides`` are texts that replace defaults, as in ``read``.

        Raises:
            ConfigurationError: If an override cannot be read as that type.
            CollectionError: If the declaration is faulty, or the factory does not
                return an Audit or raises an error of the harness; the message has the
                line.
            Skip: If the factory cannot run here.
            Exception: Any other exception of the factory, unchanged.
        """
        if self.wrong:
            raise CollectionError(self.wrong)
        parameters = self.read(overrides)
        try:
            built = self.factory(**parameters)
        except AuditError as error:
            line = line_in(error, self.path)
            raise CollectionError(
                f"line {line}: {error}" if line else str(error)
            ) from error
        if not isinstance(built, Audit):
            raise CollectionError(
                f"{_place(self.factory)}returned {type(built).__name__}, expected an Audit"
            )
        return built, parameters


@overload
def audit(factory: Callable[..., Audit], /) -> Declared: ...


@overload
def audit(
    *,
    source: str = ...,
    expect: str = ...,
    timeout: float | None = ...,
    row: str = ...,
    reading: str = ...,
    repairs: str = ...,
    smallest: Mapping[str, Sequence[int]] | None = ...,
) -> Callable[[Callable[..., Any]], Declared]: ...


def audit(*factory: Any, **options: Any) -> Any:
    """Declare an audit: a factory that returns an ``Audit``.

    All parameters of the factory need defaults. ``@audit`` is short for ``@audit()``. A
    fault of the declaration affects this audit alone: it is collected, and its verdict
    is ERROR with the line. Such faults are for example unknown options, parameters
    without a default, and sizes that do not ascend.

    Args:
        factory: The factory, if the decorator is written without parentheses.
        options: Any of:

            source: The source of the claim: paper, theorem, version.
            expect: 'holds'; 'violation' for a published claim that is known to be
                false; or 'miscalibration' for a published sensitivity that is known to
                be too small, whether or not the claim holds. A finding of the declared
                kind is then a success.
            timeout: Time limit in seconds; the command line may set another one.
            row: Name of the published mechanism in the ledger of claims; without a
                name the audit is not listed.
            reading: For the ledger: the reading of the claim that is audited, such as
                'as stated' or 'as deployed'.
            repairs: Name of the audit, in the same file, whose violated claim this
                audit repairs.
            smallest: One parameter and its sizes, such as ``{"nodes": range(2, 7)}``,
                in ascending order. The audit ends with the first size that refutes the
                claim, or that refutes the calibration unless a violation is declared.
                Each size has an equal share of α.

    Returns:
        The declaration, a ``Declared``; with options, a decorator that returns it.

    Raises:
        CollectionError: If the decorated object is not callable.
    """
    if len(factory) == 1 and callable(factory[0]) and not options:
        return _declared(factory[0], (), {})
    return lambda decorated: _declared(decorated, factory, options)


TEXTS = ("source", "expect", "row", "reading", "repairs")
OPTIONS = (*TEXTS, "timeout", "smallest")


def _declared(
    factory: Any, positional: Sequence[Any], options: Mapping[str, Any]
) -> Declared:
    if not callable(factory):
        raise CollectionError(
            f"@audit: expected a function that returns an Audit, got {factory!r}"
        )
    if wrong := _wrong(factory, positional, options):
        return Declared(factory, wrong=f"{_place(factory)}{wrong}")
    sizes = {
        name: list(tried) for name, tried in (options.get("smallest") or {}).items()
    }
    return Declared(factory, **{**options, "smallest": sizes})


def _undeclarable(expect: Any) -> str:
    from auditdp.record.results import DECLARABLE

    wanted = (
        f"expected expect='holds', {' or '.join(map(repr, DECLARABLE))}, got {expect!r}"
    )
    return "" if expect in DECLARABLE else wanted


def _wrong(
    factory: Callable[..., Audit], positional: Sequence[Any], options: Mapping[str, Any]
) -> str:
    """Return the first fault of a declaration, or an empty text."""
    if positional:
        return f"@audit takes its options by name, such as @audit(source=...), got {', '.join(map(repr, positional))}"
    for name, value in options.items():
        if name not in OPTIONS:
            return (
                f"@audit has no option {name}={value!r}; {did_you_mean(name, OPTIONS)}"
            )
        if name in TEXTS and not isinstance(value, str):
            return f"@audit: expected a text, got {name}={value!r}"
    expect, timeout, smallest = (
        options.get("expect", "holds"),
        options.get("timeout"),
        options.get("smallest") or {},
    )
    if expect != "holds" and (problem := _undeclarable(expect)):
        return problem
    if timeout is not None and not (
        isinstance(timeout, int | float) and 0 < timeout <= LONGEST
    ):
        return f"expected timeout, a number of seconds > 0 and <= {LONGEST:g}, got {timeout!r}"
    parameters = inspect.signature(factory).parameters
    for name, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty:
            return f"parameter {name!r} needs a default"
    if (
        not isinstance(smallest, Mapping)
        or len(smallest) > 1
        or not all(map(_ascending, smallest.values()))
    ):
        return f"expected smallest={{parameter: ascending sizes}}, got {smallest!r}"
    if unknown := smallest.keys() - parameters.keys():
        return f"expected smallest={{parameter: ascending sizes}}, and there is no parameter {', '.join(map(repr, unknown))}"
    return ""


def _ascending(sizes: Any) -> bool:
    if not isinstance(sizes, Sequence) or not all(
        isinstance(size, int | float) for size in sizes
    ):
        return False
    return len(sizes) > 0 and all(a < b for a, b in pairwise(sizes))


def _place(factory: Any) -> str:
    """Return "line N: " for the first line of a factory or its decorator, or ""."""
    code = getattr(factory, "__code__", None)
    return f"line {code.co_firstlineno}: " if code is not None else ""


def line_in(error: BaseException, filename: str) -> int | None:
    """Return the innermost line of a file in an error's traceback, or None.

    For a syntax error in the file, it is the line of the error.
    """
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == filename
    ]
    if (
        isinstance(error, SyntaxError)
        and error.lineno
        and error.filename in (None, filename)
    ):
        lines.append(error.lineno)
    return lines[-1] if lines else None


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


def data_file(name: str) -> Path:
    """Return the path of a file in the folder of ``--data`` or ``AUDITDP_DATA``.

    Raises:
        Skip: If there is no folder or no such file; the audit is then SKIPPED.
    """
    folder = os.environ.get(DATA_VARIABLE, "")
    if not folder:
        raise Skip(f"needs {name}; give its folder with --data or {DATA_VARIABLE}")
    path = Path(folder) / name
    if not path.is_file():
        raise Skip(f"needs {name}, which is not in {folder}")
    return path


def collect(path: Path, root: Path | None = None) -> list[Declared]:
    """Import an audit file and return its declarations, in the order of the file.

    The id of an audit is the path relative to ``root`` (by default the current folder)
    and the name of the factory, as in ``audits/audit_edges.py::dprr``. The path of a
    file outside ``root`` is absolute. The folders of the file and of ``root`` are
    appended to ``sys.path``.

    Raises:
        CollectionError: If the file cannot be imported; the message has the reason and,
            if known, the line.
    """
    root = (root or Path.cwd()).resolve()
    resolved = path.resolve()
    label = (
        resolved.relative_to(root).as_posix()
        if resolved.is_relative_to(root)
        else resolved.as_posix()
    )
    spec = importlib.util.spec_from_file_location(
        f"_auditdp_{resolved.stem}_{abs(hash(str(resolved)))}", resolved
    )
    if spec is None or spec.loader is None:
        raise CollectionError(f"{label}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    # Modules beside the file and at the root can be imported, also later by factories.
    # Their folders come last: a file must not replace a library with the same name.
    folders = (str(resolved.parent), str(root), *given_imports())
    sys.path += [folder for folder in folders if folder not in sys.path]
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        # This includes SystemExit, and exceptions by which test frameworks skip.
        line = line_in(error, str(resolved))
        place = label if line is None else f"{label}, line {line}"
        if isinstance(error, AuditError):
            raise CollectionError(f"{place}: {error}") from error
        if (missing := MissingExtraError.of(error)) is not None:
            raise CollectionError(f"{label}: {missing}") from error
        raise CollectionError(
            f"{place}: does not import: {type(error).__name__}: {error}"
        ) from error
    lines = _lines_of_functions(resolved)
    found = []
    for name, value in vars(module).items():
        if isinstance(value, Declared) and value.factory.__module__ == spec.name:
            wrong = value.wrong
            if len(lines.get(name, ())) > 1:
                first, last = lines[name][0], lines[name][-1]
                wrong = f"line {last}: the file has another function of this name in line {first}, which is lost; rename one"
            found.append(
                replace(value, id=f"{label}::{name}", path=str(resolved), wrong=wrong)
            )
    return found


def _lines_of_functions(path: Path) -> dict[str, list[int]]:
    """Return the lines in which a file defines each of its decorated functions."""
    lines: dict[str, list[int]] = {}
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            lines.setdefault(node.name, []).append(node.lineno)
    return lines
