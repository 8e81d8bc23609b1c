"""The messaging contract: how does an envelope reach its required consumers?

Used by the worker's shell and the engines; implemented by `backends.memory` (the reference), `adapters.shm`
and others, each of which passes `videoflow.testing.examiners.MessagingExaminer`. Nouns first (`_names`,
`_envelope`, `_specs`), then the three small interfaces (`_backend`). It refuses to describe any one
technology.

A *channel* is the log of one output port in one layout. Planned writers (*slots*) append to it, its listed
readers (*subscriptions*) lease and settle. What follows holds in every implementation.

Statements. The envelopes of one `begin_publish` that share channel and `input_id` are one statement. Where
`atomic_append` is claimed it is accepted all or none, in all its partitions. The first statement for a
trace (origin and path) wins, whole: another one is `Accepted(duplicate=True)` and appends nothing,
whichever slot says it and however long ago, the channel sealed or not. Of an interval skip only the
ordinals that nobody announced are appended; its `intervals` and its origin's ordinal are narrowed to them.
What an implementation recognises a repetition by is the announced coverage, so it keeps no list of ids and
forgets nothing.

Positions. (slot, sequence), where sequences ascend within a slot and need not be dense; whether a
terminator takes one, and whether partitions share them, is the implementation's affair. The order of a slot
is the order of its calls.

Room. A reliable reader's data items take room, per partition, in items and bytes, until each such reader
settled them; leased ones too. Skips, notices and terminators take none. What does not fit waits in its
slot's order until its deadline and is then `Rejected(full)`, with all that waited behind it; nothing of it
is sent later. A statement that is larger than the bound passes when its partitions are empty.

Credit and window. Leased data items count against a subscription's credit in items and bytes; one that is
larger passes alone. `spread` is the window W of rule 4: where `gated_dispatch` is claimed nothing is handed
out for the first time as dispatch p while one at or before p - W is unsettled; an adapter that does not
claim it refuses a spread.

Partitions. A writer says every statement to every partition, in one call, with as many envelopes in each: a
data item to the one that owns it, and to each other one a *notice*, `Kind.IDLE` with the ordinals in
`elsewhere`; a skip that no partition owns goes to all, as it is to the first and as a copy with `elsewhere`
to the others. A notice and a copy announce nothing, take neither room nor credit, are handed out in their
place, and settle as `FateKind.ELSEWHERE`; so each partition closes every ordinal, and the union of
`without_elsewhere` of all is what the writers announced. The *place* of an entry is the number of its
append in its partition, which is the same for a statement in each. The subscriptions of one reader to the
partitions of a channel have one window: nothing at place p is handed out for the first time while some
partition of that reader has an unsettled entry at or before place p - W. Whoever waits in one partition is
woken by what another settles.

Leases. A message of a competing subscription has at most one holder. A token is live until it is settled,
handed back, or its holder is known dead (or, where leases have seconds, late); then its generation is
superseded and it changes nothing any more. What a dead holder had comes back at once with `transport_count`
+ 1, before what nobody had; what is handed back or retried comes back uncharged. An exclusive subscription
has one owner, by epoch, and is read by position.

Eviction. Only a live subscription loses, only by its own key and age, only what waits, and only itself: the
item is a *tombstone*, in its place, delivered once as a `skip` with cause `dropped` or `expired`, without
body and payloads; neighbours of one origin, slot and cause may be one skip. The ledger has the drop in the
step that evicts.

Ends. The first terminator of a slot stands, lies above all that the slot said, and is in every partition;
the slot then says nothing new (`Rejected(sealed)`), others go on. A channel is sealed when each slot ended.
*Drained*: each slot ended and everything was handed out; *finished*: and everything is settled.

Payloads. An accepted envelope's payloads are held by the log, for each subscription, until that one settles
it or has it evicted; `intent/<publication_id>` ends when the publication is accepted in every channel of
its call, duplicates included. A removed channel lets go of all that it held.

Every call takes a `deadline` in monotonic seconds of the implementation's clock; one that is not in the
future never waits. What nobody made is Unknown to an observation, and an `UnknownName` to everything else.
"""

from videoflow.backends.messaging._backend import (
    MessagingBackend,
    Provisioning,
    PublicationObserver,
    Publisher,
    Receiver,
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
from videoflow.backends.messaging._refusals import unkept_by_memory
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
from videoflow.backends.messaging._status import Acquired, ChannelStatus, SubscriptionStatus

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
    "unkept_by_memory",
]
