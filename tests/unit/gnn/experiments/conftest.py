"""The command line in this process, with the tiny experiments."""

import sys

import pytest

from gnn.experiments.cli import main
from tests.unit.gnn.experiments.toy import CATALOGUE


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """Run the command line in an empty folder: (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AUDITDP_DATA", raising=False)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["experiments", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main(CATALOGUE)

        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out, printed.err

    return run
