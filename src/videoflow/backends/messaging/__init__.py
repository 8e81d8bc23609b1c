"""The messaging contract: how does an envelope reach its required consumers?

Used by the worker's shell and the engines; implemented by `backends.memory` (the reference),
`adapters.shm` and others. Nouns first (`_names`, `_envelope`, `_specs`), then the three small
interfaces (`_backend`). It refuses to describe any one technology.
"""

from videoflow.backends.messaging._backend import (
    Acquired,
    ChannelStatus,
    MessagingBackend,
    Provisioning,
    PublicationObserver,
    Publisher,
    Receiver,
    SubscriptionStatus,
)
from videoflow.backends.messaging._envelope import SCHEMA, Envelope, Kind, Writer
from videoflow.backends.messaging._fates import announced_fate, buried_fate, settled_fate
from videoflow.backends.messaging._names import (
    ChannelId,
    Layout,
    OwnerLabels,
    Reliability,
    SubscriptionId,
    SubscriptionKind,
)
from videoflow.backends.messaging._specs import (
    Bounds,
    ChannelSpec,
    Completed,
    CompletedReason,
    Delivery,
    DeliveryToken,
    LiveSubscriptionSpec,
    ReliableSubscriptionSpec,
    Retry,
    Settlement,
    SubscriptionSpec,
    Terminal,
    Tombstone,
)

__all__ = [
    "SCHEMA",
    "Acquired",
    "Bounds",
    "ChannelId",
    "ChannelSpec",
    "ChannelStatus",
    "Completed",
    "CompletedReason",
    "Delivery",
    "DeliveryToken",
    "Envelope",
    "Kind",
    "Layout",
    "LiveSubscriptionSpec",
    "MessagingBackend",
    "OwnerLabels",
    "Provisioning",
    "PublicationObserver",
    "Publisher",
    "Receiver",
    "Reliability",
    "ReliableSubscriptionSpec",
    "Retry",
    "Settlement",
    "SubscriptionId",
    "SubscriptionKind",
    "SubscriptionSpec",
    "SubscriptionStatus",
    "Terminal",
    "Tombstone",
    "Writer",
    "announced_fate",
    "buried_fate",
    "settled_fate",
]
