"""What nodes and hops of a flow cost, as a profiled run has measured it: the facts behind automatic fusion.

Read from disk by the engines, handed to the planner among its facts, kept in the plan. It refuses to guess:
what was not measured is not there.
"""

import msgspec


class NodeCost(msgspec.Struct, frozen=True, kw_only=True):
    """What one node costs, per item of the flow's largest source.

    Attributes:
        seconds: In its code.
        hops: Port that it reads → what handing over from there takes, at both ends together, in seconds of
            a processor. A hop that was never there was never measured.
    """

    seconds: float
    hops: dict[str, float] = {}


class FlowCosts(msgspec.Struct, frozen=True, kw_only=True):
    """What a profiled run of a flow has measured, of the nodes that are still as they were.

    Attributes:
        run_id: The run.
        nodes: By node.
    """

    run_id: str
    nodes: dict[str, NodeCost] = {}
