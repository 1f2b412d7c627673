"""Check a built wheel: its only top-level name is auditdp, and it imports and audits in an environment of its own."""

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


def main(folder: str) -> None:
    """Check the only wheel in a folder."""
    (wheel,) = Path(folder).glob("*.whl")
    names = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    extra = {name for name in names if name != "auditdp" and not name.endswith(".dist-info")}
    if extra or "auditdp" not in names:
        sys.exit(f"{wheel.name}: expected auditdp as the only top-level name, found {sorted(names)}")
    with tempfile.TemporaryDirectory() as scratch:
        venv.create(scratch, with_pip=True)
        python = str(Path(scratch) / "bin" / "python")
        constraints = Path(__file__).parents[1] / "constraints.txt"
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", str(constraints)]
        subprocess.run([*install, str(wheel)], check=True)
        subprocess.run([python, "-c", TRY], check=True, cwd=scratch)
        subprocess.run([str(Path(scratch) / "bin" / "auditdp"), "--version"], check=True, cwd=scratch)
    print(f"{wheel.name}: top-level name auditdp, imports and runs on its own")


if __name__ == "__main__":
    main(sys.argv[1])
