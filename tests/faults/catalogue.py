"""Faults of mechanisms and audit files: what each does, and what the run has to say of it."""

from dataclasses import dataclass

HEAD = """\
import asyncio, atexit, ctypes, gc, math, os, random, shutil, signal, subprocess, sys, threading, time, warnings
from pathlib import Path
import numpy as np
from auditdp import *
from auditdp.testing import *

BITS = AnyValues((0, 1))

def sound():
    return Audit(Response(0.5), PureDP(1.0), BITS, evidence=["exact"])

def coin(data, size, *, rng):
    return rng.integers(0, 2, size)
"""
BESIDE = '''
@audit()
def before():
    return sound()

@audit()
def leaks():
    """It is not private, which no fault beside it may hide."""
    return Audit(lambda data, size, *, rng: np.full(size, data), PureDP(1.0), BITS, calls=600)
'''
AFTER = """
@audit()
def after():
    assert "SPOILT" not in os.environ and random.random() < 1 and Path.cwd().name == "project"
    return sound()
"""


@dataclass(frozen=True)
class Fault:
    """A fault, and what has to be seen.

    Attributes:
        name: Of the audit, or of the file, that has it.
        what: In words, for the table.
        code: Statements of the mechanism; of the file for a fault of import.
        verdict: What its audit has to end with.
        message: What its summary, or what it printed, has to hold.
        where: 'mechanism', 'factory' or 'file': where the statements stand.
    """

    name: str
    what: str
    code: str
    verdict: str = "ERROR"
    message: str = ""
    where: str = "mechanism"

    @property
    def audit(self) -> str:
        """The audit that has the fault, as source."""
        body = self.code.replace("\n", "\n    ")
        if self.where == "factory":
            return f"@audit()\ndef {self.name}():\n    {body}\n    return sound()\n"
        return (
            f"def f_{self.name}(data, size, *, rng):\n    {body}\n    return rng.integers(0, 2, size)\n\n"
            f"@audit()\ndef {self.name}():\n    return Audit(f_{self.name}, PureDP(1.0), BITS, calls=64)\n"
        )


ENDED = "it ended itself, with exit code 0"
LIMITED = """\
with open("forks", "a") as file:  # never more than 10, should copies go on and fork again
    file.write("x")
if Path("forks").stat().st_size > 10:
    return rng.integers(0, 2, size)
"""
FAULTS = [
    Fault("leaves", "os._exit(0) in a mechanism", "os._exit(0)", message=ENDED),
    Fault(
        "leaves_with_1",
        "os._exit(1) in a mechanism",
        "os._exit(1)",
        message="with exit code 1",
    ),
    Fault(
        "leaves_early",
        "os._exit(0) in a factory",
        "os._exit(0)",
        message=ENDED,
        where="factory",
    ),
    Fault(
        "shown",
        "os._exit(0) in the __repr__ of an input",
        "class Deadly(int):\n    def __repr__(self):\n        os._exit(0)\n    __str__ = __repr__\n"
        "return Audit(coin, PureDP(1.0), [(Deadly(0), Deadly(1))], calls=64)",
        message=ENDED,
        where="factory",
    ),
    Fault(
        "at_exit",
        "os._exit(0) in a hook of atexit",
        "atexit.register(os._exit, 0)",
        "NOT_REFUTED",
    ),
    Fault("exits", "sys.exit(0)", "sys.exit(0)", message="SystemExit"),
    Fault(
        "segfaults",
        "a segmentation fault in native code",
        "ctypes.string_at(0)",
        message="killed by SIGSEGV",
    ),
    Fault("aborts", "abort()", "os.abort()", message="killed by SIGABRT"),
    Fault(
        "killed",
        "SIGKILL, as the kernel sends where memory ends",
        "os.kill(os.getpid(), 9)",
        message="killed by SIGKILL",
    ),
    Fault(
        "terminated",
        "SIGTERM to itself",
        "os.kill(os.getpid(), 15)",
        message="killed by SIGTERM",
    ),
    Fault(
        "stuck",
        "a native call that outlives the time limit",
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\nctypes.PyDLL(None).sleep(3600)",
        message="it did not react, so its process was ended",
    ),
    Fault(
        "sleeps",
        "it outlives the time limit",
        "time.sleep(3600)",
        message="stopped after 6 seconds",
    ),
    Fault(
        "deaf",
        "it catches every exception, and its time limit",
        "while True:\n    try:\n        time.sleep(3600)\n    except BaseException:\n        pass",
        message="stopped after 6 seconds",
    ),
    Fault(
        "cancelled",
        "asyncio.CancelledError",
        "raise asyncio.CancelledError('gone')",
        message="CancelledError: gone",
    ),
    Fault(
        "interrupts",
        "KeyboardInterrupt raised by a mechanism",
        "raise KeyboardInterrupt",
        message="KeyboardInterrupt",
    ),
    Fault(
        "generator_exit",
        "GeneratorExit",
        "raise GeneratorExit",
        message="GeneratorExit",
    ),
    Fault(
        "importorskip",
        "pytest.importorskip in a factory",
        "import pytest; pytest.importorskip('no_such_module')",
        message="no_such_module",
        where="factory",
    ),
    Fault(
        "recursion",
        "recursion without end",
        "def f(): return f()\nf()",
        message="RecursionError",
    ),
    Fault(
        "memory",
        "more memory than --max-memory",
        "x = np.ones(1 << 29)",
        message="MemoryError",
    ),
    Fault(
        "raises",
        "an exception",
        "raise ValueError('cannot count')",
        message="cannot count",
    ),
    Fault(
        "prints",
        "it prints, natively too",
        "print('said aloud'); os.system('echo by a child')",
        "NOT_REFUTED",
        "by a child",
    ),
    Fault(
        "floods",
        "it prints 20 MB",
        "print('x' * 300_000)",
        "NOT_REFUTED",
        "characters left out",
    ),
    Fault(
        "closes",
        "it closes every file",
        "os.closerange(0, 256)",
        message="the process that ran it died",
    ),
    Fault(
        "scribbles",
        "it writes into every pipe that it has",
        "for number in range(3, 64):\n    try:\n        os.write(number, b'scribble')\n    except OSError:\n        pass",
        message="answered with something other than a result",
    ),
    Fault("moves", "it changes the working folder", "os.chdir('/')", "NOT_REFUTED"),
    Fault(
        "clears",
        "it clears the environment",
        "os.environ.clear(); os.environ['SPOILT'] = '1'",
        "NOT_REFUTED",
    ),
    Fault(
        "patches",
        "it replaces random.random",
        "random.random = lambda: 7.0",
        "NOT_REFUTED",
    ),
    Fault(
        "thread",
        "a thread that is no daemon and never ends",
        "threading.Thread(target=time.sleep, args=[3600]).start()",
        "NOT_REFUTED",
    ),
    Fault(
        "orphan",
        "a subprocess that outlives it",
        "subprocess.Popen(['sleep', '3599'])",
        "NOT_REFUTED",
    ),
    Fault("warns", "it sets the alarm off", "signal.alarm(0)", "NOT_REFUTED"),
    Fault(
        "not_text",
        "an exception whose text is not",
        "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
        message="not_text",
    ),
]

