"""The closed error vocabulary; everything a user or an operator sees is one of these.

Used by every package. It refuses free-form errors: a library's own exception stops at the adapter
that called it and is chained below one of these classes.

```
FlowError                 VF-FLOW           base; one printed block, the same as fields
├── UsageError            VF-USAGE       2  the user's mistake, found before anything starts
│   ├── FlowInvalid       VF-FLOW-INVALID   a graph that cannot be compiled; carries every problem
│   ├── FlowFileError     VF-FLOW-FILE      a flow file that cannot be read, run or has no factory
│   ├── ArgumentInvalid   VF-ARGUMENT       an argument or option of the wrong type or range
│   ├── ValueRefused      VF-VALUE          a value that no edge carries
│   │   └── EmissionRefused VF-EMISSION     outputs that the ports of a node do not allow
│   ├── NotYet            VF-NOT-YET        named in the design, not built yet
│   └── IncompatibleProfile VF-PROFILE      a guarantee that the composition cannot give
├── EnvironmentFault      VF-ENVIRONMENT 3  the machine's: space, memory, permission, a library
│   ├── LibraryMissing    VF-LIBRARY        an optional library that is not installed
│   ├── MemoryShort       VF-MEMORY         a budget beyond what the machine or container allows
│   ├── OutputUnwritable  VF-OUTPUT         a place that cannot be written
│   ├── AcceleratorFault  VF-ACCELERATOR    accelerators that cannot be given, or are not what was given
│   └── UnobservableState VF-UNOBSERVABLE   something that had to be read and could not be
├── SourceUnreadable      VF-SOURCE      1  a source that cannot be opened or decoded
├── NodeFailed            VF-NODE-FAILED 4  user code failed for good
├── StateTooLarge         VF-STATE       4  a node keeps more than the bound of its class
├── RunFailed             VF-RUN-FAILED  4  the run failed for a reason other than one node
├── RunStalled            VF-RUN-STALLED 5  no progress with work pending
└── ContractBroken        VF-CONTRACT    4  a programming error between layers
    ├── StaleAuthority    VF-STALE          an owner that has been replaced
    └── UnknownName       VF-UNKNOWN-NAME   a channel, subscription or payload nobody made
```
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from traceback import TracebackException


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a flow: where, why, and what to do.

    `code` is that of `NotYet` where the thing is right and not built yet.
    """

    node: str
    cause: str
    remedy: str
    code: str = "VF-FLOW-INVALID"


@dataclass(frozen=True)
class Miss:
    """One guarantee that was wanted and not found."""

    subject: str
    profile: str
    guarantee: str
    wanted: str
    found: str
    remedy: str


_LONGEST_SAYING = 4_000


def said_by(error: BaseException) -> str:
    r"""Returns class and message of an exception that anybody may have raised, fit to be kept and printed.

    A class whose `__str__` fails is named all the same.

    >>> said_by(ValueError("a\x1b[31m"))
    'ValueError: a\\x1b[31m'
    """
    told = TracebackException(type(error), error, None)  # which survives whatever `__str__` does
    return plain_text(f"{type(error).__name__}: {told}", _LONGEST_SAYING)


def plain_text(text: str, longest: int) -> str:
    """Returns a text as Unicode without control characters but tabs and line breaks, its middle left out.

    Args:
        text: Anything, lone surrogates included.
        longest: So many characters are kept.
    """
    if len(text) > longest:
        half = longest // 2
        text = f"{text[:half]} … {len(text) - 2 * half} characters … {text[-half:]}"
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


BLOCK_FIELDS = ("cause", "where", "effect", "remedy")
_BLOCK_GAP = " " * 8


def format_block(code: str, message: str, fields: Mapping[str, str]) -> str:
    """Returns an error as a block: code and message, then a line for each field that says something.

    >>> print(format_block("VF-SOURCE", "a.mp4 is empty", {"cause": "0 bytes", "where": "a.mp4"}))
    error VF-SOURCE  a.mp4 is empty
      cause    0 bytes        a.mp4
    """
    shown = {label: fields.get(label, "") for label in BLOCK_FIELDS}
    if shown["where"] and shown["cause"] and "\n" not in shown["cause"]:
        shown["cause"] += _BLOCK_GAP + shown["where"]
        shown["where"] = ""
    lines = [f"error {code}  {message}"]
    for label, text in shown.items():
        if text:
            indented = text.replace("\n", "\n           ")
            lines.append(f"  {label:<8} {indented}")
    return "\n".join(lines)


