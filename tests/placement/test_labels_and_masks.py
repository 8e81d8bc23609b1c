"""How labels are read, and what a mask makes visible."""

import pytest

from videoflow.placement import Maskable, classify_labels, resolve_mask

G = "nvidia.com/"


@pytest.mark.parametrize(
    ("labels", "sharing"),
    [
        ({G + "gpu.sharing-strategy": "mps"}, "mps"),
        ({G + "gpu.sharing-strategy": "mps", G + "gpu.product": "NVIDIA-A100-SHARED"}, "mps"),
        ({G + "gpu.sharing-strategy": "time-slicing"}, "time-sliced"),
        ({G + "gpu.sharing-strategy": "none", G + "gpu.product": "NVIDIA-A100-SHARED"}, "time-sliced"),
        ({G + "gpu.replicas": "2", G + "gpu.product": "NVIDIA-A100"}, "time-sliced"),
        ({G + "gpu.replicas": "many"}, "time-sliced"),
        ({G + "gpu.replicas": "1", G + "gpu.product": "NVIDIA-A100"}, "physical"),
        ({G + "mig.strategy": "single", G + "gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}, "mig"),
        ({G + "mig.strategy": "single", G + "mig.config.state": "success"}, "mig"),
        ({G + "mig.strategy": "single", G + "mig.config.state": "failed", G + "gpu.count": "1"}, "physical"),
        ({G + "mig.strategy": "mixed", G + "mig.config.state": "success", G + "gpu.count": "1"}, "physical"),
        (
            {G + "mig.strategy": "single", G + "mig.config.state": "success", G + "gpu.replicas": "4"},
            "time-sliced",
        ),
        ({G + "gpu.count": "8"}, "physical"),
        ({G + "gpu": "1"}, "physical"),
        ({G + "mig.config": "all-1g.5gb"}, "unknown"),
        ({"kubernetes.io/hostname": "a"}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_labels_say_how_gpus_are_handed_out(labels: dict[str, str], sharing: str) -> None:
    assert classify_labels(labels) == sharing


DEVICES = (
    Maskable(0, "GPU-aa11"),
    Maskable(1, "GPU-aa22"),
    Maskable(2, "GPU-bb33"),
    Maskable(None, "MIG-cc44"),
    Maskable(None, "MIG-cc55"),
)


@pytest.mark.parametrize(
    ("mask", "visible", "stopped_at"),
    [
        (None, (0, 1, 2), None),
        ("", (), None),
        ("2,0", (2, 0), None),
        ("0,2,-1,1", (0, 2), "-1"),
        ("0,7,1", (0,), "7"),
        ("0,,1", (0,), ""),
        ("x,0", (), "x"),
        ("0,GPU-aa22", (0,), "GPU-aa22"),
        ("GPU-aa22,0", (1,), "0"),
        ("GPU-bb,GPU-aa11", (2, 0), None),
        ("GPU-aa,GPU-bb33", (), "GPU-aa"),
        ("GPU-bb33,GPU-aa", (2,), "GPU-aa"),
        ("MIG-cc55", (4,), None),
        ("MIG-cc44,GPU-aa11", (3, 0), None),
        ("1,1", (), "1"),
        ("0,1,0", (), "0"),
        ("GPU-bb33,GPU-bb", (), "GPU-bb"),
        ("-1", (), "-1"),
        ("NoDevFiles", (), "NoDevFiles"),
        ("bb33", (), "bb33"),
    ],
)
def test_a_mask_shows_what_cuda_would_show(
    mask: str | None, visible: tuple[int, ...], stopped_at: str | None
) -> None:
    found = resolve_mask(mask, DEVICES)
    assert (found.devices, found.stopped_at) == (visible, stopped_at)
    assert bool(found.reason) is (stopped_at is not None or mask == "")


def test_an_exact_uuid_is_no_ambiguous_beginning_of_another() -> None:
    devices = (Maskable(0, "GPU-aa"), Maskable(1, "GPU-aab"))
    assert resolve_mask("GPU-aa", devices).devices == (0,)
