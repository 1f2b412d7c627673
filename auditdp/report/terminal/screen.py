"""Whether what is written to a stream may have colours."""

from __future__ import annotations

import os
from typing import TextIO


def coloured(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that shows colours, and nobody asked for none.

    Asked is by ``NO_COLOR``, set to anything (https://no-color.org), or by ``TERM=dumb``.
    """
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "").lower() in ("dumb", "unknown")
    return not plain and stream.isatty()
