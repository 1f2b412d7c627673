"""Audits of libraries of differential privacy, at their own claims (`make libraries`).

Each ``audit_*.py`` is about one library, or one of its parts. The versions are those of the extra ``libraries``; old
versions whose defects are known are in ``old/``.
"""
