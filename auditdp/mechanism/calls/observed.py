"""Mechanisms of which an output is what a call returns and what it shows beside: prints, logs, files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from auditdp.mechanism.calls.calling import checked_outputs
from auditdp.mechanism.calls.side_outputs import STREAMS, content, showing
from auditdp.mechanism.protocol import PerCall, as_mechanism, is_seeded, name_of


class Observed(PerCall):
    r"""A mechanism of which some of what a call shows is part of its output, beside what it returns.

    It offers no law: what a mechanism states is about what it returns. Where files are observed, a call runs in an empty
    folder of its own. Of a call that raises only that is seen.

    Args:
        mechanism: Any mechanism; it is called for one output at a time.
        observe: Of ``STREAMS``.

    >>> import numpy as np
    >>> def chatty(x, rng):
    ...     print("count", x)
    ...     return 1
    >>> Observed(chatty, ["stdout"])(5, 1, rng=np.random.default_rng(0))
    [{'output': 1, 'stdout': 'count 5\n'}]
    """

    def __init__(self, mechanism: Any, observe: Sequence[str]) -> None:
        made, name = as_mechanism(mechanism), name_of(mechanism)

        def observing(data: Any, rng: np.random.Generator) -> dict[str, Any]:
            with showing(observe, quiet=True) as seen:
                if "files" in observe:
                    outputs, files = _in_empty_folder(lambda: made(data, 1, rng=rng))
                else:
                    outputs, files = made(data, 1, rng=rng), {}
            (output,) = checked_outputs(outputs, 1, name)
            parts = seen.parts
            parts["files"] |= files
            return {
                "output": output,
                **{stream: parts[stream] for stream in STREAMS if stream in observe},
            }

        observing.__signature__ = signature(observing)  # type: ignore[attr-defined]  # and not that of what it wraps
        observing.__wrapped__ = getattr(made, "function", made)  # type: ignore[attr-defined]  # for traces and places
        super().__init__(observing)
        self.name, self.seeded = name, is_seeded(mechanism)


def _in_empty_folder(call: Callable[[], Any]) -> tuple[Any, dict[str, Any]]:
    """Return what a call returns, and the files that it leaves in the folder that it runs in, which is removed."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="auditdp-") as name:
        os.chdir(name)
        try:
            outputs, folder = call(), Path(name)
            paths = sorted(path for path in folder.rglob("*") if path.is_file())
            return outputs, {
                str(path.relative_to(folder)): content(path) for path in paths
            }
        finally:
            os.chdir(before)
