"""Accountants: privacy curves computed from a mechanism's parameters, each of which says what its numbers prove.

``base`` has the protocol, ``description`` what a curve is of. Composition is in ``composition``, ``heterogeneous`` and
``quoted``, selection in ``top_k``, noise in ``gaussian`` and ``zcdp``, samples of the data in ``subsampling``, trainings in
``dp_sgd``, ``opacus_sgd``, ``fixed_size``, ``shuffled`` and ``node_level``, whose arithmetic is in ``loss_distributions``,
``convolution`` and ``normal``. ``cross_check`` holds a claim against all that apply, ``solve`` finds the noise for a target.
"""
