"""Old versions of libraries with defects that are known: does the tool find them? Each file imports one version."""
