"""The functions and classes of Hypothesis for strategies, imported on first use.

Hypothesis is slow to import, and a program that only lists pairs does not need it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypothesis import assume as assume
    from hypothesis import reject as reject
    from hypothesis.strategies import DrawFn as DrawFn
    from hypothesis.strategies import SearchStrategy as SearchStrategy
    from hypothesis.strategies import booleans as booleans
    from hypothesis.strategies import builds as builds
    from hypothesis.strategies import composite as composite
    from hypothesis.strategies import fixed_dictionaries as fixed_dictionaries
    from hypothesis.strategies import floats as floats
    from hypothesis.strategies import integers as integers
    from hypothesis.strategies import lists as lists
    from hypothesis.strategies import nothing as nothing
    from hypothesis.strategies import one_of as one_of
    from hypothesis.strategies import sampled_from as sampled_from
    from hypothesis.strategies import tuples as tuples


def __getattr__(name: str) -> Any:
    # The import system requests names such as __path__, which must not load Hypothesis.
    if name.startswith("_"):
        raise AttributeError(name)
    import hypothesis

    home: Any = hypothesis.strategies
    if name in ("assume", "reject"):
        home = hypothesis
    member = globals()[name] = getattr(home, name)
    return member
