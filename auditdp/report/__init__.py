"""Reports: each format is a pure function from the record of a run to text.

A format is a function, and a line in ``formats``. It reads neither the clock nor the
terminal nor the user's files. So a report that is made again from a stored record is
byte for byte the same. ``formats`` chooses the function, checks the paths and reads the
last report. ``sentences``, ``guesses`` and ``facts`` have the texts that all formats
share.
"""
