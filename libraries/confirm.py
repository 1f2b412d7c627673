"""Every violation of a recorded run once more, on fresh randomness, at a thousandth of the run's α and the standard budget.

Run as ``python -m libraries.confirm RECORD ... -o FILE``: a finding becomes a line of JSON with the audit, α, the seed and
whether ``auditdp confirm`` found it again. What is computed and not drawn needs no confirmation and is left out.
"""

import argparse
import json
import secrets
import subprocess
import sys
from pathlib import Path

from auditdp.record.results import RunRecord, Verdict

FOUND = 1
"""Exit code of ``auditdp confirm`` where the finding is found again."""


def drawn(record):
    """Return the violations of a record that rest on calls."""
    return [
        result
        for result in record.results
        if result.verdict is Verdict.VIOLATED and result.log_e_value is not None
    ]


def confirm(path, result, alpha, seed):
    """Return True if a recorded finding is found again, with another seed."""
    command = [
        sys.executable,
        "-m",
        "auditdp",
        "confirm",
        result.id,
        "--run",
        str(path),
        "--budget",
        "standard",
    ]
    ended = subprocess.run(
        [*command, "--alpha", repr(alpha), "--seed", str(seed)],
        check=False,
        capture_output=True,
    )
    return ended.returncode == FOUND


def main():
    """Read records, confirm their violations one by one, and write a line for each."""
    parser = argparse.ArgumentParser(
        prog="python -m libraries.confirm", description=main.__doc__
    )
    parser.add_argument(
        "records",
        nargs="+",
        type=Path,
        help="records written by auditdp run --report json=PATH",
    )
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args()
    with given.out.open("w", encoding="utf-8") as file:
        for path in given.records:
            record = RunRecord.from_json(path.read_text(encoding="utf-8"))
            alpha = sum(entry.alpha for entry in record.alpha_ledger) / 1000
            for result in drawn(record):
                seed = secrets.randbelow(2**32)
                found = confirm(path, result, alpha, seed)
                line = {
                    "audit": result.id,
                    "alpha": alpha,
                    "seed": seed,
                    "confirmed": found,
                }
                file.write(json.dumps(line) + "\n")
                print(
                    f"{result.id}: {'found again' if found else 'not found again'}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
