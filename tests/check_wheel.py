"""Check a built wheel: its only top-level name is auditdp, and CI.md's five commands work in an environment of its own."""

import re
import shlex
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

TRY = """
import sys
from auditdp import PureDP, PrivacyViolation, assert_private
assert not {"torch", "matplotlib", "sklearn"} & set(sys.modules), "import auditdp loads a heavy library"
try:
    assert_private(lambda x, rng: x, PureDP(1.0), [(0, 1)], calls=500)
except PrivacyViolation:
    print("the installed wheel refutes a mechanism without noise")
else:
    sys.exit("the installed wheel found nothing wrong with a mechanism without noise")
"""


def follow(
    document: str, folder: Path, binaries: Path, wheel: Path, install: list[str]
) -> None:
    """Do what CI.md says, in a folder with nothing in it; print all of it.

    Args:
        document: The text of CI.md.
        folder: Somebody's repository.
        binaries: Where pip and auditdp are to be found.
        wheel: What is installed.
        install: The command that installs it, for the document's own.
    """
    source = folder / "counts.py"
    source.write_text(
        re.findall(r"```python\n(.*?)```", document, flags=re.S)[0], encoding="utf-8"
    )
    console = "".join(re.findall(r"```console\n(.*?)```", document, flags=re.S)[:2])
    pip, init, run, update, check = re.findall(r"^\$ (.*)$", console, flags=re.M)

    def expect(code: int, command: str) -> None:
        words = (
            install
            if command is pip
            else [str(binaries / shlex.split(command)[0]), *shlex.split(command)[1:]]
        )
        print(f"$ {command}", flush=True)
        ended = subprocess.run(
            [*words, str(wheel)] if command is pip else words, cwd=folder, check=False
        ).returncode
        if ended != code:
            sys.exit(f"{command}: expected exit code {code}, got {ended}")

    def noise(scale: str) -> None:
        source.write_text(
            re.sub(r"scale=[\d.]+", f"scale={scale}", source.read_text()),
            encoding="utf-8",
        )

    expect(0, pip)
    expect(0, init)
    expect(1, run)
    noise("1.0")
    expect(0, run)
    expect(0, update)
    expect(0, check)
    noise("0.5")
    expect(1, check)


def main(folder: str) -> None:
    """Check the only wheel in a folder."""
    (wheel,) = Path(folder).glob("*.whl")
    files = zipfile.ZipFile(wheel).namelist()
    if "auditdp/py.typed" not in files:
        sys.exit(
            f"{wheel.name}: no auditdp/py.typed, without which type checkers ignore its annotations"
        )
    names = {name.partition("/")[0] for name in files}
    extra = {
        name for name in names if name != "auditdp" and not name.endswith(".dist-info")
    }
    if extra or "auditdp" not in names:
        sys.exit(
            f"{wheel.name}: expected auditdp as the only top-level name, found {sorted(names)}"
        )
    with tempfile.TemporaryDirectory() as scratch:
        venv.create(scratch)
        python = str(Path(scratch) / "bin" / "python")
        constraints = Path(__file__).parents[1] / "constraints.txt"
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            python,
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]
        install = [
            *pip,
            "--no-compile",
            "-c",
            str(constraints),
        ]  # a few runs compile no more than they import
        repository = Path(scratch) / "repository"
        repository.mkdir()
        document = (Path(__file__).parents[1] / "CI.md").read_text(encoding="utf-8")
        follow(document, repository, Path(python).parent, wheel.resolve(), install)
        subprocess.run([python, "-c", TRY], check=True, cwd=scratch)
        subprocess.run(
            [str(Path(scratch) / "bin" / "auditdp"), "--version"],
            check=True,
            cwd=scratch,
        )
    print(
        f"{wheel.name}: top-level name auditdp, and CI.md's commands work with it alone"
    )


if __name__ == "__main__":
    main(sys.argv[1])
