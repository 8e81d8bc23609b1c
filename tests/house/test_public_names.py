"""The public face: one frozen list, each name documented. A change here is a change for users."""

import inspect

import pytest

import videoflow
from videoflow import errors

AUTHORING = {
    "SKIP",
    "Batch",
    "ChannelRequirement",
    "Consumer",
    "Context",
    "Flow",
    "Gpu",
    "Item",
    "Node",
    "NodeOptions",
    "Out",
    "Processor",
    "Producer",
    "Requirements",
    "Resources",
    "consumer",
    "merge",
    "processor",
    "producer",
}
VALUES = {"Detections", "Event", "Frame", "RunReport"}
ERRORS = {
    "AcceleratorFault",
    "ArgumentInvalid",
    "ContractBroken",
    "EmissionRefused",
    "EnvironmentFault",
    "FlowError",
    "FlowFileError",
    "FlowInvalid",
    "IncompatibleProfile",
    "LibraryMissing",
    "MemoryShort",
    "NodeFailed",
    "NotYet",
    "OutputUnwritable",
    "RunFailed",
    "RunStalled",
    "SourceUnreadable",
    "StaleAuthority",
    "StateTooLarge",
    "UnknownName",
    "UnobservableState",
    "UsageError",
    "ValueRefused",
}


def error_classes() -> dict[str, type[errors.FlowError]]:
    """Every error of the one module, by name."""
    return {
        name: found
        for name, found in vars(errors).items()
        if inspect.isclass(found) and issubclass(found, errors.FlowError)
    }


def test_the_public_names_are_frozen() -> None:
    assert set(videoflow.__all__) == AUTHORING | VALUES | ERRORS
    assert len(videoflow.__all__) == len(set(videoflow.__all__))


def test_each_public_name_is_offered_by_dir() -> None:
    assert set(videoflow.__all__) <= set(dir(videoflow))


@pytest.mark.parametrize("name", sorted(AUTHORING | VALUES | ERRORS))
def test_each_public_name_exists_and_is_documented(name: str) -> None:
    public = getattr(videoflow, name)
    described = public if inspect.isclass(public) or inspect.isroutine(public) else type(public)
    own = described.__doc__
    assert own is not None, name
    assert own.strip(), name
    assert own.count("(") == 0 or not own.startswith(f"{name}("), f"{name} has only a generated docstring"


def test_every_error_is_public() -> None:
    assert set(error_classes()) == ERRORS


def test_each_error_has_a_code_of_its_own_that_the_tree_of_the_module_shows() -> None:
    codes = {name: found.code for name, found in error_classes().items()}
    assert len(set(codes.values())) == len(codes)
    tree = errors.__doc__ or ""
    rows = [line.split() for line in tree.splitlines()]
    for name, code in codes.items():
        assert any(name in row and code in row for row in rows), name


def test_each_exit_status_is_one_that_the_command_line_promises() -> None:
    assert {found.exit_status for found in error_classes().values()} <= {1, 2, 3, 4, 5}
