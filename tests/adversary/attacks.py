"""Attacks on a run by an audit of it: what each does, and which part of the sandbox stands against it."""

from dataclasses import dataclass

HEAD = """
import ctypes, os, signal, socket, subprocess, sys, tempfile, time
from pathlib import Path

import auditdp
from auditdp import Audit, PureDP, audit

SANDBOXED = {sandboxed!r}
MARK, PORT, LOG = {mark!r}, {port!r}, {log!r}

def refuse():
    raise PermissionError("refused")

def runner():
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and MARK in (entry / "cmdline").read_text():
            return int(entry.name)
    raise ProcessLookupError("no process of the run is seen")

def seize(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(0x4206, pid, None, None) < 0:
        raise PermissionError(ctypes.get_errno(), "ptrace")

def replaced(path, old, new):
    with open(path, "r+b") as file:
        content = file.read()
        file.seek(0)
        file.write(content.replace(old, new))

def each(attack, targets):
    reached = []
    for target in targets:
        try:
            attack(target)
            reached.append(target)
        except OSError:
            pass
    if not reached:
        raise PermissionError(f"none of {{targets}}")

def files(pid):
    each(lambda number: os.open(f"/proc/{{pid}}/fd/{{number}}", os.O_WRONLY), os.listdir(f"/proc/{{pid}}/fd"))

def leaks(x, rng):
    return x
"""
AUDIT = """
@audit
def {name}():
    for attack in ({attacks},):
        try:
            attack()
        except OSError as error:
            print(attack.__name__, "REFUSED", repr(error))
        else:
            print(attack.__name__, "DONE")
    return Audit(leaks, PureDP(1.0), pairs=[(0, 1)])
"""
TOGETHER = 10
"""Attacks in one file: a run of a file each would cost twenty seconds more."""


@dataclass(frozen=True)
class Attack:
    """What an audit does, whose mechanism breaks its claim.

    Attributes:
        name: Of the audit, and of its file.
        what: In words.
        code: Of the function ``attack``, which raises OSError where it is refused.
        by: What refuses it: 'landlock', or 'namespaces' where Landlock alone does not.
        lands: Whether it is done where nothing refuses it; otherwise that would not be safe to try.
        alone: Whether nothing else can be tried after it in the same process.
    """

    name: str
    what: str
    code: str
    by: str = "landlock"
    lands: bool = True
    alone: bool = False

    @property
    def function(self) -> str:
        """What does it, in the audit file."""
        body = "\n".join(f"    {line}" for line in self.code.strip().splitlines())
        return f"\ndef {self.name}():\n{body}\n"


def in_files(attacks: list[Attack]) -> dict[str, list[Attack]]:
    """Return the attacks by the name of an audit, which has a file of its own and tries them one after the other."""
    many = [attack for attack in attacks if not attack.alone]
    files = {
        f"attacks_{k}": many[k : k + TOGETHER] for k in range(0, len(many), TOGETHER)
    }
    return {**files, **{attack.name: [attack] for attack in attacks if attack.alone}}


def source(name: str, attacks: list[Attack], **values: object) -> str:
    """The audit file."""
    functions = "".join(attack.function for attack in attacks)
    called = ", ".join(attack.name for attack in attacks)
    return (
        HEAD.format(**values)
        + functions
        + AUDIT.format(name=f"audit_{name}", attacks=called)
    )


