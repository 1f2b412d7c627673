"""``python -m auditdp``: the command line."""

import os
import sys

if not sys.flags.safe_path and sys.path[0] in ("", os.getcwd()):
    # joblib.py in the working folder must not take the library's place.
    sys.path.append(sys.path.pop(0))

from auditdp.cli import main

if __name__ == "__main__":
    main()
