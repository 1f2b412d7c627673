"""The table of commands has every command, with its module and its first line of help."""

from importlib import import_module

import pytest
import typer.main

from auditdp.cli.common import COMMANDS, app


def test_the_table_has_every_command_and_no_other():
    for command in COMMANDS.values():
        import_module(f"auditdp.cli.{command.module}")
    commands = typer.main.get_command(app).commands
    helps = {name: each.help.splitlines()[0] for name, each in commands.items()}
    assert helps == {name: each.help for name, each in COMMANDS.items()}


@pytest.mark.dear
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_starts_from_its_own_module(project, command):
    shown = project(command, "--help")
    assert shown.code == 0
    assert f" {command} " in shown.out.splitlines()[0]
