"""``auditdp config show``: the settings that a command in this folder would have, and where each comes from."""

from __future__ import annotations

import json

import typer

from auditdp.cli.common import Profile, app, settings, tell
from auditdp.config import KINDS

config_app = typer.Typer(no_args_is_help=True, help="Show the settings, and where each comes from.")
app.add_typer(config_app, name="config")


@config_app.callback()
def _group() -> None:
    """Show the settings, and where each comes from: [tool.auditdp], its profiles, the environment."""


@config_app.command(short_help="Show every setting, with where its value comes from.")
def show(profile: Profile = "") -> None:
    """Show every setting as a line of TOML, with where its value comes from; options of a command are above them all."""
    found = settings(profile)
    shown = {name: _toml(getattr(found, name)) for name in KINDS}
    width = max(len(f"{name} = {value}") for name, value in shown.items())
    tell(f"# project folder: {found.folder}" + (f", profile {found.profile}" if found.profile else ""))
    for name, value in shown.items():
        source = found.sources[name]
        line = f"{name} = {value}"
        tell(f"{line if value else f'# {name}: none':<{width}}  # {source}")


def _toml(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple):
        return json.dumps(list(value), ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else repr(value)
