"""MIG geometry of one claim's hosts: stamp and taint, layouts asked for, originals restored.

The stamp and the taint are written in one patch under the version that was read. A layout is asked for under
a name of this claim, host and epoch, and the state that the MIG manager told before is taken away in the same
patch: whatever it says later, it says of ours. The label is no lock; the taint keeps pods out.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from videoflow.adapters.kubernetes import CONFIG_MAPS, NODES, Object, Refused
from videoflow.backends.allocation.lifecycle import Taken
from videoflow.deploy.allocation_kubernetes._hosts import (
    gpu_resources,
    labels_of,
    owner_of,
    resource_of,
    taints_of,
)
from videoflow.deploy.allocation_kubernetes._mig_config import (
    Cards,
    NoPlace,
    cards_under,
    totals,
    with_entry,
    without_entries,
)
from videoflow.deploy.allocation_kubernetes._records import ClaimRecord, Journal, Original
from videoflow.deploy.allocation_kubernetes._session import Session
from videoflow.deploy.allocation_kubernetes._settings import (
    FENCE,
    GPU,
    MIG_CONFIG,
    MIG_PREFIX,
    MIG_STATE,
    OWNER,
    TAINT,
)
from videoflow.deploy.kubernetes_records import version_of

_CONFIG = "config.yaml"
_BACK = "back"
Operations = list[Mapping[str, Any]]


class Geometry:
    """What a claim does to nodes; its methods raise what `Session.change` and the journal raise."""

    def __init__(self, session: Session, journal: Journal) -> None:
        self._session = session
        self._journal = journal

    @property
    def _record(self) -> ClaimRecord:
        return self._journal.record

    def stamp(self, name: str) -> None:
        """Writes the claim's stamp and its taint on a node; raises Taken."""

        def write(node: Object | None) -> Object | Refused | None:
            if node is None:
                raise Taken(f"there is no host {name}")
            owner = owner_of(node)
            if owner and not self._is_ours(owner):
                raise Taken(f"{name} is owned by {owner}")
            if owner == self._record.stamp and any(taint["key"] == TAINT for taint in taints_of(node)):
                return None
            taint = {"key": TAINT, "value": self._record.claim_id, "effect": "NoSchedule"}
            taints = [*(one for one in taints_of(node) if one["key"] != TAINT), taint]
            return self._patch(
                node,
                [*_annotated(node, OWNER, self._record.stamp), _put("/spec/taints", taints)],
            )

        self._change(name, write)

    def original(self, node: Object, cards: Cards) -> Original:
        """Returns what is to be restored on a node."""
        entry = labels_of(node).get(MIG_CONFIG)
        return Original(None if entry is None or self._is_mine(node, entry) else entry, cards)

    def cut(self, name: str) -> str:
        """Asks for the layout of a host; returns why that cannot be, or nothing. Raises Taken."""
        entry = entry_of(self._record, name)
        if failed := self._configure(entry, self._record.geometry[name]):
            return failed

        def write(node: Object | None) -> Object | Refused | None:
            if node is None or owner_of(node) != self._record.stamp:
                raise Taken(f"{name} went to somebody else")
            label = labels_of(node).get(MIG_CONFIG)
            if label == entry:
                return None
            if label != self._record.originals[name].entry and not self._is_mine(node, label or ""):
                raise Taken(f"somebody else asked {name} for {label}")
            return self._patch(node, _asked(node, entry))

        self._change(name, write)
        return ""

    def restore(self, name: str) -> tuple[str, ...]:
        """Asks for what a host was before; returns what is not restored yet."""
        original = self._record.originals[name]
        missing = tuple(f"{name}#{ordinal}" for ordinal in self._record.recut[name])
        node = self._session.node(name)
        if node is None or not self._is_ours(owner_of(node)):
            return ()
        label = labels_of(node).get(MIG_CONFIG, "")
        if self._is_mine(node, label):
            target = self._target(name, original)
            if target is None:
                return missing
            if label != target:
                self._ask_back(name, target)
                node = self._session.node(name)
        if node is None or labels_of(node).get(MIG_CONFIG) is None:
            return ()
        return () if agrees(node, original.cards) else missing

    def unstamp(self, name: str) -> None:
        """Takes stamp and taint from a node, and leaves a mark: whoever read before writes in vain."""

        def write(node: Object | None) -> Object | Refused | None:
            if node is None:
                return None
            owner, annotations = owner_of(node), node["metadata"].get("annotations") or {}
            if owner and not self._is_ours(owner):
                return None
            if not owner and annotations.get(FENCE) == self._record.stamp:
                return None
            operations = _annotated(node, FENCE, self._record.stamp)
            if owner:
                operations.append({"op": "remove", "path": _pointer("annotations", OWNER)})
                kept = [taint for taint in taints_of(node) if taint["key"] != TAINT]
                operations.append(_put("/spec/taints", kept))
                if self._is_mine(node, labels_of(node).get(MIG_CONFIG, "")):
                    operations += [
                        {"op": "remove", "path": _pointer("labels", label)}
                        for label in (MIG_CONFIG, MIG_STATE)
                        if label in labels_of(node)
                    ]
            return self._patch(node, operations)

        self._change(name, write)

    def forget(self) -> None:
        """Removes the claim's entries from the configuration, and marks it as `unstamp` does."""

        def write(found: Object | None) -> Object | Refused | None:
            if found is None:
                return None
            text = (found.get("data") or {}).get(_CONFIG, "")
            changed = without_entries(text, _prefix(self._record))
            annotations = found["metadata"].get("annotations") or {}
            if changed == text and annotations.get(FENCE) == self._record.stamp:
                return None
            metadata = {**found["metadata"], "annotations": {**annotations, FENCE: self._record.stamp}}
            data = {**(found.get("data") or {}), _CONFIG: changed}
            return self._session.api.replace(CONFIG_MAPS, {**found, "metadata": metadata, "data": data})

        self._session.change(self._session.mig_config, write, self._journal.check)

    # Inside -----------------------------------------------------------------------------------

    def _is_ours(self, owner: str) -> bool:
        claim, _, epoch = owner.rpartition(".")
        return claim == self._record.claim_id and epoch.isdecimal() and int(epoch) <= self._record.epoch

    def _is_mine(self, node: Object, label: str) -> bool:
        return label.startswith(_prefix(self._record, node["metadata"]["name"]))

    def _target(self, name: str, original: Original) -> str | None:
        """Returns the entry that restores a host: the one that it had, or else one of ours."""
        found = self._session.mig_config()
        text = "" if found is None else (found.get("data") or {}).get(_CONFIG, "")
        if original.entry and cards_under(text, original.entry, len(original.cards)) == original.cards:
            return original.entry
        entry = _prefix(self._record, name) + _BACK
        return None if self._configure(entry, original.cards) else entry

    def _ask_back(self, name: str, target: str) -> None:
        def write(node: Object | None) -> Object | Refused | None:
            if node is None or not self._is_ours(owner_of(node)):
                return None
            return (
                None if labels_of(node).get(MIG_CONFIG) == target else self._patch(node, _asked(node, target))
            )

        self._change(name, write)

    def _configure(self, entry: str, cards: Cards) -> str:
        """Adds an entry to the configuration; returns why that cannot be, or nothing."""

        def write(found: Object | None) -> Object | Refused | None:
            if found is None:
                raise NoPlace("the cluster policy points to no configuration of the MIG manager")
            text = (found.get("data") or {}).get(_CONFIG, "")
            changed = with_entry(text, entry, cards)
            data = {**(found.get("data") or {}), _CONFIG: changed}
            return (
                None if changed == text else self._session.api.replace(CONFIG_MAPS, {**found, "data": data})
            )

        try:
            self._session.change(self._session.mig_config, write, self._journal.check)
        except NoPlace as error:
            return str(error)
        return ""

    def _change(self, name: str, write: Callable[[Object | None], Object | Refused | None]) -> None:
        self._session.change(lambda: self._session.node(name), write, self._journal.check)

    def _patch(self, node: Object, operations: Operations) -> Object | Refused:
        test = {"op": "test", "path": "/metadata/resourceVersion", "value": version_of(node)}
        return self._session.api.patch(NODES, node["metadata"]["name"], [test, *operations])


