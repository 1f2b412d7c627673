"""Every mechanism that a family offers is audited."""

import inspect
import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import mechanisms

AUDITS = "\n".join(
    path.read_text(encoding="utf-8")
    for path in Path(__file__).parents[3].glob("audits/audit_*.py")
)
PARTS = {"Withhold"}
"""What is audited as a part of another mechanism."""


def test_every_mechanism_is_in_an_audit():
    families = [
        import_module(f"mechanisms.{found.name}")
        for found in iter_modules(mechanisms.__path__)
        if found.ispkg
    ]
    offered = {
        name: getattr(family, name) for family in families for name in family.__all__
    }
    called = {
        name
        for name, each in offered.items()
        if inspect.isclass(each) and "__call__" in dir(each)
    }
    own = {name for name in called - PARTS if not inspect.isabstract(offered[name])}
    assert len(own) > 50
    assert {name for name in own if not re.search(rf"\b{name}\b", AUDITS)} == set()
