"""The closed sets of the allocation contract."""

from enum import StrEnum
from typing import Final


class Sharing(StrEnum):
    """How a device may be shared."""

    EXCLUSIVE = "exclusive"
    ISOLATED_MIG = "isolated_mig"
    COOPERATIVE = "cooperative"
    ACCOUNTING_ONLY = "accounting_only"


class Elasticity(StrEnum):
    """Whether the number of devices may change while a workload runs."""

    FIXED = "fixed"
    ELASTIC = "elastic"


class ClaimStatus(StrEnum):
    """How far a claim has come; allocated, prepared and ready are three states."""

    PENDING = "pending"
    ALLOCATED = "allocated"
    PREPARED = "prepared"
    READY = "ready"
    FAILED = "failed"
    RELEASING = "releasing"


class ReleaseStatus(StrEnum):
    """What a release came to."""

    RELEASED = "released"
    PENDING_RECOVERY = "pending_recovery"
    STALE = "stale"


class Completeness(StrEnum):
    """Whether an inventory is whole; a partial one may inform, not admit."""

    COMPLETE = "complete"
    PARTIAL = "partial"


class Provenance(StrEnum):
    """Where a figure of a request comes from."""

    EXPLICIT = "explicit"
    DESCRIPTOR = "descriptor"
    DEFAULT = "default"


class Feature(StrEnum):
    """What a workload may need beyond a device."""

    DYNAMIC_MIG = "dynamic-mig"
    MPS = "mps"
    CONSUMABLE_CAPACITY = "consumable-capacity"
    PEER_ACCESS = "peer-access"


class HostSharing(StrEnum):
    """How the devices of a host are handed out; only `physical` certifies exclusive use."""

    PHYSICAL = "physical"
    MIG = "mig"
    TIME_SLICED = "time-sliced"
    MPS = "mps"
    UNKNOWN = "unknown"


class Discovery(StrEnum):
    """Whether the launcher could look at the host of a grant."""

    OBSERVED = "observed"
    UNOBSERVED = "unobserved"


SHARING_EXCLUSIVE: Final = Sharing.EXCLUSIVE
SHARING_ISOLATED_MIG: Final = Sharing.ISOLATED_MIG
SHARING_COOPERATIVE: Final = Sharing.COOPERATIVE
SHARING_ACCOUNTING_ONLY: Final = Sharing.ACCOUNTING_ONLY
SHARING_MODES: Final = tuple(Sharing)
ELASTICITY_FIXED: Final = Elasticity.FIXED
ELASTICITY_ELASTIC: Final = Elasticity.ELASTIC
CLAIM_PENDING: Final = ClaimStatus.PENDING
CLAIM_ALLOCATED: Final = ClaimStatus.ALLOCATED
CLAIM_PREPARED: Final = ClaimStatus.PREPARED
CLAIM_READY: Final = ClaimStatus.READY
CLAIM_FAILED: Final = ClaimStatus.FAILED
CLAIM_RELEASING: Final = ClaimStatus.RELEASING
CLAIM_STATES: Final = tuple(ClaimStatus)
RELEASE_RELEASED: Final = ReleaseStatus.RELEASED
RELEASE_PENDING_RECOVERY: Final = ReleaseStatus.PENDING_RECOVERY
RELEASE_STALE: Final = ReleaseStatus.STALE
FEATURE_DYNAMIC_MIG: Final = Feature.DYNAMIC_MIG
FEATURE_MPS: Final = Feature.MPS
FEATURE_CONSUMABLE_CAPACITY: Final = Feature.CONSUMABLE_CAPACITY
FEATURE_PEER_ACCESS: Final = Feature.PEER_ACCESS
GATED_FEATURES: Final = (Feature.DYNAMIC_MIG, Feature.MPS, Feature.CONSUMABLE_CAPACITY)
EXCLUSIVE_FEATURE_PAIRS: Final = (
    (Feature.MPS, Feature.DYNAMIC_MIG),
    (Feature.MPS, Feature.CONSUMABLE_CAPACITY),
)

# The first item of `ClaimObservation.evidence` where something ended otherwise than asked.
EVIDENCE_CONFLICT: Final = "conflict"
EVIDENCE_ABORTED: Final = "aborted"
EVIDENCE_LOST: Final = "lost"
EVIDENCE_STALE: Final = "stale"
# The entry of a version matrix that names the matrix itself, beside those of the features.
MATRIX_VERSION: Final = "matrix"
