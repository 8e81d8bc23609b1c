"""The examiner of the messaging contract."""

from videoflow.testing.examiners._messaging_abilities import AbilitySuite
from videoflow.testing.examiners._messaging_broadcast import BroadcastSuite
from videoflow.testing.examiners._messaging_fates import LedgerSuite, LiveSuite
from videoflow.testing.examiners._messaging_leases import CompetingSuite
from videoflow.testing.examiners._messaging_making import MakingSuite
from videoflow.testing.examiners._messaging_owning import ExclusiveSuite
from videoflow.testing.examiners._messaging_partitions import PartitionSuite
from videoflow.testing.examiners._messaging_payloads import HoldingSuite
from videoflow.testing.examiners._messaging_publishing import PublishingSuite
from videoflow.testing.examiners._messaging_saying import SayingSuite


class MessagingExaminer(
    AbilitySuite,
    MakingSuite,
    PublishingSuite,
    SayingSuite,
    CompetingSuite,
    ExclusiveSuite,
    LiveSuite,
    BroadcastSuite,
    LedgerSuite,
    PartitionSuite,
    HoldingSuite,
):
    """Every law of `videoflow.backends.messaging`, and those that it keeps together with payloads.

    Inherit in a class whose name begins with `Test`, and define `make_subject`.
    """
