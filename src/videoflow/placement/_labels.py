"""How the GPUs of a cluster host are handed out, as its labels say."""

from collections.abc import Mapping

PHYSICAL, MIG, TIME_SLICED, MPS, UNKNOWN = "physical", "mig", "time-sliced", "mps", "unknown"
_PREFIX = "nvidia.com/"


def classify_labels(labels: Mapping[str, str]) -> str:
    """Returns `physical`, `mig`, `time-sliced`, `mps` or `unknown`; only `physical` certifies exclusive use.

    Evidence of sharing outweighs everything else, and a number of replicas that cannot be read is such
    evidence: it is no proof of exclusive use.
    """
    strategy = labels.get(_PREFIX + "gpu.sharing-strategy", "").strip().lower()
    product = labels.get(_PREFIX + "gpu.product", "").strip()
    if strategy == "mps":
        return MPS
    if strategy == "time-slicing" or product.upper().endswith("-SHARED") or _replicated(labels):
        return TIME_SLICED
    if labels.get(_PREFIX + "mig.strategy", "").strip().lower() == "single" and (
        "-MIG-" in product.upper() or labels.get(_PREFIX + "mig.config.state", "").strip() == "success"
    ):
        return MIG
    if any(key.startswith(_PREFIX + "gpu") for key in labels):
        return PHYSICAL
    return UNKNOWN


def _replicated(labels: Mapping[str, str]) -> bool:
    said = labels.get(_PREFIX + "gpu.replicas")
    if said is None:
        return False
    try:
        return int(said) > 1
    except ValueError:
        return True
