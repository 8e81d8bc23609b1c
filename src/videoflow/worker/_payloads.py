"""Values in and out of envelopes: large arrays go to the payload store, once per publication.

Used by the shell. It keeps what one incarnation encoded until it is settled, so that a retry sends the
same references (rule 16).
"""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from videoflow import faults, wire
from videoflow.backends.messaging import Envelope, Kind
from videoflow.backends.payload import (
    Corrupt,
    Missing,
    PayloadBytes,
    PayloadRef,
    PayloadStore,
    RetentionContract,
    TransientFailure,
)
from videoflow.backends.runtime import OutboxEntry
from videoflow.clock import Clock
from videoflow.errors import ValueRefused
from videoflow.worker._made import Making
from videoflow.worker.core.actions import Disposition, Failure, Publication

_Bytes = NDArray[np.uint8]
_DATA = Kind.DATA
_ROOM_SECONDS = 0.25
_READ_ATTEMPTS = 5


class PayloadFull(Exception):
    """There was no room in the payload store within the deadline."""


class _Unreadable(Exception):
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.error)
        self.failure = failure


class Payloads:
    """Encodes and decodes the values of envelopes.

    Args:
        store: Where large arrays go.
        clock: For deadlines.
        inline: Leave arrays in the envelope, since its record must outlive this process's memory.
    """

    def __init__(self, store: PayloadStore, clock: Clock, *, inline: bool = False) -> None:
        self._inline = inline
        self._store = store
        self._clock = clock
        self._forward = store.capabilities().forwards_references
        self._fresh: dict[str, wire.EncodedValue] = {}
        self.making = Making(store, clock)

    def encode(self, publication: Publication) -> None:
        """Puts a publication's value into its envelope, once.

        Raises:
            PayloadFull: There is no room now.
        """
        envelope = publication.envelope
        if envelope.body or envelope.kind is not _DATA:
            return
        encoded = wire.encode_small(publication.value)
        if encoded is None and self._inline:
            encoded = wire.encode_value(publication.value)
        if encoded is None:
            encoded = self._fresh.get(envelope.publication_id)
        if encoded is None:
            encoded = self._encoded(publication.value, envelope.publication_id)
            self._fresh[envelope.publication_id] = encoded
        publication.envelope = msgspec.structs.replace(
            envelope, body=encoded.body, payloads=encoded.payloads, size_bytes=encoded.size_bytes
        )
        publication.value = None

    def _encoded(self, value: wire.Value, publication_id: str) -> wire.EncodedValue:
        made: list[PayloadRef] = []
        contract = RetentionContract(obligations=(f"intent/{publication_id}",))

        def store_array(array: _Bytes, index: int) -> PayloadRef:
            deadline = self._clock.monotonic() + _ROOM_SECONDS
            ref = self._store.put(array.data, f"{publication_id}/{index}", contract, deadline=deadline)
            if ref is None:
                raise PayloadFull
            made.append(ref)
            return ref

        self.making.sweep()
        whole = False
        try:
            encoded = wire.encode_value(value, store_array, forward=self._forward)
            self.making.claim(encoded.payloads, publication_id)
            whole = True
        finally:
            if not whole:
                self._release(made, publication_id)
        if made:
            faults.reach("payload.sealed")
        return encoded

    def unused(self, envelope: Envelope) -> None:
        """Gives back what was stored for a publication that was there before."""
        self._release(envelope.payloads, envelope.publication_id)

    def settled(self) -> None:
        """Forgets what was encoded: everything published so far was accepted."""
        self._fresh.clear()

    def hand_over(self) -> Mapping[str, wire.EncodedValue]:
        """Leaves what was encoded to the outbox that is about to be committed, and returns it.

        From here on it may be in there, whatever ends this worker: the next incarnation sees to it.
        """
        handed, self._fresh = self._fresh, {}
        return handed

    def take_back(self, handed: Mapping[str, wire.EncodedValue]) -> None:
        """Takes back what was handed over, since the commit was definitely refused."""
        self._fresh.update(handed)

    def close(self) -> None:
        """Gives back what was stored and never published."""
        for publication_id, encoded in self._fresh.items():
            self._release(encoded.payloads, publication_id)
        self._fresh.clear()
        self.making.sweep()

    def _release(self, refs: Sequence[PayloadRef], publication_id: str) -> None:
        claims = [(ref, f"intent/{publication_id}") for ref in refs]
        if claims:
            self._store.release_obligation(claims, None, deadline=self._clock.monotonic() + 1.0)

    def keep_only_outbox(self, outbox: Sequence[OutboxEntry], flow_id: str, run_id: str) -> None:
        """Ends the intents of earlier incarnations, except those in the outbox."""
        pending = [data for entry in outbox for data in entry.envelopes]
        envelopes = wire.decode_outbox(pending, flow_id, run_id)
        standing = frozenset(f"intent/{e.publication_id}" for e in envelopes if e.payloads)
        self._store.reconcile(
            {"intent": standing}, f"start/{run_id}", deadline=self._clock.monotonic() + _ROOM_SECONDS
        )

    def load(self, envelope: Envelope) -> wire.Value | Failure:
        """Returns the value of a delivery, or the `Failure` that says why not: for now, or for good."""
        try:
            return wire.decode_value(envelope.body, envelope.payloads, self._read)
        except _Unreadable as unreadable:
            return unreadable.failure
        except ValueRefused as error:
            return Failure(Disposition.POISON, f"{type(error).__name__}: {error}", code=error.code)

    def _read(self, ref: PayloadRef) -> PayloadBytes:
        detail = ""
        for _ in range(_READ_ATTEMPTS):
            found = self._store.read(ref, deadline=self._clock.monotonic() + _ROOM_SECONDS)
            match found:
                case TransientFailure(detail=detail):
                    self._clock.wait([], self._clock.monotonic() + _ROOM_SECONDS)
                case Missing(detail=detail):
                    raise _Unreadable(Failure(Disposition.POISON, f"the payload is missing: {detail}"))
                case Corrupt(expected=expected, actual=actual):
                    text = f"the payload is corrupt: expected {expected}, found {actual}"
                    raise _Unreadable(Failure(Disposition.POISON, text))
                case _:
                    return found
        raise _Unreadable(Failure(Disposition.TRANSIENT, f"the payload could not be read: {detail}"))
