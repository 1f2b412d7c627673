"""``auditdp init``: first audits of functions, settings, and a job for CI."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditdp.cli.common import app, given, settings, tell
from auditdp.doors import write
from auditdp.errors import ConfigurationError

if TYPE_CHECKING:
    from auditdp.cli.init.signature import Signature


class CI(StrEnum):
    """For which service a job is written."""

    github = "github"
    gitlab = "gitlab"
    none = "none"


JOBS = {CI.github: (".github/workflows/privacy.yml", "github.yml"), CI.gitlab: ("privacy.gitlab-ci.yml", "gitlab.yml")}


@app.command(short_help="Write first audits of functions of yours.")
def init(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE::FUNCTION...",
            callback=lambda values: [given(value) for value in values],
            help="Such as package/counts.py::noisy_count or ::Class.method; of a file or folder, all that draw randomness.",
        ),
    ],
    parameters: Annotated[
        list[str] | None, typer.Option("-P", help="name=VALUE: a parameter of a function without a default.")
    ] = None,
    example: Annotated[
        Path | None, typer.Option(help="A table in CSV whose columns the rows of data have; no row of it is written.")
    ] = None,
    ci: Annotated[CI, typer.Option(help="For which service a job is written.")] = CI.github,
) -> None:
    """Write first audits of functions, which are read and not run; settings; and a job for CI. Nothing is overwritten.

    The claim comes from the parameters or docstring; where they say nothing, it is a guess, and the file says so. The
    neighbours come from the annotation of the private data, and from the columns that the code names; without one the file
    has to be given two inputs first. Audits are added to a file that is there.
    """
    from auditdp.cli.init.audit_file import audit_name, audit_text, with_audits
    from auditdp.cli.init.domains import columns_of

    root = Path.cwd().resolve()
    values = dict(_parameter(text) for text in parameters or ())
    signatures, left = _signatures(targets, root, columns_of(example) if example is not None else {}, values)
    needed = {name for signature in signatures for name in signature.required}
    for name in values:
        if name not in needed:
            needs = ", ".join(sorted(needed)) or "none"
            raise ConfigurationError(f"-P {name}: no function has such a parameter without a default; there is {needs}")
    folder = Path(settings().paths[0])
    written: dict[Path, list[tuple[Signature, str]]] = {}
    for signature in signatures:
        file = folder if folder.suffix == ".py" else folder / f"audit_{signature.module.rpartition('.')[2]}.py"
        before = file.read_text(encoding="utf-8") if file.is_file() else ""
        if re.search(rf"^def {audit_name(signature)}\b", before, re.MULTILINE):
            left.append(f"{signature.called}: {file} has {audit_name(signature)} already")
        else:
            written.setdefault(file, []).append((signature, audit_text(signature, values)))
    if not written:
        raise ConfigurationError("; ".join(left) or "nothing draws randomness there; name a function: FILE::FUNCTION")
    for file, audits in written.items():
        before = file.read_text(encoding="utf-8") if file.is_file() else ""
        write(file, with_audits(before, audits))
        tell(
            f"{'added to' if before else 'wrote'} {file}: {', '.join(s.called for s, _ in audits)}; settle its comments"
        )
    for reason in left:
        tell(f"left out {reason}")
    _add_settings(root / "pyproject.toml")
    if ci is not CI.none:
        path, template = JOBS[ci]
        if Path(path).exists():
            tell(f"left {path} as it is")
        else:
            write(Path(path), _template(template))
            tell(f"wrote {path}: its first comment names what to commit; then write the wheel's SHA256 there")
    for file, audits in written.items():
        for signature in (signature for signature, _ in audits if not signature.pairs):
            tell(f"settle: pairs= in {file} needs two values of {signature.data} that differ in one person's data")
    tell("next: auditdp run --profile ci; and where it finds nothing, auditdp baseline update")


def _signatures(
    targets: Sequence[str], root: Path, columns: Mapping[str, str], values: Mapping[str, str]
) -> tuple[list[Signature], list[str]]:
    """Return the functions that are named, or found in a file or folder, and why others that were found are left out."""
    from auditdp.cli.init.finding import drawing, files_of, tree_of
    from auditdp.cli.init.signature import read_signature

    found, left = [], []
    for target in targets:
        place = root / target
        if "::" in target or not place.exists():
            found.append(read_signature(target, root, columns))
            continue
        for file in files_of(place):
            shown = file.relative_to(root).as_posix()
            for name in drawing(tree_of(file, shown)):
                try:
                    signature = read_signature(f"{shown}::{name}", root, columns)
                except ConfigurationError as error:
                    left.append(str(error))
                    continue
                lacking = [each for each in signature.required if each not in values]
                if lacking:
                    left.append(f"{shown}::{name}: it needs {', '.join(lacking)}; give -P {lacking[0]}=VALUE")
                else:
                    found.append(signature)
    return found, left


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
