"""Which devices a plan chooses: such as agree or differ where they have to, and none that is withheld."""

from tests.dra.slices import gpu, mig
from tests.dra.test_live import GATES, allocator, ask, piece, planned, refused, reserved
from tests.dra.world import DraWorld
from videoflow.backends.allocation import ClaimStatus, Constraint
from videoflow.deploy.allocation_dra import DISTINCT, PCIE_ROOT, SAME


def test_devices_that_have_to_agree_are_found_where_they_do() -> None:
    cards = [gpu(n, f"GPU-{n}", root=f"pci-{n // 2 if n else 9}") for n in range(4)]
    backend = allocator(DraWorld({"a": cards}), {"kubernetes": "1.36"})
    near = Constraint(PCIE_ROOT, SAME, ())
    plan = planned(backend, ask(device_count=2, constraints=(near,)))
    assert [device.uuid for device in plan.assignments["w/0"]] == ["GPU-2", "GPU-3"]
    assert reserved(backend, ask(device_count=2, constraints=(near,))).status is ClaimStatus.READY
    assert PCIE_ROOT in refused(backend, ask("w/1", device_count=2, constraints=(near,)))


def test_a_device_that_its_driver_taints_is_not_planned_and_why_is_said() -> None:
    taint = {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoExecute"}
    whole = {**gpu(0, "GPU-0"), "taints": [taint]}
    piece_of = {**mig(1, "GPU-1", "2g.20gb", 0, uuid="MIG-0"), "taints": [taint]}
    noted = {**gpu(2, "GPU-2"), "taints": [{**taint, "effect": "None"}]}
    backend = allocator(DraWorld({"a": [whole, piece_of, noted]}), {"kubernetes": "1.37"})
    assert [device.uuid for device in planned(backend, ask()).assignments["w/0"]] == ["GPU-2"]
    said = refused(backend, ask(device_count=2))
    assert "a/gpu-0 is withheld: gpu.nvidia.com/xid=79:NoExecute" in said
    refused(backend, ask(**piece(9.0)))


def test_devices_that_have_to_differ_are_found_where_they_do() -> None:
    cards = [gpu(n, f"GPU-{n}", root=f"pci-{n // 3}") for n in range(4)]
    backend = allocator(DraWorld({"a": cards}), GATES | {"kubernetes-gates": "DRAConsumableCapacity"})
    apart = Constraint(PCIE_ROOT, DISTINCT, ())
    plan = planned(backend, ask(device_count=2, constraints=(apart,)))
    assert "GPU-3" in [device.uuid for device in plan.assignments["w/0"]]
    assert f"apart {PCIE_ROOT}" in refused(backend, ask(device_count=3, constraints=(apart,)))
    both = [ask(name, device_count=2, constraints=(apart,)) for name in ("w/0", "w/1")]
    assert f"apart {PCIE_ROOT}" in refused(backend, *both)
