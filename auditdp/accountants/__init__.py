"""Accountants: privacy curves computed from a mechanism's parameters, each of which says what its numbers prove.

``accountant`` has the protocol, and ``description`` what a curve is of. Then there is a file for each family; compositions
and trainings by DP-SGD have a room of their own. ``cross_check`` holds a claim against all that apply, ``root_finding``
finds the noise for a target.
"""
