"""What a user writes, and the document it compiles to.

Used by authors of flows and nodes through `videoflow`, by the worker, the engines and the command line
directly. It refuses to run anything itself: engines are found by name.
"""

from videoflow.graph._arguments import capture, restore
from videoflow.graph._code import (
    FLOW_MODULE,
    code_reference,
    find_factory,
    instantiate,
    load_flow_file,
    resolve,
)
from videoflow.graph._compile import Compiled, compile_flow
from videoflow.graph._context import Context
from videoflow.graph._diagram import mermaid
from videoflow.graph._factory import FactoryParameter, call_factory, parameters, value_of
from videoflow.graph._flow import Flow, RunKeywords, failure_of, request_of, run_options
from videoflow.graph._folder import flow_folder, within_folder
from videoflow.graph._functions import consumer, processor, producer
from videoflow.graph._gpus import parse_condition
from videoflow.graph._invoke import Emitted, Invoker, remedy_for
from videoflow.graph._methods import Shape, shape_of
from videoflow.graph._node import Consumer, Node, Processor, Producer
from videoflow.graph._node_checks import EFFECT_KEY_REMEDY
from videoflow.graph._options import Disposition, NodeOptions
from videoflow.graph._parse import Unparsable, parse_bytes
from videoflow.graph._requirements import ChannelRequirement, Requirements, parse_requirements, stated_in
from videoflow.graph._state import DELETED, Deleted, State
from videoflow.graph._traits import has_snapshots, is_stateful
from videoflow.graph._values import (
    SKIP,
    Batch,
    ByTime,
    Gpu,
    Item,
    Last,
    Out,
    Resources,
    Session,
    Skip,
    Tumbling,
)
from videoflow.graph._wiring import Latest, Merged, Port, merge

__all__ = [
    "DELETED",
    "EFFECT_KEY_REMEDY",
    "FLOW_MODULE",
    "SKIP",
    "Batch",
    "ByTime",
    "ChannelRequirement",
    "Compiled",
    "Consumer",
    "Context",
    "Deleted",
    "Disposition",
    "Emitted",
    "FactoryParameter",
    "Flow",
    "Gpu",
    "Invoker",
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
    "RunKeywords",
    "Session",
    "Shape",
    "Skip",
    "State",
    "Tumbling",
    "Unparsable",
    "call_factory",
    "capture",
    "code_reference",
    "compile_flow",
    "consumer",
    "failure_of",
    "find_factory",
    "flow_folder",
    "has_snapshots",
    "instantiate",
    "is_stateful",
    "load_flow_file",
    "merge",
    "mermaid",
    "parameters",
    "parse_bytes",
    "parse_condition",
    "parse_requirements",
    "processor",
    "producer",
    "remedy_for",
    "request_of",
    "resolve",
    "restore",
    "run_options",
    "shape_of",
    "stated_in",
    "value_of",
    "within_folder",
]
