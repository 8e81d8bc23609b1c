"""Claims as durable records, and the objects that each of them has in the cluster. Pure."""

from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from videoflow.adapters.kubernetes import Object
from videoflow.backends.allocation import DeviceIdentity, FeasiblePlan, Feature, Sharing, WorkloadRequest
from videoflow.deploy.allocation_dra._capabilities import SHARED
from videoflow.deploy.allocation_dra._cel import text_is
from videoflow.deploy.allocation_dra._gates import Gates
from videoflow.deploy.allocation_dra._planning import DraPlan
from videoflow.deploy.allocation_dra._rendering import API_VERSION, Spec, claim_spec
from videoflow.deploy.allocation_dra._settings import (
    CLAIM,
    KIND,
    POD_CLAIM,
    REQUEST,
    WORKLOAD,
    DraSettings,
)
from videoflow.deploy.kubernetes_records import ConfigMapJournal, JournalRecord
from videoflow.ids import hash_id


class DraRecord(JournalRecord, frozen=True, kw_only=True):
    """One claim.

    Attributes:
        specs: Workload → the `spec` of its resource claim.
        alone: Workloads that have their devices for themselves.
        groups: Workload → the group whose claim it shares.
        geometry: Host → entries of the layouts that the plan counts on; the driver makes them.
    """

    specs: dict[str, dict[str, Any]]
    alone: tuple[str, ...]
    groups: dict[str, str] = msgspec.field(default_factory=dict)
    geometry: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)

    def claim_of(self, workload: str) -> str:
        """Returns the name of the resource claim of a workload."""
        return f"{self.claim_id}-{self.shared_by(workload)[:10]}"

    def shared_by(self, workload: str) -> str:
        """Returns what tells those who share the claim of a workload: itself, or its declared group."""
        group = self.groups.get(workload)
        return hash_id(workload) if group is None else hash_id("group", group)

    def holder_of(self, workload: str) -> str:
        """Returns the name of the pod that holds it."""
        return f"{self.claim_of(workload)}-holder"


class Journal(ConfigMapJournal[DraRecord]):
    """The record of one claim, as this process knows it."""

    kind = DraRecord
    prefix = "dra-"
    labels: ClassVar[dict[str, str]] = {KIND: "dra-claim"}
    claim_label = CLAIM


def requests_of(plan: FeasiblePlan) -> list[WorkloadRequest]:
    """Returns the requests that a plan answers; one that tells none is taken at its strictest: alone."""
    told = {request.workload_id: request for request in plan.requests} if isinstance(plan, DraPlan) else {}
    return [
        told.get(workload)
        or WorkloadRequest(
            "",
            "",
            workload,
            device_count=len(devices),
            sharing=Sharing.ISOLATED_MIG if any(d.mig_profile for d in devices) else Sharing.EXCLUSIVE,
        )
        for workload, devices in plan.assignments.items()
    ]


def pinned_spec(
    request: WorkloadRequest, devices: Sequence[DeviceIdentity], settings: DraSettings, gates: Gates
) -> Spec:
    """Returns the spec of the claim of exactly these devices.

    A device that exists is named by its UUID. A slice that the driver has yet to make has none: it is named
    by its card and its profile, and where on the card it begins is the scheduler's choice.
    """
    groups: dict[tuple[str, str], list[DeviceIdentity]] = {}
    for device in devices:
        made = device.mig_profile is None or device.mig_uuid is not None
        key = ("", "") if made else (str(device.uuid), str(device.mig_profile))
        groups.setdefault(key, []).append(device)
    whole: Spec = {"devices": {"requests": []}}
    for number, ((parent, profile), some) in enumerate(groups.items()):
        if parent:
            pins = [
                text_is(settings.driver, "parentUUID", (parent,)),
                text_is(settings.driver, "profile", (profile,)),
            ]
        else:
            uuids = tuple(str(device.mig_uuid or device.uuid) for device in some)
            pins = [text_is(settings.driver, "uuid", uuids)]
        spec, _ = claim_spec(request, settings, gates, pins)
        (wanted,) = spec["devices"].pop("requests")
        wanted["exactly"]["count"] = len(some)
        whole["devices"]["requests"].append({**wanted, "name": f"{REQUEST}-{number}"})
        whole["devices"] |= spec["devices"]
    names = [one["name"] for one in whole["devices"]["requests"]]
    for part in (*whole["devices"].get("constraints", ()), *whole["devices"].get("config", ())):
        part["requests"] = names
    return whole


def is_shared(request: WorkloadRequest) -> bool:
    """Returns whether others may have the devices of a request too."""
    return request.sharing in SHARED or Feature.CONSUMABLE_CAPACITY in request.features


def claim_manifest(record: DraRecord, workload: str, owner: str, settings: DraSettings) -> Object:
    """Returns the resource claim of a workload; it goes when the record of this uid does."""
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceClaim",
        "metadata": _metadata(record, record.claim_of(workload), workload, owner, settings),
        "spec": record.specs[workload],
    }


def holder_manifest(record: DraRecord, workload: str, owner: str, settings: DraSettings) -> Object:
    """Returns the pod that holds the claim of a workload: a scheduler gives devices to pods alone."""
    tolerations = [{"operator": "Exists", "effect": "NoSchedule"}]
    container = {
        "name": "holder",
        "image": settings.holder_image,
        "resources": {"claims": [{"name": POD_CLAIM}], "requests": {"cpu": "1m", "memory": "8Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(record, record.holder_of(workload), workload, owner, settings),
        "spec": {
            "automountServiceAccountToken": False,
            "containers": [container],
            "resourceClaims": [{"name": POD_CLAIM, "resourceClaimName": record.claim_of(workload)}],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 0,
            "tolerations": tolerations,
        },
    }


def _metadata(record: DraRecord, name: str, workload: str, owner: str, settings: DraSettings) -> Object:
    return {
        "name": name,
        "namespace": settings.namespace,
        "labels": {
            "app.kubernetes.io/managed-by": "videoflow",
            CLAIM: record.claim_id,
            WORKLOAD: record.shared_by(workload),
        },
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": record.claim_id, "uid": owner}],
    }
