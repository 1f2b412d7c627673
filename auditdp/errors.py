"""The errors of the harness: each message shows the value, what was expected, and what to do; and names that are old.

Processes that end with the one that started them; imports nothing, since a run does so before anything else.
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
"""Where code lies that is not that of whoever reads an audit's errors: the harness, Python, and libraries."""


class AuditError(Exception):
    """Anything that the harness refuses, with a message a person can act on."""


class ClaimError(AuditError, ValueError):
    """A claim that states no privacy guarantee, such as a negative epsilon."""


class AdjacencyError(AuditError, ValueError):
    """Two inputs that are not neighbours; playing them would raise a false alarm."""


class MechanismError(AuditError):
    """A mechanism that raised, or returned something that is not ``size`` independent outputs."""


class RaisedError(MechanismError):
    """A mechanism that raised an exception of its own."""


class CollectionError(AuditError):
    """An audit file that cannot be imported, or an audit that cannot be built."""


class ConfigurationError(AuditError):
    """A setting, path or option that cannot be used."""


class StoppedError(AuditError):
    """Why a command could not go on although it was asked rightly: a full disk, closed output, a process that died."""


class ExhaustedError(AuditError):
    """A phase of an audit that has no runs or no time left; what was played until then stands."""


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
        """Return the error that names the extra, if ``error`` is a failed import of a package that belongs to one."""
        package = (getattr(error, "name", None) or "").partition(".")[0]
        if not isinstance(error, ModuleNotFoundError) or package not in EXTRAS:
            return None
        return cls(
            f"needs {package}, which is not installed; install it with: pip install 'auditdp[{EXTRAS[package]}]'"
        )


class Timeout(BaseException):
    """An audit that was stopped because it ran longer than its time limit.

    Not an ``Exception``, so that a mechanism that catches everything cannot swallow it and run on.
    """


class Skip(Exception):  # noqa: N818 - control flow, as in unittest.SkipTest
    """Raised by an audit factory that cannot run here; the reason is reported."""


class _AssertedError(AssertionError):
    def __init__(self, message: str = "", result: Any = None) -> None:
        super().__init__(message)
        self.result = result


class PrivacyViolation(_AssertedError):  # noqa: N818 - reads as the sentence that a failing test prints
    """Raised by ``assert_private``: the claim was refuted; the message holds the counterexample.

    Attributes:
        result: The ``AuditResult``, None where nobody gave it.
    """


class ControlSurvived(_AssertedError):  # noqa: N818 - as PrivacyViolation
    """Raised by ``assert_private``: a control was not refuted, so that of the mechanism as little would have been seen.

    Attributes:
        result: The ``AuditResult``.
    """


class NotConfirmed(_AssertedError):  # noqa: N818 - as PrivacyViolation
    """Raised by ``assert_private``: evidence refuted the claim, and that was not confirmed, so that nothing is decided.

    Attributes:
        result: The ``AuditResult``.
    """


class MiscalibrationWarning(UserWarning):
    """Given by ``assert_private``: the noise is calibrated to less than two neighbours need, and the claim is not refuted.

    The message holds the pair and the remedy. Noise with slack keeps the claim all the same.
    """


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence that names what was probably meant, or else everything that is known."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    shown = [name if name.isprintable() else repr(name) for name in known]
    return f"known: {', '.join(shown) if shown else 'none'}"


def raised_at(error: BaseException) -> str:
    """Return the innermost line of a user's own code that an exception passed, such as ``counts.py, line 7``, or nothing."""
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
    """Return the innermost line of a file that an exception passed, or where it was raised, as ``audit_it.py, line 7``."""
    frames = traceback.extract_tb(error.__traceback__)
    where = next(
        (f for f in reversed(frames) if f.filename == path),
        frames[-1] if frames else None,
    )
    return f"{Path(where.filename).name}, line {where.lineno}" if where else ""


def die_with_parent() -> None:
    """Have the kernel end this process when its parent ends, where it can; a killed parent cannot do it."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
