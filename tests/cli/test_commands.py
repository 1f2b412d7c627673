"""The table of commands has every command, with the module that it starts from."""

from importlib import import_module

import pytest
import typer.main

from auditdp.cli.common import COMMANDS, app


def test_the_table_has_every_command_and_no_other():
    for command in COMMANDS.values():
        import_module(f"auditdp.cli.{command.module}")
    assert sorted(typer.main.get_command(app).commands) == sorted(COMMANDS)


@pytest.mark.dear
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_starts_from_its_own_module(project, command):
    shown = project(command, "--help")
    assert shown.code == 0
    assert f" {command} " in shown.out.splitlines()[0]
