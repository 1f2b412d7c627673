"""Folders of old versions of libraries, one each (`make libraries`)."""

import sys
from pathlib import Path

from auditdp.errors import MissingExtraError

FOLDER = Path(sys.prefix) / "old"


def old(distribution: str, version: str) -> Path:
    """Return the folder of an old version, from where it is imported before any other.

    Raises:
        MissingExtraError: If it is not there.
    """
    folder = FOLDER / f"{distribution}-{version}"
    if not folder.is_dir():
        raise MissingExtraError(
            f"{distribution} {version} is not in {FOLDER}; `make libraries` puts it there"
        )
    sys.path.insert(0, str(folder))
    return folder
