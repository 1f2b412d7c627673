"""``python -m benchmarks.suite``: a run of a thousand trivial audits, and single games of more and more calls.

The first says what the log, resuming and the report of a long run cost; the second whether a game's memory depends on its
calls. Times are wall times of whole commands, and CPU seconds of their own process, without those of the audits; memory is
the peak of a process.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

FILE = """\
import numpy as np
from auditdp import AnyValues, Audit, PureDP, audit


def response(data, size, *, rng):
    return np.where(rng.random(size) < 0.7, data, 1 - data)


{audits}
"""
AUDIT = """
@audit()
def audit_{number:03}(epsilon=1.0):
    return Audit(response, PureDP(epsilon), AnyValues((0, 1)), calls=200)
"""
STREAM = """\
import resource, sys
import numpy as np
from auditdp import PureDP, check

def count(data, size, *, rng):
    return data + rng.laplace(scale=1.0, size=size)

result = check(count, PureDP(1.0), [(10, 11)], calls={calls}, seed=1)
print(result.verdict, result.calls, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6)
"""


def write(folder: Path, *, audits: int, files: int) -> None:
    """Write trivial audits into several files of a folder."""
    (folder / "audits").mkdir()
    for file in range(files):
        numbers = range(file, audits, files)
        text = FILE.format(
            audits="".join(AUDIT.format(number=number) for number in numbers)
        )
        (folder / "audits" / f"audit_{file:02}.py").write_text(text)


def timed(folder: Path, *words: str) -> tuple[float, float]:
    """Run a command to its end and return its wall and CPU seconds."""
    wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "auditdp", *words],
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - wall, cpu


def suite(audits: int, files: int, workers: str) -> Iterator[str]:
    """Yield a line for each command of a run of trivial audits."""
    run = ("run", "--seed", "1", "--budget", "quick", "-n", workers, "-q")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, audits=audits, files=files)
        yield _line(f"run {audits} audits of {files} files", timed(folder, *run))
        log = folder / ".auditdp" / "run.jsonl"
        results = [
            line["result"]
            for line in map(json.loads, log.read_text().splitlines())
            if line["kind"] == "result"
        ]
        yield f"| the audits themselves | | {sum(result['cpu_seconds'] for result in results):.0f} CPU s |"
        yield f"| size of the log | {log.stat().st_size / 1e6:.1f} MB | |"
        yield _line(
            "resume the run, of which nothing is left to do",
            timed(folder, *run, "--resume"),
        )
        lines = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join(lines[: 1 + audits * 9 // 10]))
        yield _line(
            "resume it with the last tenth to do", timed(folder, *run, "--resume")
        )
        yield _line("HTML report", timed(folder, "report", "-o", "report.html"))
        yield f"| size of the report's index | {(folder / 'report.html').stat().st_size / 1e6:.1f} MB | |"
        yield _line(
            "JSON report", timed(folder, "report", "-f", "json", "-o", "run.json")
        )


def stream(calls: int) -> str:
    """Return a line for one game of many calls."""
    wall = time.perf_counter()
    command = [sys.executable, "-c", STREAM.format(calls=calls)]
    printed = subprocess.run(
        command, check=True, capture_output=True, text=True, env=os.environ
    ).stdout
    verdict, made, memory = printed.split()
    seconds = time.perf_counter() - wall
    return f"| {int(made):,} calls, {verdict} | {seconds:.1f} s | peak {float(memory):.0f} MB |"


def _line(what: str, took: tuple[float, float]) -> str:
    return f"| {what} | {took[0]:.1f} s | {took[1]:.1f} CPU s |"


def main() -> None:
    """Print the figures as a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--workers", default="2")
    parser.add_argument(
        "--calls", type=int, nargs="*", default=(10**6, 5 * 10**6, 2 * 10**7)
    )
    given = parser.parse_args()
    print(
        f"# Large runs and long games\n\n`python -m benchmarks.suite`, {given.workers} audits at a time.\n"
    )
    print("| what | wall time | |\n|---|---|---|")
    if given.audits:
        for line in suite(given.audits, given.files, given.workers):
            print(line, flush=True)
    for calls in given.calls:
        print(stream(calls), flush=True)


if __name__ == "__main__":
    main()
