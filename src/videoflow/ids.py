"""Identities: ULIDs for things that happen once, hashes for things that must come out the same twice.

Used wherever an id is made. It refuses hidden randomness: entropy and time come in as arguments.
"""

import hashlib

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ENTROPY_BYTES = 10
_ULID_LENGTH = 26


def new_ulid(wall_seconds: float, entropy: bytes) -> str:
    """Returns a ULID of 26 characters (format: github.com/ulid/spec).

    Args:
        wall_seconds: Seconds since the Unix epoch.
        entropy: Ten random bytes.
    """
    if len(entropy) != _ENTROPY_BYTES:
        raise ValueError(f"a ULID takes {_ENTROPY_BYTES} bytes of entropy, not {len(entropy)}")
    number = (int(wall_seconds * 1000) << 80) | int.from_bytes(entropy, "big")
    return "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))


def ulid_milliseconds(text: str) -> int | None:
    """Returns when a ULID was made, in milliseconds since the Unix epoch; None for any other text.

    >>> ulid_milliseconds(new_ulid(1700000000.25, bytes(10)))
    1700000000250
    """
    if len(text) != _ULID_LENGTH or not set(text) <= set(_CROCKFORD):
        return None
    number = 0
    for digit in text:
        number = number << 5 | _CROCKFORD.index(digit)
    return number >> 80


def hash_id(*parts: str | int) -> str:
    """Returns 32 hexadecimal digits that depend on the parts, their order and their borders.

    >>> hash_id("run", "node", 7) == hash_id("run", "node", 7)
    True
    >>> hash_id("ab", "c") == hash_id("a", "bc")
    False
    """
    text = "\x1f".join(map(str, parts))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class HashedId:
    """`hash_id` of parts of which the first ones are always the same.

    Args:
        first: Those.
    """

    __slots__ = ("_first",)

    def __init__(self, *first: str | int) -> None:
        self._first = hashlib.blake2b(("\x1f".join(map(str, first)) + "\x1f").encode(), digest_size=16)

    def of(self, one: str | int, other: str | int) -> str:
        """Returns the id of the first parts and these two.

        >>> HashedId("run", "node").of("input", "0") == hash_id("run", "node", "input", 0)
        True
        """
        hashed = self._first.copy()
        hashed.update(f"{one}\x1f{other}".encode())
        return hashed.hexdigest()
