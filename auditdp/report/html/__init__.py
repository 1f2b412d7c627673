"""Reports as HTML.

``pages`` makes the files. ``cards``, ``drawings`` and ``plots`` make the parts of a
page, and ``notebook`` shows results in a notebook.
"""
