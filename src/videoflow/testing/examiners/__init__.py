"""Examiners: the laws of the contracts as tests that any implementation can inherit.

Used by authors of adapters, with pytest or through `examine`; pytest is needed for either. An examiner tries
an ability if and only if the capabilities claim it, and its refusal if they do not.
"""

from videoflow.testing.examiners._examiner import Examiner, Finding, Subject, examine
from videoflow.testing.examiners._flow import FlowRuntimeExaminer
from videoflow.testing.examiners._law import Law, law, law_of
from videoflow.testing.examiners._messaging import MessagingExaminer
from videoflow.testing.examiners._messaging_subject import MessagingSubject
from videoflow.testing.examiners._payload import Corruptible, PayloadExaminer, PayloadSubject
from videoflow.testing.examiners._store import RuntimeStoreExaminer, StoreSubject

__all__ = [
    "Corruptible",
    "Examiner",
    "Finding",
    "FlowRuntimeExaminer",
    "Law",
    "MessagingExaminer",
    "MessagingSubject",
    "PayloadExaminer",
    "PayloadSubject",
    "RuntimeStoreExaminer",
    "StoreSubject",
    "Subject",
    "examine",
    "law",
    "law_of",
]
