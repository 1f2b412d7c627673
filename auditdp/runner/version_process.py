"""The code of another revision, traced and called in a process of its own.

The process of the mechanism forks this one before it builds the audit. This one removes
the imported modules of the working tree, and imports the audit from the other tree.
Libraries stay as they are. If the audit then still imports a module of the working
tree, its code would be a mixture of both versions, and a ``VersionError`` is raised.
"""

from __future__ import annotations

import importlib
import os
import pickle
import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np

from auditdp.adjacency import Pair
from auditdp.auditing.declaration import Audit
from auditdp.auditing.decorator import Declared, collect
from auditdp.claims.claim import Claim
from auditdp.errors import AuditError
from auditdp.mechanism.calls.channel import ForkedProcess
from auditdp.mechanism.protocol import as_mechanism, brief, is_seeded
from auditdp.numerics.streams import stream
from auditdp.runner.audit_sources import HARNESS
from auditdp.runner.plan import Task
from auditdp.tracing import PairTrace, Trace, replayed


class VersionError(AuditError):
    """The version of the other revision cannot be run, or did not answer."""


class OtherVersion:
    """The audit of a task at another revision; its process ends with this context."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def __enter__(self) -> Self:
        self._forked = ForkedProcess(partial(_serve, self._task))
        return self

    def __exit__(self, *_: object) -> None:
        self._forked.close()

    def traces(self, pairs: Sequence[Pair], claim: Claim) -> list[PairTrace]:
        """Return the traces on pairs, with the same randomness as ``traces_of`` here.

        Raises:
            VersionError: If the other version cannot be run, or inputs or traces cannot
                be pickled.
        """
        found: list[PairTrace] = self._asked("traces", list(pairs), claim)
        return found

    def output(self, data: Any, seed: int) -> Any:
        """Return an output for an input, or raise the mechanism's exception.

        Raises:
            VersionError: If the other version cannot be run, or the input or the output
                cannot be pickled.
        """
        found, raised = self._asked("output", data, seed)
        if raised is not None:
            raise raised
        return found

    def _asked(self, kind: str, *arguments: Any) -> Any:
        if (pipe := self._forked.pipe) is None:
            raise VersionError("this system cannot fork, which the comparison needs")
        try:
            pipe.send_bytes(pickle.dumps((kind, arguments)))
            found, failed = pickle.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            raise VersionError("its process died") from None
        except (pickle.PickleError, AttributeError, TypeError, ImportError) as error:
            raise VersionError(
                f"inputs or outputs cannot pass between processes: {error}"
            ) from None
        if failed:
            raise VersionError(failed)
        return found


def traces_of(
    mechanism: Any, pairs: Sequence[Pair], claim: Claim, task: Task
) -> list[PairTrace]:
    """Return the trace of a mechanism on each pair, each with its own randomness.

    The root seed, the id of the audit and the number of the pair key the randomness.
    """
    found = []
    with Trace(mechanism) as trace:
        for number, pair in enumerate(pairs):
            rng = stream(task.root_seed, task.id, "versions", number)
            found.append(
                replayed(
                    trace, trace.record(pair.data, rng), pair.neighbour, claim=claim
                )
            )
    return found


def output_of(mechanism: Any, data: Any, rng: np.random.Generator) -> Any:
    """Return one output of a mechanism."""
    return as_mechanism(mechanism)(data, 1, rng=rng)[0]


def _serve(task: Task, pipe: Connection) -> NoReturn:
    built: Audit | None = None
    while True:
        kind, arguments = pickle.loads(pipe.recv_bytes())
        try:
            built = built or _built(task)
            answer = pickle.dumps((_answer(task, built, kind, *arguments), ""))
        except BaseException as error:
            answer = pickle.dumps(
                (None, f"{type(error).__name__}: {brief(str(error), 300)}")
            )
        pipe.send_bytes(answer)


def _answer(task: Task, built: Audit, kind: str, *arguments: Any) -> Any:
    if kind == "traces":
        pairs, claim = arguments
        return traces_of(built.mechanism, pairs, claim, task)
    data, seed = arguments
    # A mechanism without a generator draws from global ones. A forked process has a
    # copy of their state, and would draw the same numbers as its parent.
    if not is_seeded(built.mechanism):
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002  # of code that draws from the global state
        if "torch" in sys.modules:
            sys.modules["torch"].manual_seed(seed)
    try:
        return output_of(built.mechanism, data, np.random.default_rng(seed)), None
    except Exception as error:
        return None, error.with_traceback(None)


def _built(task: Task) -> Audit:
    """Import the audit from the other tree, and build it.

    If that tree has no such audit, the audit file of the working tree is imported, and
    its imports come from the other tree.

    Raises:
        VersionError: If neither tree has the audit, or it needs another module of the
            working tree.
    """
    # Only a task with another revision is compared.
    assert task.against is not None
    root, other = Path(task.root).resolve(), Path(task.against.folder).resolve()
    _forget(root)
    os.chdir(other)
    moved = [_moved(entry, root, other) for entry in sys.path]
    sys.path[:] = list(dict.fromkeys([*moved, str(other), str(other / "src")]))
    importlib.invalidate_caches()
    file = other / Path(task.path).resolve().relative_to(root)
    declared = _declared(file, other, task.name) if file.is_file() else None
    if declared is None:
        declared = _declared(Path(task.path), root, task.name)
        sys.path[:] = [entry for entry in sys.path if entry != str(root)]
    if declared is None:
        raise VersionError(f"no audit {task.name}")
    built, _ = declared.build(declared.sizes(task.overrides)[0])
    if mixed := sorted(
        file for file in _own_files(root) if file != Path(task.path).resolve()
    ):
        raise VersionError(f"it needs {mixed[0].relative_to(root)}, which is not there")
    return built


def _declared(file: Path, root: Path, name: str) -> Declared | None:
    found = (
        item for item in collect(file, root) if item.id.rpartition("::")[2] == name
    )
    return next((replace(item, wrong=item.wrong) for item in found), None)


def _moved(entry: str, root: Path, other: Path) -> str:
    """Return an entry of Python's path, moved from the working tree to the other tree.

    Entries outside the code of the project stay as they are.
    """
    path = Path(entry or ".").resolve()
    return str(other / path.relative_to(root)) if _is_own(path, root) else entry


def _is_own(path: Path, root: Path) -> bool:
    """Return True if a path is code of the project, not of a library or auditdp."""
    if not path.is_relative_to(root) or path.is_relative_to(HARNESS):
        return False
    parts = path.relative_to(root).parts
    return "site-packages" not in parts and not any(
        part.startswith(".") for part in parts
    )


def _own_files(root: Path) -> dict[Path, str]:
    """Return the names of the imported modules of the project, by their files."""
    named = {
        name: getattr(module, "__file__", None)
        for name, module in list(sys.modules.items())
    }
    files = {Path(file).resolve(): name for name, file in named.items() if file}
    return {file: name for file, name in files.items() if _is_own(file, root)}


def _forget(root: Path) -> None:
    """Remove the imported modules of the working tree, also packages without a file."""
    own = set(_own_files(root).values())
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__dict__", {}).get("__path__", ())
        # ``torch.classes`` has an attribute of any name, so its path may be anything.
        folders = path if isinstance(path, Iterable) else ()
        places = [Path(folder).resolve() for folder in folders]
        if name in own or (places and all(_is_own(place, root) for place in places)):
            del sys.modules[name]
