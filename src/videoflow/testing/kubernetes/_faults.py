"""What may become of one request to the fake server."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Ending(StrEnum):
    """What becomes of a request.

    `ANSWERED`: as it should be. `LOST`: it takes effect and the connection closes without an answer.
    `UNHEARD`: the connection closes and it has no effect. `HANGS`, `HANGS_AFTER`: no answer comes until the
    server stops, without and with the effect. `BROKEN`, `BROKEN_AFTER`: 500, without and with the effect.
    `BUSY`: 429, no effect. `DENIED`: 403, no effect. `TRUNCATED`: a list ends in its middle, and says by a
    continuation that expires that there was more; any other answer is cut off in its text.
    """

    ANSWERED = "answered"
    LOST = "lost"
    UNHEARD = "unheard"
    HANGS = "hangs"
    HANGS_AFTER = "hangs after"
    BROKEN = "broken"
    BROKEN_AFTER = "broken after"
    BUSY = "busy"
    DENIED = "denied"
    TRUNCATED = "truncated"


@dataclass(frozen=True)
class Request:
    """One request.

    Attributes:
        method: Such as `GET`.
        path: Without the query.
        query: Its last value for each name.
        content_type: Of the body.
        body: As read from JSON, or None.
        client: Who asks: the user agent.
    """

    method: str
    path: str
    query: dict[str, str]
    content_type: str = ""
    body: Any = None
    client: str = ""

    @property
    def writes(self) -> bool:
        """Whether it could change anything."""
        return self.method != "GET" and not self.path.endswith("accessreviews")


@dataclass(frozen=True)
class Response:
    """One answer; `dropped` where the connection closes without one, `hangs` where it stays open."""

    status: int
    body: Any
    dropped: bool = False
    hangs: bool = False
    cut: bool = False


Decide = Callable[[Request], Ending]
