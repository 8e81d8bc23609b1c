"""What a worker process was granted, as its environment tells it, and whether it sees just that.

Used by the worker process before it makes its nodes. It refuses to work on other devices than those that were
granted, and on a grant that cannot be checked.
"""

import json
from collections.abc import Mapping

from videoflow import registry
from videoflow.backends.allocation import DeliveredGrant, DeviceIdentity, Discovery, device_key
from videoflow.backends.outcomes import Unknown
from videoflow.clock import Clock
from videoflow.environment import GRANT_VARIABLE, MASK_VARIABLE, ORDER_VARIABLE
from videoflow.errors import AcceleratorFault, ContractBroken, UnobservableState

_REMEDY = "see what the worker's environment says, and `videoflow gpus`"


def granted_to(environment: Mapping[str, str], clock: Clock) -> tuple[DeviceIdentity, ...]:
    """Returns the devices of this process; none where nothing was granted, and nothing is looked at then.

    Args:
        environment: Of this process.
        clock: Time.

    Raises:
        AcceleratorFault: This process sees other devices than it was granted.
        UnobservableState: What it sees could not be read.
    """
    said = environment.get(GRANT_VARIABLE)
    if said is None:
        return ()
    try:
        grant = DeliveredGrant.from_dict(json.loads(said))
    except ValueError as error:
        raise ContractBroken("a grant that cannot be read", cause=str(error)) from error
    if grant.host == Discovery.OBSERVED:
        _check(grant, environment, clock)
    return grant.devices


def _check(grant: DeliveredGrant, environment: Mapping[str, str], clock: Clock) -> None:
    node = grant.devices[0].node if grant.devices else ""
    look = registry.load(registry.DEVICES, "nvml")
    seen = look(node, environment.get(MASK_VARIABLE), environment.get(ORDER_VARIABLE, ""), clock)
    if isinstance(seen, Unknown):
        raise UnobservableState(
            f"{grant.workload_id} cannot see whether its accelerators are those that it was granted",
            cause=f"{seen.reason}: {seen.detail}",
            effect="nothing was processed on them",
            remedy=_REMEDY,
        )
    wanted, found = (tuple(map(device_key, devices)) for devices in (grant.devices, seen.value))
    if wanted != found:
        raise AcceleratorFault(
            f"{grant.workload_id} does not see the accelerators that it was granted",
            cause=f"granted {', '.join(wanted) or 'none'}; it sees {', '.join(found) or 'none'}",
            effect="nothing was processed on them",
            remedy=_REMEDY,
        )
