"""Accountants: privacy curves computed from a mechanism's parameters, each of which says what its numbers prove.

``base`` has the protocol; composition is in ``composition``, ``heterogeneous`` and ``quoted``, selection in ``top_k`` and
``top_k_laws``, noise in ``gaussian`` and ``zcdp``.
"""
