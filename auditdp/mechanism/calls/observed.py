"""Mechanisms whose outputs include side outputs: prints, log messages, files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from auditdp.mechanism.calls.calling import checked_outputs
from auditdp.mechanism.calls.side_outputs import STREAMS, content, showing
from auditdp.mechanism.protocol import PerCall, as_mechanism, is_seeded, name_of


class Observed(PerCall):
    r"""A mechanism whose output is the returned value together with side outputs.

    It has no optional methods such as a law, since they are about the returned value.
    If files are observed, each call runs in an empty folder of its own. The output of a
    call that raises is only the exception.

    Args:
        mechanism: Any mechanism; it is called for one output at a time.
        observe: The observed streams, names of ``STREAMS``.

    >>> import numpy as np
    >>> def chatty(x, rng):
    ...     print("count", x)
    ...     return 1
    >>> Observed(chatty, ["stdout"])(5, 1, rng=np.random.default_rng(0))
    [{'output': 1, 'stdout': 'count 5\n'}]
    """

    def __init__(self, mechanism: Any, observe: Sequence[str]) -> None:
        made, name = as_mechanism(mechanism), name_of(mechanism)
        streams = [stream for stream in STREAMS if stream in observe]

        def observing(data: Any, rng: np.random.Generator) -> dict[str, Any]:
            files: dict[str, Any] = {}
            folder = _empty_folder(files) if "files" in observe else nullcontext()
            with showing(observe, quiet=True) as showed, folder:
                outputs = made(data, 1, rng=rng)
            (output,) = checked_outputs(outputs, 1, name)
            parts = showed.parts
            parts["files"] |= files
            return {"output": output} | {stream: parts[stream] for stream in streams}

        # The signature is that of this function, and not that of the wrapped one, which
        # traces and places need.
        observing.__signature__ = signature(observing)  # type: ignore[attr-defined]
        observing.__wrapped__ = getattr(made, "function", made)  # type: ignore[attr-defined]
        super().__init__(observing)
        self.name, self.seeded = name, is_seeded(mechanism)


@contextmanager
def _empty_folder(files: dict[str, Any]) -> Iterator[None]:
    """Run the block in a new folder, and add its files at the end to ``files``."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="auditdp-") as name:
        os.chdir(name)
        try:
            yield
            for path in sorted(Path(name).rglob("*")):
                if path.is_file():
                    files[str(path.relative_to(name))] = content(path)
        finally:
            os.chdir(before)
