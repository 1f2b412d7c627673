"""All tests but those of experiments, which state it themselves, need torch."""

import pytest


class NeedsTorch(pytest.Module):
    """A module of tests that is imported where torch is there, and skipped with the reason elsewhere."""

    def collect(self):
        for package in ("torch", "torch_geometric"):
            pytest.importorskip(package)
        return super().collect()


def pytest_pycollect_makemodule(module_path, parent):
    return (
        None
        if module_path.parent.name == "experiments"
        else NeedsTorch.from_parent(parent, path=module_path)
    )
