"""Messages from a process that may send anything: none of them is long, and half a message makes nobody wait."""

from __future__ import annotations

import os
import struct
from multiprocessing.connection import Connection

from auditdp.doors import MOST_MESSAGE

HEADER = struct.Struct("!i")
"""The number of bytes of a message, as ``multiprocessing`` sends it before the message."""


class Inbox:
    """The end of a pipe at which messages arrive.

    ``Connection.recv_bytes`` waits for the rest of a message that was begun, and the process that began it may never send
    that. Here a message is put together from the bytes that are there, so that time limits reach whoever reads.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._content = bytearray()

    def take(self) -> bytes | None:
        """Return the next message; None while it is not whole.

        Raises:
            EOFError: If there are no more.
            OSError: If the pipe is broken.
            ValueError: If the message has more than ``MOST_MESSAGE`` bytes.
        """
        whole = HEADER.size
        while True:
            if len(self._content) >= HEADER.size:
                (size,) = HEADER.unpack_from(self._content)
                if not 0 <= size <= MOST_MESSAGE:
                    raise ValueError(f"a message of more than {MOST_MESSAGE:,} bytes")
                whole = HEADER.size + size
                if len(self._content) == whole:
                    message = bytes(self._content[HEADER.size :])
                    self._content.clear()
                    return message
            if not self._connection.poll():
                return None
            found = os.read(self._connection.fileno(), whole - len(self._content))
            if not found:
                raise EOFError
            self._content += found