REACHING = [
    Fault(
        "forks",
        "a fork in every call, whose copy goes on",
        LIMITED + "os.fork()",
        "NOT_REFUTED",
    ),
    Fault(
        "kills_parent",
        "SIGKILL to its parent process",
        "os.kill(os.getppid(), 9)",
        message="the process that ran it died",
    ),
    Fault(
        "kills_group",
        "SIGKILL to its process group",
        "os.killpg(0, 9)",
        message="the process that ran it died",
    ),
    Fault(
        "tidies",
        "it removes the run's folder for temporary files",
        "folder = Path(os.readlink('/proc/self/fd/1')).parents[2]\nassert folder.name.startswith('pymp-')\n"
        "shutil.rmtree(folder)",
        message="No such file or directory",
    ),
    Fault(
        "deletes",
        "it deletes the log",
        "shutil.rmtree('.auditdp', ignore_errors=True)",
        "NOT_REFUTED",
    ),
    Fault(
        "truncates",
        "it truncates the log",
        "try:\n    open('.auditdp/run.jsonl', 'w').close()\nexcept FileNotFoundError:\n    pass",  # it was deleted
        "NOT_REFUTED",
    ),
]
"""What reaches beyond its process, or writes to the project's folder: tried without a sandbox, which would refuse it
(``tests/adversary/test_sandbox.py``)."""
IMPORTS = [
    Fault(
        "leaves", "os._exit(0) at import", "os._exit(0)", message=ENDED, where="file"
    ),
    Fault(
        "segfaults",
        "a segmentation fault at import",
        "ctypes.string_at(0)",
        message="killed by SIGSEGV",
        where="file",
    ),
    Fault(
        "loops",
        "an import that never ends",
        "while True: pass",
        message="its import was stopped after",
        where="file",
    ),
    Fault(
        "sleeps",
        "an import stuck in native code",
        "ctypes.PyDLL(None).sleep(3600)",
        message="its import was stopped after",
        where="file",
    ),
    Fault(
        "exits",
        "sys.exit(0) at import",
        "sys.exit(0)",
        message="SystemExit",
        where="file",
    ),
    Fault(
        "interrupts",
        "KeyboardInterrupt at import",
        "raise KeyboardInterrupt",
        message="KeyboardInterrupt",
        where="file",
    ),
    Fault(
        "importorskip",
        "pytest.importorskip at import",
        "import pytest; pytest.importorskip('no_such')",
        message="no_such",
        where="file",
    ),
    Fault("syntax", "a syntax error", "def f(:", message="SyntaxError", where="file"),
    Fault(
        "forks",
        "a fork at import whose copy goes on",
        "os.fork()",
        "CERTIFIED",
        where="file",
    ),
    Fault(
        "thread",
        "a thread that is started at import",
        "threading.Thread(target=time.sleep, args=[3600]).start()",
        "CERTIFIED",
        where="file",
    ),
    Fault(
        "at_exit",
        "os._exit(0) in a hook of atexit at import",
        "atexit.register(os._exit, 0)",
        "CERTIFIED",
        where="file",
    ),
    Fault(
        "prints",
        "it prints while it is imported",
        "print('while imported')",
        "CERTIFIED",
        where="file",
    ),
]
SHADOWS = ("joblib", "flint", "numpy", "typer", "pydantic", "scipy")
"""Modules of libraries that the working folder has files of the names of."""
LEAKY = (
    HEAD
    + """
def declare(k):
    def factory():
        return Audit(lambda data, size, *, rng: np.full(size, data), PureDP(1.0), BITS, calls=600)
    factory.__name__ = f"leaks{k}"
    globals()[factory.__name__] = audit()(factory)

for k in range(4):
    declare(k)
"""
)
"""An audit file whose four audits are all refuted."""
