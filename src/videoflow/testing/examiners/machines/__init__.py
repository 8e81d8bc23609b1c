"""Random schedules: an implementation against a model of a few lines, and against the memory reference.

Used by adapters' tests, through Hypothesis' `run_state_machine_as_test`; Hypothesis is needed. A test makes a
subclass that says how its subjects are made.
"""

from videoflow.testing.examiners.machines._messaging import MessagingMachine
from videoflow.testing.examiners.machines._stores import PayloadMachine, StoreMachine
from videoflow.testing.examiners.machines._twins import PartitionMachine, TwinMachine

__all__ = ["MessagingMachine", "PartitionMachine", "PayloadMachine", "StoreMachine", "TwinMachine"]
