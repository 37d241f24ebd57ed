"""Bytes that are no file of any format."""

from random import Random

DEEP = 100_000
LONG = 5_000


def oddity(random: Random) -> bytes:
    """Bytes that are no file of any format."""
    return random.choice(
        (
            lambda: b"",
            lambda: b"\n",
            lambda: b"\x00" * 100,
            lambda: bytes(random.randrange(256) for _ in range(random.randrange(1, 200))),
            lambda: b"\xff\xfe" + "halt\n".encode("utf-16-le"),
            lambda: b"{" * random.choice((1, 10, DEEP)),
            lambda: b"[" * DEEP + b"]" * DEEP,
            lambda: b'{"a":' * DEEP + b"1" + b"}" * DEEP,
            lambda: b'"' + b"a" * 1_000_000,
            lambda: b"9" * LONG,
            lambda: b"vip-program",
            lambda: b"vip-program\n",
            lambda: b"#!/bin/sh\nexit\n",
            lambda: b"\x1f\x8b\x08\x00",
            lambda: b"\x7fELF" + bytes(60),
            lambda: b"line without end " * 60_000,
        )
    )()
