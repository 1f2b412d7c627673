"""A standing adversary: random claims of random mechanisms and accountants, of which the truth is computed by brute force.

How many of the verdicts on them are wrong? ``case`` has what is judged and how, ``truth`` and ``quadrature`` what is true;
``finite``, ``others``, ``accountants`` and ``whole`` generate what is audited; ``part`` counts.
"""
