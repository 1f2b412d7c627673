"""Commands that compute without running a mechanism: ``account`` and ``bounds``."""
