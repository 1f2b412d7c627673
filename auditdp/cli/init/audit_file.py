"""The text of audits of functions: a file of them, or what is added to one that is there."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

from jinja2 import Environment

from auditdp.cli.init.signature import Signature
from auditdp.errors import ConfigurationError
from auditdp.runner.sources.reach import bound_by


def audit_name(signature: Signature) -> str:
    """Return the name of the function that declares the audit of a function."""
    return f"{signature.called}_is_private"


def audit_text(signature: Signature, given: Mapping[str, str]) -> str:
    """Return an audit that runs as it is, or once it has neighbours; its comments say what a person has to settle.

    Args:
        signature: The function.
        given: Values, as source, of its parameters without a default.

    Raises:
        ConfigurationError: If such a parameter has no value, or a value belongs to none.
    """
    missing = [name for name in signature.required if name not in given]
    if missing:
        raise ConfigurationError(f"{signature.called} needs {', '.join(missing)}; give a value: -P {missing[0]}=VALUE")
    claim = "ApproxDP(epsilon, delta)" if signature.delta else "PureDP(epsilon)"
    own = {value: name for name, value in signature.level_names.items() if name == "epsilon" or signature.delta}
    template = Path(__file__).with_name("audit.py.jinja").read_text(encoding="utf-8")
    decorator = f'\n\n@audit(source="{signature.says or "TODO: where is this claimed?"}")'
    return decorator + Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True).from_string(
        template
    ).render(
        signature=signature,
        name=audit_name(signature),
        made=_mechanism(signature, own | {name: given[name] for name in signature.required}),
        claim=claim,
        seeded=bool(signature.generator),
        epsilon=repr(1.0 if signature.epsilon is None else signature.epsilon),
        delta=repr(signature.delta) if signature.delta else "",
    ).removeprefix("\n")


def with_audits(before: str, audits: Iterable[tuple[Signature, str]]) -> str:
    """Return a file of audits with more of them at its end, and the imports that they need after those that it has.

    Args:
        before: The file; empty where there is none.
        audits: The functions, with the texts of their audits.
    """
    audits = list(audits)
    text = "".join(text for _, text in audits)
    module = audits[0][0].module
    before = before or f'"""Audits of what {module} releases. Made by `auditdp init`; yours to edit."""\n'
    tree = ast.parse(before)
    bound = {name for statement in tree.body for name in bound_by(statement)}
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    first = tree.body[:1] if not imports else []
    line = max((node.end_lineno or 0 for node in [*first, *imports]), default=0)
    lines = before.splitlines()
    new = _imports(text, [signature for signature, _ in audits], bound)
    return "\n".join([*lines[:line], *([""] if not imports else []), *new, *lines[line:]]).rstrip("\n") + "\n" + text


def _imports(text: str, signatures: Iterable[Signature], bound: set[str]) -> list[str]:
    """Return the lines of imports that audits need and a file lacks."""
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)} - bound
    own: dict[str, set[str]] = {}
    for signature in signatures:
        own.setdefault(signature.module, set()).update({signature.name, *signature.classes})
    groups = [
        ["from functools import partial"] * ("partial" in used),
        ["import numpy as np"] * ("np" in used) + ["from hypothesis import strategies as st"] * ("st" in used),
        [_from("auditdp", used & {"ApproxDP", "Audit", "PureDP", "Rows", "audit", "unseeded", "without_noise"})],
        [_from(module, names & used) for module, names in own.items()],
    ]
    found = [[line for line in group if line] for group in groups]
    return [line for group in found if group for line in (*group, "")][:-1]


def _from(module: str, names: set[str]) -> str:
    return f"from {module} import {', '.join(sorted(names, key=lambda name: (name.islower(), name)))}" if names else ""


def _mechanism(signature: Signature, values: Mapping[str, str]) -> str:
    """Return the statement that makes a mechanism of the function, with its further parameters bound."""
    function = signature.name
    if signature.method:
        made = ", ".join(f"{name}={value}" for name, value in values.items() if name in signature.made_with)
        function = f"{signature.name}({made}).{signature.method}"
    bound = "".join(f", {name}={value}" for name, value in values.items() if name not in signature.made_with)
    if not signature.generator:
        return f"mechanism = unseeded({f'partial({function}{bound})' if bound else function})"
    if signature.generator != "rng":
        size = ", size" if signature.takes_size else ""
        passed = ", size=size" if signature.takes_size else ""
        returned = f"{function}(data{passed}, {signature.generator}=rng{bound})"
        return f"def mechanism(data{size}, rng):\n        return {returned}\n"
    return f"mechanism = partial({function}{bound})" if bound else f"mechanism = {function}"
