"""A process that is forked from this one, writes nowhere, and answers through a pipe until whoever asks has ended."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe

from auditdp.mechanism.ending import die_with_parent


class ForkedProcess:
    """The end of who asks.

    Args:
        serve: Answers in the process, until the pipe is closed.

    Attributes:
        pipe: To the process; None where a platform cannot fork, or has no room, and after the end.
        process: Its number.
    """

    def __init__(self, serve: Callable[[Connection], object]) -> None:
        self.pipe: Connection | None = None
        if not hasattr(os, "fork"):
            return
        ours, theirs = Pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of threads, which a fork lacks: calls that wait for one are given up
            with suppress(OSError):
                self.process = os.fork()
                self.pipe = ours
        if self.pipe is None:
            ours.close()
        elif self.process == 0:
            with suppress(BaseException):  # and it ends without whatever the other process would do at its end
                ours.close()
                die_with_parent()
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks decides
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                nothing = os.open(os.devnull, os.O_RDWR)
                for stream in (0, 1, 2):
                    os.dup2(nothing, stream)
                sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # until the end
                serve(theirs)
            os._exit(0)
        theirs.close()

    def close(self) -> None:
        """End the process."""
        if self.pipe is None:
            return
        self.pipe.close()
        self.pipe = None
        with suppress(OSError):
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