def entry_of(record: ClaimRecord, host: str) -> str:
    """Returns the name under which a claim asks for the layout of a host, new in every epoch."""
    return f"{_prefix(record, host)}{record.epoch}"


def agrees(node: Object, cards: Cards) -> bool:
    """Returns whether the manager has succeeded and exactly the devices of these cards are advertised."""
    return labels_of(node).get(MIG_STATE) == "success" and advertises(node, cards)


def advertises(node: Object, cards: Cards) -> bool:
    """Returns whether exactly the devices of these cards are advertised, and no others."""
    wanted = {resource_of(profile): count for profile, count in totals(cards).items()}
    found = {
        key: count
        for key, count in gpu_resources(node).items()
        if count and (key == GPU or key.startswith(MIG_PREFIX))
    }
    return found == wanted


def _prefix(record: ClaimRecord, host: str | None = None) -> str:
    name = f"vf-{record.claim_id.removeprefix('claim-')[:12]}-"
    return name if host is None else f"{name}{hashlib.sha256(host.encode()).hexdigest()[:8]}-"


def _asked(node: Object, entry: str) -> Operations:
    operations: Operations = [_put(_pointer("labels", MIG_CONFIG), entry)]
    if MIG_STATE in labels_of(node):
        operations.append({"op": "remove", "path": _pointer("labels", MIG_STATE)})
    return operations


def _annotated(node: Object, name: str, value: str) -> Operations:
    if node["metadata"].get("annotations"):
        return [_put(_pointer("annotations", name), value)]
    return [_put("/metadata/annotations", {name: value})]


def _put(path: str, value: object) -> Mapping[str, Any]:
    return {"op": "add", "path": path, "value": value}


def _pointer(where: str, name: str) -> str:
    return f"/metadata/{where}/{name.replace('~', '~0').replace('/', '~1')}"
