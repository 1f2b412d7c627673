"""Old versions of libraries with known defects; each file imports one version."""
