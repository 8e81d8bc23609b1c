"""Which detection models there are, and what a model file says about itself. Used by the detector node.

A preset is shipped with the package and known without opening a file. Any other model is a path ending in
`.onnx` whose metadata says how to read it: the entry `videoflow` (JSON, see `Facts`), or the entries
`names` and `imgsz` that exporters of YOLO models write. A file with neither is refused.
"""

import ast
import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from videoflow.errors import ArgumentInvalid

MODELS = Path(__file__).parent / "models"


@dataclass(frozen=True)
class Facts:
    """How to feed a model and read it; the JSON of the metadata entry `videoflow` has these fields.

    Attributes:
        decode: `ssd` (outputs `boxes` and `scores`) or `yolo` (one output).
        class_names: Names in lower case, by class id, without a background.
        scale: Factor from 0..255 to the model's input; the input is RGB, (N, 3, H, W) float32.
        offset: Added after `scale`.
    """

    decode: str
    class_names: tuple[str, ...]
    scale: float
    offset: float


PERSON_SSD_CLASSES = (
    "bicycle",
    "boot",
    "laptop",
    "person",
    "chair",
    "cattle",
    "desk",
    "cat",
    "computer mouse",
    "computer monitor",
    "box",
    "mug",
    "coffee cup",
    "stationary bicycle",
    "table",
    "bottle",
    "high heels",
    "vehicle",
    "footwear",
    "dog",
    "book",
    "camera",
    "car",
)
PRESETS: Mapping[str, tuple[str, ...]] = {"person-ssd": PERSON_SSD_CLASSES}


def known_classes(model: str) -> tuple[str, ...] | None:
    """Returns the class names of a preset, None for the path of a model file.

    Args:
        model: What the user named.

    Raises:
        ArgumentInvalid: Neither a preset nor a path ending in `.onnx`.

    Example:
        >>> known_classes("person-ssd")[3], known_classes("mine.onnx")
        ('person', None)
    """
    if model in PRESETS:
        return PRESETS[model]
    if Path(model).suffix.lower() == ".onnx":
        return None
    raise ArgumentInvalid(
        f"no model is named {model!r}",
        cause=f"the presets are {', '.join(PRESETS)}",
        remedy=f"{nearest(model, list(PRESETS))}, or give the path of an .onnx file",
    )


def locate(model: str) -> Path:
    """Returns the file of a preset or path.

    Args:
        model: A preset or a path ending in `.onnx`.

    Raises:
        ArgumentInvalid: There is no such file.
    """
    path = MODELS / f"{model}.onnx" if model in PRESETS else Path(model)
    if path.is_file():
        return path
    folder = path.parent
    beside = sorted(entry.name for entry in folder.glob("*.onnx")) if folder.is_dir() else []
    raise ArgumentInvalid(
        f"there is no model file {model!r}",
        cause=f"looked for {path.absolute()}",
        remedy=nearest(path.name, beside) if beside else "check the path",
    )


def wanted_ids(classes: Sequence[str] | None, names: Sequence[str]) -> tuple[int, ...] | None:
    """Returns the class ids of the wanted names, None when all are wanted.

    Args:
        classes: Class names as the user gave them; case does not matter.
        names: The model's class names, by class id.

    Raises:
        ArgumentInvalid: A name that the model does not have, or an empty list.

    Example:
        >>> wanted_ids(["Person"], ["car", "person"])
        (1,)
    """
    if classes is None:
        return None
    if not classes or isinstance(classes, str):
        raise ArgumentInvalid(
            f"classes: expected a list of class names, got {classes!r}",
            remedy="leave it out to have all classes",
        )
    known = {name: number for number, name in enumerate(names)}
    for name in classes:
        if name.lower() not in known:
            raise ArgumentInvalid(
                f"the model has no class {name!r}",
                cause=f"its classes are {', '.join(names)}",
                remedy=nearest(name.lower(), names),
            )
    return tuple(sorted({known[name.lower()] for name in classes}))


def nearest(name: str, names: Sequence[str]) -> str:
    """Returns a sentence that names the most similar of the names, or all when none is similar.

    Example:
        >>> nearest("persn", ["car", "person"])
        "did you mean 'person'?"
    """
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(names)}"


def read_facts(metadata: Mapping[str, str], path: Path) -> Facts:
    """Returns what a model file says about itself.

    Args:
        metadata: The custom metadata of the ONNX file.
        path: The file, for the error.

    Raises:
        ArgumentInvalid: The metadata is missing or not of the form described in this module.
    """
    try:
        if "videoflow" in metadata:
            said = json.loads(metadata["videoflow"])
            names = tuple(str(name).lower() for name in said["class_names"])
            facts = Facts(str(said["decode"]), names, float(said["scale"]), float(said["offset"]))
        else:
            by_id = ast.literal_eval(metadata["names"])
            names = tuple(str(by_id[number]).lower() for number in range(len(by_id)))
            facts = Facts("yolo", names, 1 / 255, 0.0)
    except (KeyError, ValueError, TypeError, SyntaxError) as error:
        raise ArgumentInvalid(
            f"the model file {path.name} does not say how to read it",
            cause=f"metadata entries {sorted(metadata) or 'none'}: {type(error).__name__}: {error}",
            remedy="add the metadata entry 'videoflow': JSON with decode, class_names, scale and offset",
        ) from error
    if facts.decode not in {"ssd", "yolo"}:
        raise ArgumentInvalid(
            f"the model file {path.name} has outputs of an unknown kind {facts.decode!r}",
            remedy="decode is 'ssd' or 'yolo'",
        )
    return facts
