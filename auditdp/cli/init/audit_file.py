"""The text of a first audit file for a function."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment

from auditdp.cli.init.signature import Signature
from auditdp.errors import ConfigurationError

PAIRS = (
    (r"\bbool\b", "(False, True)"),
    (r"\b(?:NDArray|ndarray|Array|array)\b", "(np.array([0.0, 1.0, 1.0]), np.array([1.0, 1.0, 1.0]))"),
    (r"\b(?:list|List|Sequence|Iterable|tuple|Tuple)\b.*\bfloat\b", "([0.0, 1.0, 1.0], [1.0, 1.0, 1.0])"),
    (r"\b(?:list|List|Sequence|Iterable|tuple|Tuple)\b", "([0, 1, 1], [1, 1, 1])"),
    (r"\bfloat\b", "(0.0, 1.0)"),
    (r"\bstr\b", '("a", "b")'),
    (r"\bint\b", "(0, 1)"),
)
"""Two neighbours for data of an annotation that matches, the first that does; without one a guess would show nothing."""


def neighbours(signature: Signature) -> str:
    """Return two neighbours as source, by the annotation of the private data; empty where that says nothing."""
    return next((pair for pattern, pair in PAIRS if re.search(pattern, signature.annotation)), "")


def audit_text(signature: Signature, given: Mapping[str, str]) -> str:
    """Return an audit file that runs as it is, or once it has neighbours; its comments say what a person has to settle.

    Args:
        signature: The function.
        given: Values, as source, of its parameters without a default.

    Raises:
        ConfigurationError: If such a parameter has no value, or a value belongs to none.
    """
    missing = [name for name in signature.required if name not in given]
    if missing:
        raise ConfigurationError(f"{signature.name} needs {', '.join(missing)}; give a value: -P {missing[0]}=VALUE")
    for name in given:
        if name not in signature.required:
            needed = ", ".join(signature.required) or "none"
            raise ConfigurationError(
                f"-P {name}: {signature.name} has no such parameter without a default; it has {needed}"
            )
    pair = neighbours(signature)
    claim = "ApproxDP(epsilon, delta)" if signature.delta else "PureDP(epsilon)"
    own = {name: value for value, name in signature.level_names.items()}
    keywords = {**{name: value for name, value in own.items() if value == "epsilon" or signature.delta}, **given}
    call = _mechanism(signature, keywords)
    template = Path(__file__).with_name("audit.py.jinja").read_text(encoding="utf-8")
    return (
        Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
        .from_string(template)
        .render(
            signature=signature,
            call=call,
            claim=claim,
            pair=pair,
            names=sorted(
                {"Audit", claim.partition("(")[0], "audit"} | ({"unseeded"} if "unseeded(" in call else set())
            ),
            epsilon=repr(1.0 if signature.epsilon is None else signature.epsilon),
            delta=repr(signature.delta) if signature.delta else "",
        )
    )


def _mechanism(signature: Signature, keywords: Mapping[str, str]) -> str:
    """Return the function as an audit takes it, with its further parameters bound."""
    bound = "".join(f", {name}={value}" for name, value in keywords.items())
    if not signature.generator:
        function = f"partial({signature.name}{bound})" if bound else signature.name
        return f"unseeded({function})"
    if signature.generator != "rng":
        size = ", size" if signature.takes_size else ""
        passed = ", size=size" if signature.takes_size else ""
        rest = f"{passed}, {signature.generator}=rng{bound}"
        return f"lambda data{size}, rng: {signature.name}(data{rest})"
    return f"partial({signature.name}{bound})" if bound else signature.name
