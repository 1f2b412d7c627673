"""A page for each command, made of the command line's own help."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from typer.main import get_command

INDEX = "commands/index.md"
BAR = "\\|"


def pages() -> dict[str, str]:
    """Return the page of every command, and their index, as Markdown by path."""
    program = _program()
    shown = {
        name: command
        for name, command in program.commands.items()
        if not command.hidden
    }
    made = {INDEX: _index(shown)}
    top = program.context_class(program, info_name="auditdp")
    for name, command in shown.items():
        made[f"commands/{name}.md"] = _page(command, _inside(command, name, top))
    return made


def _program() -> Any:
    from auditdp.cli.common import COMMANDS, app

    for command in COMMANDS.values():
        import_module(f"auditdp.cli.{command.module}")
    return get_command(app)


def _inside(command: Any, name: str, parent: Any) -> Any:
    return command.context_class(command, info_name=name, parent=parent)


def _index(commands: dict[str, Any]) -> str:
    rows = [
        f"| [`auditdp {name}`]({name}.md) | {_first_line(command)} |"
        for name, command in sorted(commands.items())
    ]
    return "\n".join(
        ["# Commands", "", "| command | what it does |", "|---|---|", *rows, ""]
    )


def _page(command: Any, context: Any) -> str:
    parts = [f"# `{context.command_path}`", _body(command, context)]
    for name, sub in getattr(command, "commands", {}).items():
        inner = _inside(sub, name, context)
        parts += [f"## `{inner.command_path}`", _body(sub, inner)]
    return "\n\n".join(parts) + "\n"


def _body(command: Any, context: Any) -> str:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    records = [
        (p.param_type_name, p.get_help_record(context))
        for p in command.get_params(context)
    ]
    parts = [_escaped(command.help or ""), f"```text\n{usage}\n```"]
    for kind in ("argument", "option"):
        rows = [
            f"| `{names}` | {_escaped(text).replace('|', BAR)} |"
            for k, (names, text) in records
            if k == kind
        ]
        if rows:
            parts.append("\n".join([f"| {kind} | what it is |", "|---|---|", *rows]))
    return "\n\n".join(parts)


def _first_line(command: Any) -> str:
    return _escaped(command.help.partition("\n\n")[0].replace("\n", " "))


def _escaped(text: str) -> str:
    """Return help text as Markdown: ``code`` stays code, and nothing else is markup."""
    return text.replace("``", "`").replace("[", "\\[").replace("<", "&lt;")
