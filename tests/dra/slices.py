"""Devices as the driver publishes them, typed in from its sources on 2026-11-30.

https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin: deviceinfo.go (attributes),
mig.go (capacities of slices, and their names), partitions.go (counters), consumable_shares.go (policies).
Sizes are what `nvidia-smi mig -lgip` lists, in MiB.
"""

from typing import Any

Device = dict[str, Any]
DRIVER = "gpu.nvidia.com"
H100, A100 = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB"
CARD_MIB = {H100: 81559, A100: 40960, "NVIDIA T4": 15360, "NVIDIA A30": 24576}
COMPUTE = {H100: "9.0.0", A100: "8.0.0", "NVIDIA T4": "7.5.0", "NVIDIA A30": "8.0.0"}
ARCHITECTURE = {H100: "Hopper", A100: "Ampere", "NVIDIA T4": "Turing", "NVIDIA A30": "Ampere"}
# Profile → its number (`-lgip`), its width in slots of memory, and its size.
PROFILES = {
    H100: {
        "1g.10gb": (19, 1, 9984),
        "1g.20gb": (15, 2, 20096),
        "2g.20gb": (14, 2, 20096),
        "3g.40gb": (9, 4, 40448),
        "4g.40gb": (5, 4, 40448),
        "7g.80gb": (0, 8, 81152),
    },
    A100: {
        "1g.5gb": (19, 1, 4864),
        "1g.10gb": (15, 2, 9856),
        "2g.10gb": (14, 2, 9856),
        "3g.20gb": (9, 4, 19968),
        "4g.20gb": (5, 4, 19968),
        "7g.40gb": (0, 8, 40192),
    },
}
CLASSES = {"gpu.nvidia.com": "gpu", "mig.nvidia.com": "mig"}


def _common(product: str, root: str) -> Device:
    return {
        "productName": {"string": product},
        "brand": {"string": "Nvidia"},
        "architecture": {"string": ARCHITECTURE[product]},
        "cudaComputeCapability": {"version": COMPUTE[product]},
        "driverVersion": {"version": "580.65.6"},
        "cudaDriverVersion": {"version": "13.0.0"},
        "resource.kubernetes.io/pcieRoot": {"string": root},
    }


def gpu(minor: int, uuid: str, product: str = H100, *, root: str = "pci0000:00") -> Device:
    """A whole card."""
    size = CARD_MIB[product]
    return {
        "name": f"gpu-{minor}",
        "attributes": {"type": {"string": "gpu"}, "uuid": {"string": uuid}, **_common(product, root)},
        "capacity": {"memory": {"value": f"{size}Mi"}},
    }


def mig(minor: int, parent: str, profile: str, start: int, product: str = H100, *, uuid: str = "") -> Device:
    """A slice; one that is only possible so far has no UUID and no slots among its capacities."""
    number, width, size = PROFILES[product][profile]
    attributes = {
        "type": {"string": "mig"},
        "parentUUID": {"string": parent},
        "profile": {"string": profile},
        **_common(product, "pci0000:00"),
    }
    capacity: Device = {"multiprocessors": {"value": "16"}, "memory": {"value": str(size << 20)}}
    if uuid:
        attributes["uuid"] = {"string": uuid}
        capacity |= {f"memorySlice{n}": {"value": "1"} for n in range(start, start + width)}
    name = f"gpu-{minor}-mig-{profile.replace('.', '')}-{number}-{start}"
    return {"name": name, "attributes": attributes, "capacity": capacity}


def shared(device: Device, most: str = "") -> Device:
    """A device as it is published with `--consumable-shares=memory`; `most` is what one claim may take."""
    size = device["capacity"]["memory"]["value"]
    policy = {"default": most or size, "validRange": {"min": "1Mi", "max": most or size, "step": "1Mi"}}
    capacity = {**device["capacity"], "memory": {"value": size, "requestPolicy": policy}}
    return {**device, "allowMultipleAllocations": True, "capacity": capacity}


def partitions(minor: int, uuid: str, product: str = H100) -> list[Device]:
    """A card with dynamic MIG: itself and every slice that it could have, on one set of counters."""
    whole = gpu(minor, uuid, product)
    found = [_drawing(whole, minor, 0, 8)]
    for profile, places in STARTS[product].items():
        width = PROFILES[product][profile][1]
        found += [_drawing(mig(minor, uuid, profile, n, product), minor, n, width) for n in places]
    return found


def counters(minor: int) -> Device:
    """The set of counters of a card."""
    named = {f"memory-slice-{n}": {"value": "1"} for n in range(8)}
    # Seven slices of computing for eight slots of memory.
    return {"name": f"gpu-{minor}-counter-set", "counters": {**named, "multiprocessors": {"value": "112"}}}


def _drawing(device: Device, minor: int, start: int, width: int) -> Device:
    drawn = {f"memory-slice-{n}": {"value": "1"} for n in range(start, start + width)}
    profile = device["attributes"].get("profile", {}).get("string", "7g")
    drawn["multiprocessors"] = {"value": str(16 * int(profile.partition("g")[0]))}
    return {**device, "consumesCounters": [{"counterSet": f"gpu-{minor}-counter-set", "counters": drawn}]}


STARTS = {
    product: {
        profile: {1: list(range(7)), 2: [0, 2, 4, 6], 4: [0, 4], 8: [0]}[width]
        if profile[0] in "13" or width == 8
        else {2: [0, 2, 4], 4: [0]}[width]
        for profile, (_, width, _) in listed.items()
    }
    for product, listed in PROFILES.items()
}


def device_classes() -> list[Device]:
    """The classes that the driver's chart installs."""
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {
                "selectors": [
                    {
                        "cel": {
                            "expression": f'device.driver == "{DRIVER}" && '
                            f'device.attributes["{DRIVER}"].type == "{kind}"'
                        }
                    }
                ]
            },
        }
        for name, kind in CLASSES.items()
    ]


def resource_slice(node: str, devices: list[Device], *, name: str = "", **pool: int) -> Device:
    """One slice of the pool of a node."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name or f"{node}-{DRIVER}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1, **pool},
            "devices": devices,
        },
    }
