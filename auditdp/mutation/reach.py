"""Which code a mechanism runs: its own classes and functions, found, copied and traced."""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from auditdp.mechanism.protocol import as_mechanism


def components(mechanism: Any) -> list[Any]:
    """Return the mechanism and the objects that it holds, through attributes, closures, partials and containers."""
    found: dict[int, Any] = {}
    waiting = [mechanism]
    while waiting:
        item = waiting.pop()
        if id(item) in found or isinstance(item, type | np.ndarray | str):
            continue
        if isinstance(item, tuple | list | set | frozenset):
            waiting += item
        elif isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, functools.partial):
            waiting += [item.func, *item.args, *item.keywords.values()]
        elif inspect.ismethod(item):
            waiting += [item.__self__, item.__func__]
        elif isinstance(item, FunctionType):
            found[id(item)] = item
            waiting += [cell.cell_contents for cell in item.__closure__ or ()]
        elif hasattr(item, "__dict__") and not inspect.ismodule(item):
            found[id(item)] = item
            waiting += vars(item).values()
    return list(found.values())


def folders(mechanism: Any) -> set[Path]:
    """Return the folders that hold the mechanism's own code: of its classes and those of what it holds."""
    found = set()
    for owner in _owners(mechanism):
        with suppress(TypeError, OSError):  # a class of a session has no file
            found.add(Path(inspect.getfile(owner)).parent)
    return found


def _owners(mechanism: Any) -> list[Any]:
    """The classes of the mechanism and of what it holds, and functions among these, as far as they are of one package."""
    owners = [
        owner
        for part in components(mechanism)
        for owner in ([part] if isinstance(part, FunctionType) else type(part).__mro__)
    ]
    return [owner for owner in owners if _package(owner) == _package(owners[0])]


def _package(owner: Any) -> str:
    return (owner.__module__ or "").partition(".")[0]


def definitions(mechanism: Any) -> list[Any]:
    """Everything that is defined in the modules of the mechanism's folders, and in its own classes."""
    places, found, waiting = folders(mechanism), [], list(_owners(mechanism))
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and Path(file).parent in places:
            waiting += vars(module).values()
    seen = set()
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, type):
            waiting += vars(item).values()
        elif isinstance(item, FunctionType | functools._lru_cache_wrapper):
            found.append(item)
            waiting += [item.__wrapped__] if isinstance(item, FunctionType) and hasattr(item, "__wrapped__") else []
        else:  # properties, cached properties, class methods and static methods
            waiting += [
                f for name in ("fget", "func", "__func__") if isinstance(f := getattr(item, name, None), FunctionType)
            ]
    return found


def fresh(mechanism: Any) -> Any:
    """Return a deep copy of a mechanism without what its cached properties hold."""
    twin = copy.deepcopy(mechanism)
    for part in components(twin):
        for name in [n for n in vars(part) if isinstance(getattr(type(part), n, None), cached_property)]:
            del vars(part)[name]
    return twin


def reached(mechanism: Any, inputs: Sequence[Any], size: int) -> list[CodeType]:
    """Return the mechanism's own code that calls on the inputs execute, in the order in which it is first reached."""
    seen: dict[CodeType, None] = {}

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            seen.setdefault(frame.f_code)

    twin, places = as_mechanism(fresh(mechanism)), folders(mechanism)
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        for number, data in enumerate(inputs):
            twin(data, size, rng=np.random.default_rng(number))
    finally:
        sys.setprofile(before)
    own = [code for code in seen if Path(code.co_filename).parent in places]
    return [code for code in own if not code.co_filename.startswith("<frozen")]


def clear_caches(mechanism: Any) -> None:
    """Empty the caches of the mechanism's functions: they may hold what changed code computed."""
    for item in definitions(mechanism):
        if isinstance(item, functools._lru_cache_wrapper):
            item.cache_clear()
