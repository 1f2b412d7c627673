"""``auditdp init``: first files for somebody's own repository."""
