"""One audit: its declaration, its evidence, and its verdict.

Read ``declaration`` (``Audit``) first, then ``judging`` (``run_audit``) and
``gathering``. ``check`` serves notebooks and tests, and ``decorator`` audit files.
``serving`` and ``remote_audit`` are the two ends of the channel between the process of
a mechanism and the judging process. ``mutant_score`` audits broken copies of a
mechanism.
"""
