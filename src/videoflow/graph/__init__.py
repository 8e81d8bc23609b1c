"""What a user writes, and the document it compiles to.

Used by authors of flows and nodes through `videoflow`, by the worker, the engines and the command line
directly. It refuses to run anything itself: engines are found by name.
"""

from videoflow.graph._arguments import capture, restore
from videoflow.graph._context import Context
from videoflow.graph._functions import consumer, processor, producer
from videoflow.graph._node import Consumer, Node, Processor, Producer
from videoflow.graph._options import NodeOptions
from videoflow.graph._state import DELETED, Deleted, State
from videoflow.graph._values import (
    SKIP,
    Batch,
    ByTime,
    Gpu,
    Item,
    Last,
    Out,
    Requirements,
    Resources,
    Session,
    Skip,
    Tumbling,
)
from videoflow.graph._wiring import Latest, Merged, Port, merge

__all__ = [
    "DELETED",
    "SKIP",
    "Batch",
    "ByTime",
    "Consumer",
    "Context",
    "Deleted",
    "Gpu",
    "Item",
    "Last",
    "Latest",
    "Merged",
    "Node",
    "NodeOptions",
    "Out",
    "Port",
    "Processor",
    "Producer",
    "Requirements",
    "Resources",
    "Session",
    "Skip",
    "State",
    "Tumbling",
    "capture",
    "consumer",
    "merge",
    "processor",
    "producer",
    "restore",
]
