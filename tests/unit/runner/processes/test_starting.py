"""What the process that audits are forked from imports before there is any."""

import pytest

from auditdp.runner.processes import starting


@pytest.fixture
def needed(monkeypatch):
    asked = []
    monkeypatch.setattr(starting, "start_forkserver", asked.append)
    return asked


@pytest.mark.parametrize("files", [1, starting.MANY - 1, starting.MANY])
def test_what_most_audits_need_is_imported_once_for_many_files(tmp_path, needed, files):
    for k in range(files):
        (tmp_path / f"audit_{k}.py").touch()
    (tmp_path / "counts.py").touch()
    starting.start_early([str(tmp_path)])
    starting.start_early([f"{tmp_path / 'audit_0.py'}::count"])
    many = files == starting.MANY
    assert needed == [(*starting.AUDITING, *starting.NEEDED) if many else starting.AUDITING, starting.AUDITING]


def test_what_goes_wrong_early_is_said_where_the_process_is_needed(monkeypatch):
    def fails(needed):
        raise FileNotFoundError("no folder for temporary files")

    monkeypatch.setattr(starting, "start_forkserver", fails)
    starting.start_early(["no/such/folder"])