class FlowError(Exception):
    """Base of every error here; seen by whoever called `Flow.run`, and printed by the command line.

    Attributes:
        message: What was wrong, in one line, naming the node and the input where there is one.
        cause: Why, in the words of the layer that found it.
        where: File and line, input, or path.
        effect: What became of the work.
        remedy: What to do.
        report: The `RunReport` of the run that failed, or None where nothing ran.
        code: Stable code: of the class, or of what made a run fail.
        exit_status: What the command line exits with.
    """

    report: object | None = None
    code: str = "VF-FLOW"
    exit_status: int = 4

    def __init__(
        self, message: str, *, cause: str = "", where: str = "", effect: str = "", remedy: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.cause = cause
        self.where = where
        self.effect = effect
        self.remedy = remedy

    def __str__(self) -> str:
        return self.message if not self.cause else f"{self.message}: {self.cause}"

    def block(self) -> str:
        """Returns the block that the command line prints on standard error."""
        fields = {label: getattr(self, label) for label in BLOCK_FIELDS}
        return format_block(self.code, self.message, fields)


class UsageError(FlowError):
    """The user's mistake, found before anything starts."""

    code = "VF-USAGE"
    exit_status = 2


class FlowInvalid(UsageError):
    """A graph that cannot be compiled; `problems` holds all of them."""

    code = "VF-FLOW-INVALID"

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        shown = "\n".join(f"{p.node}: {p.cause} ({p.remedy})" for p in self.problems)
        count = len(self.problems)
        super().__init__(
            f"the flow has {count} problem{'s' if count != 1 else ''}",
            cause=shown,
            effect="nothing was started",
            remedy="mend each problem listed and run again",
        )


class FlowFileError(UsageError):
    """A flow file that cannot be found, parsed or run, or that has no factory."""

    code = "VF-FLOW-FILE"


class ArgumentInvalid(UsageError):
    """An argument or an option of the wrong type, range or name."""

    code = "VF-ARGUMENT"


class ValueRefused(UsageError):
    """A value that no edge carries, by type or by size."""

    code = "VF-VALUE"


class EmissionRefused(ValueRefused):
    """Outputs that the ports of a node do not allow: an unknown port, one too many, an offset out of turn."""

    code = "VF-EMISSION"


class NotYet(UsageError):
    """A thing that the design names and that is not built yet.

    Raised by the compiler where nothing else is wrong with a flow; `problems` then holds all such things.
    """

    code = "VF-NOT-YET"

    def __init__(
        self,
        message: str,
        *,
        cause: str = "",
        where: str = "",
        effect: str = "",
        remedy: str = "",
        problems: Sequence[Problem] = (),
    ) -> None:
        super().__init__(message, cause=cause, where=where, effect=effect, remedy=remedy)
        self.problems = tuple(problems)


class IncompatibleProfile(UsageError):
    """Guarantees that a composition, or a thing found on a server, cannot give.

    The cause says once what several subjects lack alike.

    Attributes:
        misses: Everything that is definitely missing.
        unread: Sentences about what could not be read beside it, and may be missing too.
    """

    code = "VF-PROFILE"

    def __init__(self, misses: Sequence[Miss], *, unread: Sequence[str] = ()) -> None:
        self.misses = tuple(misses)
        self.unread = tuple(unread)
        alike: dict[tuple[str, str], list[str]] = {}
        for m in self.misses:
            what = f"({m.profile}): {m.guarantee}: wanted {m.wanted}, found {m.found}"
            alike.setdefault((what, m.remedy), []).append(m.subject)
        remedies = list(dict.fromkeys(remedy for _, remedy in alike))
        shown = [
            f"{', '.join(dict.fromkeys(subjects))} {what}"
            + (f"\n  remedy: {remedy}" if len(remedies) > 1 else "")
            for (what, remedy), subjects in alike.items()
        ]
        count = len(self.misses)
        super().__init__(
            "a guarantee cannot be given" if count == 1 else f"{count} guarantees cannot be given",
            cause="\n".join([*shown, *self.unread]),
            effect="nothing was started",
            remedy=remedies[0] if len(remedies) == 1 else "see each line",
        )


class EnvironmentFault(FlowError):
    """The machine's fault: space, memory, permission, a missing library."""

    code = "VF-ENVIRONMENT"
    exit_status = 3


class LibraryMissing(EnvironmentFault):
    """An optional library that is needed and not installed."""

    code = "VF-LIBRARY"


class MemoryShort(EnvironmentFault):
    """A memory budget beyond what the machine or the container allows."""

    code = "VF-MEMORY"


class OutputUnwritable(EnvironmentFault):
    """A file or a folder that cannot be written."""

    code = "VF-OUTPUT"


class AcceleratorFault(EnvironmentFault):
    """Accelerators that cannot be given now, or that are not those that were given."""

    code = "VF-ACCELERATOR"


class UnobservableState(EnvironmentFault):
    """Something that had to be read before going on, and could not be."""

    code = "VF-UNOBSERVABLE"


class SourceUnreadable(FlowError):
    """A source that cannot be opened or decoded."""

    code = "VF-SOURCE"
    exit_status = 1


class NodeFailed(FlowError):
    """User code failed for good; `node` names it, and the user's exception is chained."""

    code = "VF-NODE-FAILED"

    def __init__(
        self,
        message: str,
        *,
        node: str,
        cause: str = "",
        where: str = "",
        effect: str = "",
        remedy: str = "",
    ) -> None:
        super().__init__(message, cause=cause, where=where, effect=effect, remedy=remedy)
        self.node = node


class StateTooLarge(FlowError):
    """A node keeps more than `max_state_bytes` of its class allows."""

    code = "VF-STATE"


class RunFailed(FlowError):
    """The run failed for a reason other than one node's code."""

    code = "VF-RUN-FAILED"


class RunStalled(FlowError):
    """No progress was made although work was pending."""

    code = "VF-RUN-STALLED"
    exit_status = 5


class ContractBroken(FlowError):
    """A programming error between layers; a bug in videoflow or in an adapter."""

    code = "VF-CONTRACT"


class StaleAuthority(ContractBroken):
    """An owner that has been replaced tried to act."""

    code = "VF-STALE"


class UnknownName(ContractBroken):
    """A channel, a subscription or a payload that nobody made."""

    code = "VF-UNKNOWN-NAME"
