"""What a notebook shows of a trace: its printed form."""

from __future__ import annotations


class Printed:
    """Shows what ``str`` returns in a notebook, where texts of the caller's code are escaped."""

    def _repr_html_(self) -> str:
        from auditdp.report.html.notebook import printed

        return printed(str(self))

    def _repr_markdown_(self) -> str:
        from auditdp.report.html.notebook import printed_markdown

        return printed_markdown(str(self))
