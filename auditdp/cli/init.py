"""``auditdp init``: write first audits of functions, settings, and a job for CI.

``audit_text`` makes the source of one audit, and ``with_audits`` adds audits to a file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from jinja2 import Environment

from auditdp.cli.common import app, tell
from auditdp.cli.init_signature import Signature
from auditdp.cli.project import given, settings
from auditdp.errors import ConfigurationError
from auditdp.files import write
from auditdp.runner.imports import bound_by

TEMPLATES = Path(__file__).with_name("templates")


class CI(StrEnum):
    """Services for which a CI job can be written."""

    github = "github"
    gitlab = "gitlab"
    none = "none"


JOBS = {
    CI.github: (".github/workflows/privacy.yml", "github.yml"),
    CI.gitlab: ("privacy.gitlab-ci.yml", "gitlab.yml"),
}


@app.command()
def init(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE::FUNCTION...",
            callback=lambda values: [given(value) for value in values],
            help=(
                "Such as package/counts.py::noisy_count or ::Class.method; of a file "
                "or folder, all that draw randomness."
            ),
        ),
    ],
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "-P", help="name=VALUE: a parameter of a function without a default."
        ),
    ] = None,
    example: Annotated[
        Path | None,
        typer.Option(
            help="A table in CSV whose columns the rows of data have; no row of it is written."
        ),
    ] = None,
    ci: Annotated[
        CI, typer.Option(help="For which service a job is written.")
    ] = CI.github,
) -> None:
    """Write first audits of your functions.

    Settings and a job for CI are written, too, and nothing is overwritten.

    The functions are read, and not run. The claim comes from parameters or the
    docstring; otherwise it is a guess, and the file states so. The neighbours come from
    the annotation of the private data and from the columns in the code; otherwise the
    file needs two inputs from you first. Audits are added to an existing file.
    """
    from auditdp.cli.init_domains import columns_of

    root = Path.cwd().resolve()
    values = dict(_parameter(text) for text in parameters or ())
    signatures, left = _signatures(
        targets, root, columns_of(example) if example is not None else {}, values
    )
    needed = {name for signature in signatures for name in signature.required}
    for name in values:
        if name not in needed:
            needs = ", ".join(sorted(needed)) or "none"
            raise ConfigurationError(
                f"-P {name}: no function has such a parameter without a default; there is {needs}"
            )
    folder = Path(settings().paths[0])
    # All audits are made before the first file is written, since making one may fail.
    written: dict[Path, list[tuple[Signature, str]]] = {}
    before: dict[Path, str] = {}
    for signature in signatures:
        file = (
            folder
            if folder.suffix == ".py"
            else folder / f"audit_{signature.module.rpartition('.')[2]}.py"
        )
        if file not in before:
            before[file] = _text_of(file)
        if re.search(rf"^def {audit_name(signature)}\b", before[file], re.MULTILINE):
            left.append(
                f"{signature.called}: {file} has {audit_name(signature)} already"
            )
        else:
            written.setdefault(file, []).append(
                (signature, audit_text(signature, values))
            )
    if not written:
        raise ConfigurationError(
            "; ".join(left)
            or "nothing draws randomness there; name a function: FILE::FUNCTION"
        )
    texts = {
        file: with_audits(before[file], audits) for file, audits in written.items()
    }
    for file, audits in written.items():
        done = "added to" if before[file] else "wrote"
        write(file, texts[file])
        tell(
            f"{done} {file}: "
            f"{', '.join(s.called for s, _ in audits)}; answer the questions in its "
            "comments"
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
            tell(
                f"wrote {path}: its first comment names what to commit; then write the wheel's SHA256 there"
            )
    for file, audits in written.items():
        for signature in (signature for signature, _ in audits if not signature.pairs):
            tell(
                f"to do: pairs= in {file} needs two values of {signature.data} that "
                "differ in one person's data"
            )
    tell(
        "next: auditdp run --profile ci; and if it finds nothing, auditdp baseline update"
    )


def _signatures(
    targets: Sequence[str],
    root: Path,
    columns: Mapping[str, str],
    values: Mapping[str, str],
) -> tuple[list[Signature], list[str]]:
    """Return the signatures of functions, and sentences about omitted functions.

    Args:
        targets: Functions, files or folders. Of files and folders, all usable functions
            that draw randomness are taken.
        root: The folder from which modules are imported.
        columns: Strategies, as source, by column; empty to derive them from the code.
        values: The values of ``-P``, as source, by parameter.

    Raises:
        ConfigurationError: If a named function cannot be read, or a file is not Python.
    """
    from auditdp.cli.init_discovery import drawing, files_of, tree_of
    from auditdp.cli.init_signature import read_signature

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
                    left.append(
                        f"{shown}::{name}: it needs {', '.join(lacking)}; give -P {lacking[0]}=VALUE"
                    )
                else:
                    found.append(signature)
    return found, left


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ConfigurationError(f"-P {text}: expected name=VALUE")
    try:
        ast.literal_eval(value)
    except (ValueError, SyntaxError):
        raise ConfigurationError(
            f"-P {text}: expected a value as Python writes it, such as 1.0 or 'a'"
        ) from None
    return name, value


def _add_settings(path: Path) -> None:
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if "[tool.auditdp" in text:
        tell(f"left the settings in {path.name} as they are")
        return
    write(
        path,
        (text.rstrip("\n") + "\n\n" if text.strip() else "")
        + _template("settings.toml"),
    )
    tell(f"wrote [tool.auditdp] to {path.name}")


def _text_of(file: Path) -> str:
    """Return the text of a file of audits, or "" if there is no such file.

    Raises:
        ConfigurationError: If audits cannot be added to it, since it is not Python in
            UTF-8.
    """
    if not file.is_file():
        return ""
    try:
        text = file.read_text(encoding="utf-8")
        ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise ConfigurationError(
            f"{file}: not Python in UTF-8: {error}; correct it, or move it away"
        ) from error
    return text


def _template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def audit_name(signature: Signature) -> str:
    """Return the name of the function that declares the audit of a function."""
    return f"{signature.called}_is_private"


def audit_text(signature: Signature, given: Mapping[str, str]) -> str:
    """Return the source of an audit; its comments name the open decisions.

    Args:
        signature: The function.
        given: Values, as source, of its parameters without a default.

    Raises:
        ConfigurationError: If such a parameter has no value.
    """
    missing = [name for name in signature.required if name not in given]
    if missing:
        raise ConfigurationError(
            f"{signature.called} needs {', '.join(missing)}; give a value: -P {missing[0]}=VALUE"
        )
    claim = "ApproxDP(epsilon, delta)" if signature.delta else "PureDP(epsilon)"
    own = {
        value: name
        for name, value in signature.level_names.items()
        if name == "epsilon" or signature.delta
    }
    template = (TEMPLATES / "audit.py.jinja").read_text(encoding="utf-8")
    decorator = (
        f'\n\n@audit(source="{signature.says or "TODO: where is this claimed?"}")'
    )
    return decorator + Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    ).from_string(template).render(
        signature=signature,
        name=audit_name(signature),
        made=_mechanism(
            signature, own | {name: given[name] for name in signature.required}
        ),
        claim=claim,
        seeded=bool(signature.generator),
        epsilon=repr(1.0 if signature.epsilon is None else signature.epsilon),
        delta=repr(signature.delta) if signature.delta else "",
    ).removeprefix("\n")


def with_audits(before: str, audits: Iterable[tuple[Signature, str]]) -> str:
    """Return the text of a file of audits with more audits and their imports.

    Args:
        before: The text of the file so far; empty for a new file.
        audits: The functions of one module, with the source of their audits.
    """
    audits = list(audits)
    text = "".join(text for _, text in audits)
    module = audits[0][0].module
    before = (
        before
        or f'"""Audits of what {module} releases. Made by `auditdp init`; yours to edit."""\n'
    )
    tree = ast.parse(before)
    bound = {name for statement in tree.body for name in bound_by(statement)}
    imports = [
        node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    first = tree.body[:1] if not imports else []
    line = max((node.end_lineno or 0 for node in [*first, *imports]), default=0)
    lines = before.splitlines()
    new = _imports(text, [signature for signature, _ in audits], bound)
    return (
        "\n".join(
            [*lines[:line], *([""] if not imports else []), *new, *lines[line:]]
        ).rstrip("\n")
        + "\n"
        + text
    )


def _imports(text: str, signatures: Iterable[Signature], bound: set[str]) -> list[str]:
    """Return the import statements that a file lacks for new audits, line by line.

    Args:
        text: The source of the new audits.
        signatures: The audited functions.
        bound: Names that the file binds already.
    """
    used = {
        node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)
    } - bound
    own: dict[str, set[str]] = {}
    for signature in signatures:
        own.setdefault(signature.module, set()).update(
            {signature.name, *signature.classes}
        )
    groups = [
        ["from functools import partial"] * ("partial" in used),
        ["import numpy as np"] * ("np" in used)
        + ["from hypothesis import strategies as st"] * ("st" in used),
        [
            _from(
                "auditdp",
                used
                & {
                    "ApproxDP",
                    "Audit",
                    "PureDP",
                    "Rows",
                    "audit",
                    "unseeded",
                    "without_noise",
                },
            )
        ],
        [_from(module, names & used) for module, names in own.items()],
    ]
    found = [[line for line in group if line] for group in groups]
    return [line for group in found if group for line in (*group, "")][:-1]


def _from(module: str, names: set[str]) -> str:
    return (
        f"from {module} import {', '.join(sorted(names, key=lambda name: (name.islower(), name)))}"
        if names
        else ""
    )


def _mechanism(signature: Signature, values: Mapping[str, str]) -> str:
    """Return the statement that defines ``mechanism``, as source.

    Args:
        signature: The function or method.
        values: Values of its parameters, as source, by name; also of the parameters of
            its class's constructor.
    """
    function = signature.name
    if signature.method:
        made = ", ".join(
            f"{name}={value}"
            for name, value in values.items()
            if name in signature.made_with
        )
        function = f"{signature.name}({made}).{signature.method}"
    bound = "".join(
        f", {name}={value}"
        for name, value in values.items()
        if name not in signature.made_with
    )
    if not signature.generator:
        return f"mechanism = unseeded({f'partial({function}{bound})' if bound else function})"
    if signature.generator != "rng":
        size = ", size" if signature.takes_size else ""
        passed = ", size=size" if signature.takes_size else ""
        returned = f"{function}(data{passed}, {signature.generator}=rng{bound})"
        return f"def mechanism(data{size}, rng):\n        return {returned}\n"
    return (
        f"mechanism = partial({function}{bound})"
        if bound
        else f"mechanism = {function}"
    )
