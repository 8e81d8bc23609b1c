"""What every engine needs beside its own machinery: a plan provisioned, its ledger, the account of the run.

Used by whoever runs a plan: the engines, through the modules that this one gathers, and the simulator. It
refuses to run anything itself.
"""

from videoflow.engines._account import account_of_edges, forget_unsaid
from videoflow.engines._ledger import InnerLedger
from videoflow.engines._local_replica import DEATHS_IN_A_ROW
from videoflow.engines._past import Past
from videoflow.engines._provision import channel_specs, subscription_specs
from videoflow.engines._report import RunFacts, make_report
from videoflow.engines._suspended import Resumption, Suspended

__all__ = [
    "DEATHS_IN_A_ROW",
    "InnerLedger",
    "Past",
    "Resumption",
    "RunFacts",
    "Suspended",
    "account_of_edges",
    "channel_specs",
    "forget_unsaid",
    "make_report",
    "subscription_specs",
]
