"""Graphs of video nodes in plain Python, run on one machine or many, with an honest account of every frame.

Everything a flow needs is here: `import videoflow as vf`. The nodes of the library are in `videoflow.nodes`.
Names load when they are first used, so that the import costs nothing that a flow does not need.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from videoflow.errors import (
        AcceleratorFault,
        ArgumentInvalid,
        ContractBroken,
        EmissionRefused,
        EnvironmentFault,
        FlowError,
        FlowFileError,
        FlowInvalid,
        IncompatibleProfile,
        LibraryMissing,
        MemoryShort,
        NodeFailed,
        NotYet,
        OutputUnwritable,
        RunFailed,
        RunStalled,
        SourceUnreadable,
        StaleAuthority,
        StateTooLarge,
        UnknownName,
        UnobservableState,
        UsageError,
        ValueRefused,
    )
    from videoflow.graph import (
        SKIP,
        Batch,
        ChannelRequirement,
        Consumer,
        Context,
        Flow,
        Gpu,
        Item,
        Node,
        NodeOptions,
        Out,
        Processor,
        Producer,
        Requirements,
        Resources,
        consumer,
        merge,
        processor,
        producer,
    )
    from videoflow.graph import ByTime as ByTime
    from videoflow.graph import Last as Last
    from videoflow.graph import Session as Session
    from videoflow.graph import Tumbling as Tumbling
    from videoflow.graph.report import RunReport
    from videoflow.media import Detections, Event, Frame

__all__ = [
    "SKIP",
    "AcceleratorFault",
    "ArgumentInvalid",
    "Batch",
    "ChannelRequirement",
    "Consumer",
    "Context",
    "ContractBroken",
    "Detections",
    "EmissionRefused",
    "EnvironmentFault",
    "Event",
    "Flow",
    "FlowError",
    "FlowFileError",
    "FlowInvalid",
    "Frame",
    "Gpu",
    "IncompatibleProfile",
    "Item",
    "LibraryMissing",
    "MemoryShort",
    "Node",
    "NodeFailed",
    "NodeOptions",
    "NotYet",
    "Out",
    "OutputUnwritable",
    "Processor",
    "Producer",
    "Requirements",
    "Resources",
    "RunFailed",
    "RunReport",
    "RunStalled",
    "SourceUnreadable",
    "StaleAuthority",
    "StateTooLarge",
    "UnknownName",
    "UnobservableState",
    "UsageError",
    "ValueRefused",
    "consumer",
    "merge",
    "processor",
    "producer",
]

# Named in the design and refused by the compiler until they are built; not part of the frozen list.
_LATER = ("ByTime", "Last", "Session", "Tumbling")


def __getattr__(name: str) -> object:
    if name not in __all__ and name not in _LATER:
        raise AttributeError(f"module 'videoflow' has no attribute {name!r}", name=name)
    from importlib import import_module

    for module in ("errors", "graph", "graph.report", "media"):
        found: object = getattr(import_module(f"videoflow.{module}"), name, None)
        if found is not None:
            globals()[name] = found
            return found
    raise AttributeError(f"module 'videoflow' has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
