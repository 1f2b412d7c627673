"""The table of the comparison with other tools, from the benchmark's records."""

from __future__ import annotations

from benchmarks.rows import ROWS, Peer
from benchmarks.tightness import PEERS


def table() -> str:
    """Return a line for each of the field's twelve mechanisms: the oracle's bound, and what every tool reached of it."""
    head = [
        f"| mechanism | what it computes | oracle | {' | '.join(f'{name}, CPU s' for name in PEERS)} |",
        "|---|---|---|" + "---|" * len(PEERS),
    ]
    rows = [
        f"| {row.name} | {row.definition} | {row.oracle:g} | {' | '.join(_cell(row.peers.get(n)) for n in PEERS)} |"
        for row in ROWS
    ]
    return "\n".join([*head, *rows])


def _cell(peer: Peer | None) -> str:
    if peer is None:
        return "not run"
    reached = "found none" if peer.ratio is None else f"{peer.ratio:.2f}"
    return f"{reached}, {peer.cpu_seconds:g}"
