"""What the nodes of generated graphs are given that outlives them, as a file or a feed would.

Used by the simulator for each incarnation. Nodes of others are left as they are.
"""

from videoflow.graph import Node
from videoflow.simulation._library import Keyed, Live, Moody, Saver, Troubled
from videoflow.simulation._record import Record

_LASTING = (Saver, Keyed, Live, Moody, Troubled)


def give(instance: Node, record: Record, name: str, *, peaceful: bool) -> None:
    """Gives a node of ours what outlives it.

    Args:
        instance: The node.
        record: Where that is kept.
        name: Of the node.
        peaceful: Nothing is wrong with its items.
    """
    if not isinstance(instance, _LASTING):
        return
    if isinstance(instance, Saver):
        instance.disk = record.disk(name)
    elif isinstance(instance, Keyed):
        instance.table = record.table(name)
    elif isinstance(instance, Live | Moody):
        instance.feed, instance.key = record.feeds, name
    if isinstance(instance, Troubled):
        instance.peaceful = peaceful
