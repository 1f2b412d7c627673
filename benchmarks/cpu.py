"""``python -m benchmarks.cpu RUN.json``: the CPU time of a recorded run by phase, and whether a phase takes too much of it.

Shares of the time are compared, since they depend little on the machine.
"""

from __future__ import annotations

import sys
from pathlib import Path

from auditdp.report.sentences import cpu_sentence, cpu_shares
from auditdp.runner.run_record import scan_record

MOST = {"controls": 0.3, "checks": 0.12, "trace": 0.12}
"""Largest shares of phases in the quick run of all audits; measured: 18 %, 5 % and 4 %."""


def too_large(shares: dict[str, float]) -> list[str]:
    """Return a phrase for each phase with more than its share."""
    return [
        f"{name}: {shares[name]:.0%} of the CPU time, and at most {most:.0%} is expected"
        for name, most in MOST.items()
        if shares.get(name, 0.0) > most
    ]


def main(path: Path) -> int:
    """Print where the CPU time of a run went, and return 1 if a phase takes too much."""
    results = scan_record(path).record.results
    found = too_large(cpu_shares(results))
    print("\n".join([f"CPU time: {cpu_sentence(results)}", *found]))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
