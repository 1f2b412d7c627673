"""Where processes of a run start: what a run names without importing what they need."""

from __future__ import annotations

from multiprocessing.connection import Connection
from pathlib import Path

from auditdp.runner.plan import COLLECTED, Collected
from auditdp.runner.processes.children import Work
from auditdp.runner.processes.sandbox import Sandbox


def open_host(
    connection: Connection, path: Path, overrides: dict[str, str], folder: Path, limit: float, sandbox: Sandbox
) -> None:
    """Be the process of an audit file; see ``host.host``."""
    try:
        sandbox.enter(folder)
    except OSError as error:
        connection.send_bytes(COLLECTED.dump_json(Collected(failure=f"{path.name}: the sandbox is refused: {error}")))
        return
    from auditdp.runner.processes.host import host

    host(connection, path, overrides, folder, limit)


def open_judges(connection: Connection, folder: Path) -> None:
    """Be the process that those who judge are forked from; see ``host.judges``."""
    from auditdp.runner.processes.host import judges

    judges(connection, folder)


def work_alone(sender: Connection, work: Work, output: Path) -> None:
    """Do one piece of work; see ``host.alone``."""
    work.sandbox.enter(output.parent)
    from auditdp.runner.processes.host import alone

    alone(sender, work, output)
