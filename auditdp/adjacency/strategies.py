"""What is used of Hypothesis to make strategies; it is imported when one is made, since whoever lists pairs needs none."""

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
    if name.startswith("_"):  # what the import system asks for
        raise AttributeError(name)
    import hypothesis

    found = globals()[name] = getattr(
        hypothesis if name in ("assume", "reject") else hypothesis.strategies, name
    )
    return found
