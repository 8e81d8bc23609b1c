"""All defects of the contracts: small changes of the product, and bad implementations."""

from tests.contracts.defect import Defect
from tests.contracts.messaging_defects import MESSAGING
from tests.contracts.payload_defects import PAYLOAD
from tests.contracts.runtime_defects import RUNTIME

DEFECTS: dict[str, Defect] = {**MESSAGING, **PAYLOAD, **RUNTIME}

CHEAP = (
    "an accepted item is not kept",
    "an old token settles",
    "a notice announces",
    "each partition has its own window",
    "one release ends all claims",
    "the last failure stands",
    "a backend that drops everything",
    "a payload store that drops everything",
    "a store that answers from a cache",
)
