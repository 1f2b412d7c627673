"""The errors of the harness. Each message has the value, the valid form and the remedy.

``die_with_parent`` ends a process with its parent. It is here because this file imports
nothing, and a run calls it before anything else.
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
"""Folders with code that does not belong to the user: the harness, Python and libraries.
"""


class AuditError(Exception):
    """Anything that the harness refuses, with a message a person can act on."""


class ClaimError(AuditError, ValueError):
    """A claim that states no privacy guarantee, such as a negative epsilon."""


class AdjacencyError(AuditError, ValueError):
    """Two inputs that are not neighbours; playing them would raise a false alarm."""


class MechanismError(AuditError):
    """A mechanism that raised, or whose result is not ``size`` independent outputs."""


class RaisedError(MechanismError):
    """A mechanism that raised an exception of its own."""


class CollectionError(AuditError):
    """An audit file that cannot be imported, or an audit that cannot be built."""


class ConfigurationError(AuditError):
    """A setting, path or option that cannot be used."""


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
"""The extra that installs each optional package."""


class MissingExtraError(AuditError, ImportError):
    """Something that needs an optional package which is not installed."""

    @classmethod
    def of(cls, error: BaseException) -> MissingExtraError | None:
        """Return the error that names the extra of a package whose import failed.

        Returns:
            The error, or None if ``error`` is another one or the package has no extra.
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
    """Raised by an audit factory that cannot run here; the reason is reported."""


class _AssertedError(AssertionError):
    def __init__(self, message: str = "", result: Any = None) -> None:
        super().__init__(message)
        self.result = result


class PrivacyViolation(_AssertedError):  # noqa: N818 - reads as the sentence that a failing test prints
    """Raised by ``assert_private``: the claim was refuted.

    The message has the counterexample.

    Attributes:
        result: The ``AuditResult``; None if there is none.
    """


class ControlSurvived(_AssertedError):  # noqa: N818 - as PrivacyViolation
    """Raised by ``assert_private``: a control was not refuted.

    So the audit would not find an equal fault of the mechanism.

    Attributes:
        result: The ``AuditResult``.
    """


class NotConfirmed(_AssertedError):  # noqa: N818 - as PrivacyViolation
    """Raised by ``assert_private``: evidence refuted the claim without a confirmation.

    So nothing is decided.

    Attributes:
        result: The ``AuditResult``.
    """


class MiscalibrationWarning(UserWarning):
    """Warning of ``assert_private``: the noise is calibrated to too small a sensitivity.

    The claim is not refuted, and noise with slack may satisfy it. The message has the
    pair and the remedy.
    """


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the most similar known name, or with all known names."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    shown = [name if name.isprintable() else repr(name) for name in known]
    return f"known: {', '.join(shown) if shown else 'none'}"


def raised_at(error: BaseException) -> str:
    """Return the innermost line of the user's code that an exception passed.

    Returns:
        A text such as ``counts.py, line 7``, or "" if the exception passed no such
        line.
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
    """Return the innermost line of a file that an exception passed, as text.

    Returns:
        A text such as ``audit_it.py, line 7``; the line that raised if the exception
        did not pass the file.
    """
    frames = traceback.extract_tb(error.__traceback__)
    where = next(
        (f for f in reversed(frames) if f.filename == path),
        frames[-1] if frames else None,
    )
    return f"{Path(where.filename).name}, line {where.lineno}" if where else ""


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent ends, if the system can do so.

    A parent that is killed cannot end its children.
    """
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
