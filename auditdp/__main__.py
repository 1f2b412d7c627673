"""``python -m auditdp``: the command line."""

import os
import sys

if not sys.flags.safe_path and sys.path[0] in ("", os.getcwd()):
    # A file in the working folder, such as joblib.py, must not replace a library.
    sys.path.append(sys.path.pop(0))

from auditdp.cli import main

if __name__ == "__main__":
    main()
