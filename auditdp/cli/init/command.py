"""``auditdp init``: a first audit file for a function, settings, and a job for CI."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from auditdp.cli.common import app, given, settings, tell
from auditdp.doors import write
from auditdp.errors import ConfigurationError


class CI(StrEnum):
    """For which service a job is written."""

    github = "github"
    gitlab = "gitlab"
    none = "none"


JOBS = {CI.github: (".github/workflows/privacy.yml", "github.yml"), CI.gitlab: ("privacy.gitlab-ci.yml", "gitlab.yml")}


@app.command(short_help="Write a first audit of a function of yours.")
def init(
    target: Annotated[
        str, typer.Argument(metavar="FILE::FUNCTION", callback=given, help="Such as package/counts.py::noisy_count.")
    ],
    parameters: Annotated[
        list[str] | None, typer.Option("-P", help="name=VALUE: a parameter of the function without a default.")
    ] = None,
    ci: Annotated[CI, typer.Option(help="For which service a job is written.")] = CI.github,
) -> None:
    """Write a first audit of a function, which is read and not run; settings; and a job for CI. Nothing is overwritten.

    The claim comes from the function's parameters or docstring; where they say nothing, it is a guess, and the file says so.
    The neighbours come from the annotation of the private data; without one the file has to be given two inputs first.
    """
    from auditdp.cli.init.audit_file import audit_text, neighbours
    from auditdp.cli.init.signature import read_signature

    root = Path.cwd().resolve()
    signature = read_signature(target, root)
    values = dict(_parameter(text) for text in parameters or ())
    file = Path(settings().paths[0]) / f"audit_{signature.module.rpartition('.')[2]}.py"
    if file.suffix != ".py" or file.exists():
        raise ConfigurationError(
            f"{file} is there already; add the audit to it by hand: auditdp show has what it needs"
        )
    write(file, audit_text(signature, values))
    tell(f"wrote {file}: read it, and settle its comments")
    _add_settings(root / "pyproject.toml")
    if ci is not CI.none:
        path, template = JOBS[ci]
        if Path(path).exists():
            tell(f"left {path} as it is")
        else:
            write(Path(path), _template(template))
            tell(f"wrote {path}: say there where auditdp is installed from")
    if not neighbours(signature):
        tell(f"settle: pairs= in {file} needs two values of {signature.data} that differ in one person's data")
    tell("next: auditdp run --profile ci; and where it finds nothing, auditdp baseline update")


def _parameter(text: str) -> tuple[str, str]:
    import ast

    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ConfigurationError(f"-P {text}: expected name=VALUE")
    try:
        ast.literal_eval(value)
    except (ValueError, SyntaxError):
        raise ConfigurationError(f"-P {text}: expected a value as Python writes it, such as 1.0 or 'a'") from None
    return name, value


def _add_settings(path: Path) -> None:
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if "[tool.auditdp" in text:
        tell(f"left the settings in {path.name} as they are")
        return
    write(path, (text.rstrip("\n") + "\n\n" if text.strip() else "") + _template("settings.toml"))
    tell(f"wrote [tool.auditdp] to {path.name}")


def _template(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
