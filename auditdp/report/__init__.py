"""Reports: each format is a pure function from the record of a run to text.

A format is one file with a ``report`` function, registered in ``formats``. Nothing here reads the clock, the terminal or the
disk, so that a report can be made again from a stored record and is byte for byte the same.
"""
