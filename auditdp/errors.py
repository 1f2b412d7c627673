"""The errors of the harness. Each message has the value, the valid form and the remedy.

``die_with_parent`` is here because this file imports nothing else of the harness, so
each process of a run can call it at once.
"""

from __future__ import annotations

import difflib
import os
import signal
import sys
import sysconfig
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ELSEWHERE = tuple(
    folder + os.sep
    for folder in {
        str(Path(__file__).parent),
        *map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")),
    }
)
"""Folders with code that is not the user's: the harness, Python and libraries."""


class AuditError(Exception):
    """Base of the errors of the harness, with a message that a person can act on."""


class ClaimError(AuditError, ValueError):
    """A claim that states no privacy guarantee, such as a negative epsilon."""


class AdjacencyError(AuditError, ValueError):
    """Two inputs that are not neighbours, so that a game on them proves nothing.

    Also an adjacency, or pairs, that cannot be used.
    """


class MechanismError(AuditError):
    """A mechanism, trainer or stated law that cannot be used.

    For example, a mechanism raised, or did not return ``size`` independent outputs.
    """


class RaisedError(MechanismError):
    """A mechanism whose code raised an exception."""


class CollectionError(AuditError):
    """An audit file that cannot be imported, or an audit that cannot be built."""


class ConfigurationError(AuditError):
    """A setting, file, path or option that cannot be used."""


class StoppedError(AuditError):
    """A correct command that could not continue, such as on a full disk."""


class ExhaustedError(AuditError):
    """A phase of an audit without runs or time left; its results so far count."""


EXTRAS = {
    "torch": "torch",
    "torch_geometric": "torch",
    "opacus": "torch",
    "dask": "dask",
    "distributed": "dask",
    "dp_accounting": "accountants",
    "pyarrow": "parquet",
    "cryptography": "attest",
    "securesystemslib": "attest",
}
"""The extra of auditdp that installs an optional package, by the package's name."""


class MissingExtraError(AuditError, ImportError):
    """An optional package that is needed and not installed."""

    @classmethod
    def of(cls, error: BaseException) -> MissingExtraError | None:
        """Return the error that names the extra of a package whose import failed.

        Returns:
            The error, or None if ``error`` is not the failed import of a package in
            ``EXTRAS``.
        """
        package = (getattr(error, "name", None) or "").partition(".")[0]
        if not isinstance(error, ModuleNotFoundError) or package not in EXTRAS:
            return None
        return cls(
            f"needs {package}, which is not installed; install it with: pip install 'auditdp[{EXTRAS[package]}]'"
        )


class Timeout(BaseException):
    """An audit that exceeded its time limit.

    This is not an ``Exception``, so that a mechanism that catches every exception
    cannot continue.
    """


class Skip(Exception):  # noqa: N818 - control flow, as in unittest.SkipTest
    """Raised by an audit factory if it cannot run here; the reason is reported."""


class _AssertedError(AssertionError):
    def __init__(self, message: str = "", result: Any = None) -> None:
        super().__init__(message)
        self.result = result


class PrivacyViolation(_AssertedError):  # noqa: N818 - reads as the sentence that a failing test prints
    """Raised by ``assert_private``: the claim was refuted.

    The message has the counterexample.

    Attributes:
        result: The ``AuditResult``.
    """


class ControlSurvived(_AssertedError):  # noqa: N818 - as PrivacyViolation
    """Raised by ``assert_private``: the audit did not refute a control.

    So it would not find the same fault in the mechanism.

    Attributes:
        result: The ``AuditResult``.
    """


class NotConfirmed(_AssertedError):  # noqa: N818 - as PrivacyViolation
    """Raised by ``assert_private``: a refutation of the claim was not confirmed.

    So the claim is neither refuted nor cleared.

    Attributes:
        result: The ``AuditResult``.
    """


class MiscalibrationWarning(UserWarning):
    """Warning of ``assert_private``: noise is calibrated to too small a sensitivity.

    The claim is not refuted: the noise may be large enough for another reason. The
    message has the pair and the remedy.
    """


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a phrase such as ``did you mean 'seed'?``, with the most similar name.

    If no name in ``known`` is similar, the phrase lists all of them, sorted.
    """
    known = sorted(known)
    close = difflib.get_close_matches(str(name), known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    shown = [name if name.isprintable() else repr(name) for name in known]
    return f"known: {', '.join(shown) if shown else 'none'}"


def raised_at(error: BaseException) -> str:
    """Return the innermost line of the user's code in the traceback of an exception.

    Returns:
        A text such as ``counts.py, line 7``, or "" if the traceback has only code of
        the harness, of Python and of libraries.
    """
    frames = reversed(traceback.extract_tb(error.__traceback__))
    own = next(
        (
            f
            for f in frames
            if Path(f.filename).is_file() and not f.filename.startswith(ELSEWHERE)
        ),
        None,
    )
    return f"{Path(own.filename).name}, line {own.lineno}" if own is not None else ""


def raised_in(error: BaseException, path: str) -> str:
    """Return the innermost line of one file in the traceback of an exception.

    Args:
        error: The exception.
        path: The file, as the traceback names it.

    Returns:
        A text such as ``audit_it.py, line 7``. If the traceback has no line of the
        file, it is the line that raised; "" without a traceback.
    """
    frames = traceback.extract_tb(error.__traceback__)
    where = next(
        (f for f in reversed(frames) if f.filename == path),
        frames[-1] if frames else None,
    )
    return f"{Path(where.filename).name}, line {where.lineno}" if where else ""


def die_with_parent() -> None:
    """Make the kernel kill this process when its parent ends.

    A parent that is killed cannot end its children itself. This has an effect only on
    Linux.
    """
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
