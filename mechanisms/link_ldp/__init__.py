"""Graph neural networks on links that every user randomises: Blink."""

from mechanisms.link_ldp.blink import LinkMessage, LinkMessages

__all__ = ["LinkMessage", "LinkMessages"]
