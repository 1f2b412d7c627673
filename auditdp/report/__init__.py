"""Reports: each format is a pure function from the record of a run to text.

A format is a function in a file of its own, and a line in ``formats``. It reads neither
the clock nor the terminal nor the disk, so that a report can be made again from a
stored record and is byte for byte the same; ``formats`` does what is left.
"""
