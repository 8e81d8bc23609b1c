"""A Kubernetes API server for tests: real HTTP on a free port, no cluster, no container, no privileges.

Used by anyone who tests tooling for Kubernetes in Python, with whatever client they use. It enforces what an
authority must: versions, 409, failed tests of JSON patches, preconditions of deletions, selectors, pages,
watches, server-side apply with owners of fields; each request can be made to fail in any of the ways of
`Ending`. Beside it are controllers that move only when they are stepped. It refuses what it does not serve
(strategic merge patches, admission, authorization): 415, or nothing.
"""

from videoflow.testing.kubernetes._api import FakeCluster
from videoflow.testing.kubernetes._claims import Claims, ClaimTemplates, Kubelet, Orphans
from videoflow.testing.kubernetes._devices import Matches
from videoflow.testing.kubernetes._direct import DirectApi
from videoflow.testing.kubernetes._faults import Decide, Ending, Request, Response
from videoflow.testing.kubernetes._hardware import DevicePlugin, FakeGpu, FakeGpuHost
from videoflow.testing.kubernetes._kinds import KINDS, Kind, Object
from videoflow.testing.kubernetes._mig_manager import MigManager, used_on
from videoflow.testing.kubernetes._scheduler import Scheduler
from videoflow.testing.kubernetes._server import FakeApiServer

__all__ = [
    "KINDS",
    "ClaimTemplates",
    "Claims",
    "Decide",
    "DevicePlugin",
    "DirectApi",
    "Ending",
    "FakeApiServer",
    "FakeCluster",
    "FakeGpu",
    "FakeGpuHost",
    "Kind",
    "Kubelet",
    "Matches",
    "MigManager",
    "Object",
    "Orphans",
    "Request",
    "Response",
    "Scheduler",
    "used_on",
]