ATTACKS = [
    Attack(
        "log_edit",
        "it certifies what was refuted, in as many bytes",
        'replaced(LOG, b"VIOLATED\\"", b"CERTIFIED")',
    ),
    Attack(
        "log_append",
        "it appends to the log, then kills the run",
        'open(LOG, "ab").write(b"{}")',
        lands=False,
    ),
    Attack(
        "run_killed",
        "it kills the run",
        "os.kill(runner(), signal.SIGKILL if SANDBOXED else 0)",
    ),
    Attack(
        "run_stopped",
        "it stops the run",
        "os.kill(runner(), signal.SIGSTOP if SANDBOXED else 0)",
    ),
    Attack("run_traced", "ptrace of the run", "seize(runner())"),
    Attack(
        "run_memory",
        "it opens the memory of the run",
        'open(f"/proc/{runner()}/mem", "r+b")',
    ),
    Attack("run_files", "it opens files that the run has open", "files(runner())"),
    Attack(
        "parent_killed",
        "it kills its parent",
        "os.kill(os.getppid(), signal.SIGKILL if SANDBOXED else 0)",
    ),
    Attack("parent_traced", "ptrace of its parent", "seize(os.getppid())"),
    Attack(
        "parent_memory",
        "it opens the memory of its parent",
        'open(f"/proc/{os.getppid()}/mem", "r+b")',
    ),
    Attack(
        "parent_files", "it opens files that its parent has open", "files(os.getppid())"
    ),
    Attack(
        "others_killed",
        "it kills every process that it sees",
        "each(lambda pid: os.kill(pid, signal.SIGKILL), "
        "[int(name) for name in os.listdir('/proc') if name.isdigit() and int(name) != os.getpid()])",
        "namespaces",
        lands=False,
    ),
    Attack(
        "baseline",
        "it edits the baseline",
        'open("auditdp-baseline.toml", "a").write("#")',
    ),
    Attack(
        "settings", "it edits the settings", 'open("pyproject.toml", "a").write("#")'
    ),
    Attack(
        "neighbour",
        "it edits another audit file",
        'open("audits/audit_z.py", "a").write("#")',
    ),
    Attack(
        "sitting_beside",
        "it puts a file beside the audits",
        'open("audits/audit_new.py", "w").write("#")',
    ),
    Attack(
        "compiled",
        "it replaces what another file is compiled to",
        'os.makedirs("audits/__pycache__", exist_ok=True); open("audits/__pycache__/audit_z.pyc", "wb").write(b"#")',
    ),
    Attack(
        "reports",
        "it writes where reports are",
        'open("reports/other.html", "w").write("clean")',
    ),
    Attack(
        "moved",
        "it moves the log away",
        'os.rename(LOG, "moved.jsonl"); os.rename("moved.jsonl", LOG)',
    ),
    Attack(
        "linked",
        "it links the log into its scratch",
        'os.link(LOG, Path(tempfile.mkdtemp(), "log"))',
    ),
    Attack(
        "installed",
        "it opens auditdp's own files to write",
        'open(auditdp.__file__, "ab")',
    ),
    Attack(
        "scratch",
        "it writes into the folder above its scratch",
        "tempfile.mkstemp(dir=Path(tempfile.gettempdir()).parent)",
    ),
    Attack(
        "server",
        "it connects to a server of this machine",
        'socket.create_connection(("127.0.0.1", PORT), 2)',
    ),
    Attack(
        "by_program",
        "a program that it starts in a session of its own writes to the log",
        'subprocess.run(["sh", "-c", f"printf x >> {LOG}"], start_new_session=True).returncode == 0 or refuse()',
        lands=False,
    ),
    Attack(
        "terminal",
        "it opens the terminal of the run",
        'open("/dev/tty", "r+b", buffering=0)',
        lands=False,
    ),
    Attack(
        "shared",
        "it changes shared memory of the machine",
        'open(f"/dev/shm/{MARK}", "r+b").write(b"x")',
        "namespaces",
    ),
    Attack("mode", "it makes the log unreadable", "os.chmod(LOG, 0o600)", "namespaces"),
    Attack(
        "times",
        "it changes when a file was changed",
        'os.utime("audits/audit_z.py")',
        "namespaces",
    ),
    Attack(
        "datagram",
        "it sends a datagram",
        'socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 9))',
        "namespaces",
        lands=False,
    ),
    Attack(
        "bomb",
        "it forks without end",
        'bomb = "import os, time\\nwhile os.fork(): pass\\ntime.sleep(600)"\n'
        'subprocess.run([sys.executable, "-ISc", bomb]).returncode == 0 or refuse()',
        "namespaces",
        lands=False,
        alone=True,
    ),
]
"""``LOG`` is the log of the run."""
DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, 0)
        os.register_at_fork(after_in_child=lambda: ctypes.CDLL(None).prctl(1, 0))
        os.execvp("sh", ["sh", "-c", f"sleep 1; while sleep 0.1; do echo {MARK}-daemon; printf x >> {LOG}; done"])
    os._exit(0)
"""
"""What forks twice, leaves its session, lives on without its parent, and appends to the log again and again."""
