"""Converts the person detector of `@mediapipe/objectron` from TFLite to the ONNX file that videoflow ships.

Used by whoever renews `src/videoflow/nodes/vision/models/person-ssd.onnx`; users of videoflow never
need it. It needs NumPy, `onnx`, and the npm package's asset file, and refuses a model with an operator
that it does not know.

    npm pack @mediapipe/objectron && tar xf mediapipe-objectron-*.tgz
    python tools/convert_person_ssd.py package/objectron_solution_packed_assets.data \
        src/videoflow/nodes/vision/models/person-ssd.onnx

The asset file holds a label map (bytes 0 to 184) and an SSD-MobileNetV2 for 300x300 images (bytes 184
to 9987912). Weights stay in half precision and are cast to single precision when a session loads them.
TFLite's `SAME` padding is written out as explicit pads, since ONNX's `SAME_UPPER` depends on the
run-time's reading of it. TFLite tensors are (N, H, W, C), ONNX tensors (N, C, H, W).
"""

import argparse
import hashlib
import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LABELS = slice(0, 184)
MODEL = slice(184, 9_987_912)
INPUT_SIZE = 300
OPSET = 17
SAME_PADDING = 0
NO_ACTIVATION, RELU6 = 0, 3
DTYPES = {0: np.float32, 1: np.float16, 2: np.int32}
Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


@dataclass(frozen=True)
class Table:
    """One table of a FlatBuffer: a byte position whose fields are found through its vtable."""

    data: bytes
    at: int

    @classmethod
    def root(cls, data: bytes) -> "Table":
        """Returns the table that a FlatBuffer starts with."""
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def _field(self, index: int) -> int | None:
        vtable = self.at - struct.unpack_from("<i", self.data, self.at)[0]
        size = struct.unpack_from("<H", self.data, vtable)[0]
        slot = 4 + 2 * index
        offset = struct.unpack_from("<H", self.data, vtable + slot)[0] if slot < size else 0
        return self.at + offset if offset else None

    def scalar(self, index: int, code: str, default: int = 0) -> int:
        """Returns an integer field, `code` being its `struct` letter."""
        at = self._field(index)
        return default if at is None else int(struct.unpack_from("<" + code, self.data, at)[0])

    def table(self, index: int) -> "Table":
        """Returns a field that holds one table; an absent one reads as a table without fields."""
        at = self._field(index)
        if at is None:
            return Table(struct.pack("<HHi", 4, 4, 4), 4)
        return Table(self.data, at + struct.unpack_from("<I", self.data, at)[0])

    def _vector(self, index: int) -> tuple[int, int]:
        at = self._field(index)
        if at is None:
            return 0, 0
        start = at + struct.unpack_from("<I", self.data, at)[0]
        return start + 4, struct.unpack_from("<I", self.data, start)[0]

    def tables(self, index: int) -> list["Table"]:
        """Returns a field that holds a vector of tables."""
        start, count = self._vector(index)
        places = range(start, start + 4 * count, 4)
        return [Table(self.data, at + struct.unpack_from("<I", self.data, at)[0]) for at in places]

    def integers(self, index: int) -> list[int]:
        """Returns a field that holds a vector of 32-bit integers."""
        start, count = self._vector(index)
        return list(struct.unpack_from(f"<{count}i", self.data, start))

    def octets(self, index: int) -> bytes:
        """Returns a field that holds bytes or a string."""
        start, count = self._vector(index)
        return self.data[start : start + count]


@dataclass(frozen=True)
class Tensor:
    """A TFLite tensor: its shape, and its constant value where it has one."""

    shape: tuple[int, ...]
    value: Array | None


@dataclass
class Converter:
    """Collects ONNX nodes and initialisers while walking the operators of one TFLite graph."""

    tensors: list[Tensor]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initialisers: list[onnx.TensorProto] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    constants: dict[int, Array] = field(default_factory=dict)
    channels_first: set[int] = field(default_factory=set)

    def emit(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Adds one node and returns the name of its output."""
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def store(self, value: Array) -> str:
        """Adds an initialiser; half precision is followed by a cast to single precision."""
        name = f"weight_{len(self.initialisers)}"
        self.initialisers.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        if value.dtype == np.float16:
            return self.emit("Cast", [name], to=TensorProto.FLOAT)
        return name

    def activate(self, name: str, activation: int) -> str:
        """Adds the activation that TFLite fuses into an operator."""
        if activation == NO_ACTIVATION:
            return name
        if activation != RELU6:
            raise ValueError(f"activation {activation} is not known here")
        return self.emit(
            "Clip", [name, self.store(np.array(0, np.float32)), self.store(np.array(6, np.float32))]
        )

    def convolution(self, inputs: list[int], output: int, options: Table, depthwise: bool) -> str:
        """Adds a convolution with explicit pads."""
        weights = self.constants[inputs[1]]
        stride = (options.scalar(2, "i", 1), options.scalar(1, "i", 1))
        kernel = weights.shape[1:3]
        sizes = self.tensors[inputs[0]].shape[1:3], self.tensors[output].shape[1:3]
        padding = options.scalar(0, "b")
        before, after = [], []
        for size, out, step, length in zip(*sizes, stride, kernel, strict=True):
            total = max((out - 1) * step + length - size, 0) if padding == SAME_PADDING else 0
            before.append(total // 2)
            after.append(total - total // 2)
        layout = (3, 0, 1, 2) if depthwise else (0, 3, 1, 2)
        out_name = self.emit(
            "Conv",
            [
                self.names[inputs[0]],
                self.store(weights.transpose(layout)),
                self.store(self.constants[inputs[2]]),
            ],
            kernel_shape=list(kernel),
            strides=list(stride),
            pads=before + after,
            group=weights.shape[3] if depthwise else 1,
        )
        return self.activate(out_name, options.scalar(4 if depthwise else 3, "b"))

    def head(self, inputs: list[int], output: int) -> str:
        """Adds the reshape of one prediction head to (N, anchors, values)."""
        name = self.names[inputs[0]]
        if inputs[0] in self.channels_first:
            name = self.emit("Transpose", [name], perm=[0, 2, 3, 1])
        shape = np.array([0, -1, self.tensors[output].shape[-1]], np.int64)
        return self.emit("Reshape", [name, self.store(shape)])


def read_tensors(model: Table, graph: Table) -> list[Tensor]:
    """Returns the tensors of a TFLite graph, constants with their values."""
    buffers = model.tables(4)
    tensors = []
    for table in graph.tables(0):
        shape = tuple(table.integers(0))
        octets = buffers[table.scalar(2, "I")].octets(0)
        dtype = DTYPES[table.scalar(1, "b")]
        tensors.append(Tensor(shape, np.frombuffer(octets, dtype).reshape(shape) if octets else None))
    return tensors


def operators(converter: Converter) -> dict[int, Callable[[list[int], int, Table], str | None]]:
    """Returns what to do for each TFLite operator code."""

    def dequantize(inputs: list[int], output: int, _: Table) -> None:
        value = converter.tensors[inputs[0]].value
        if value is None:
            raise ValueError(f"tensor {inputs[0]} is quantised but not constant")
        converter.constants[output] = value

    def convolve(inputs: list[int], output: int, options: Table) -> str:
        converter.channels_first.add(output)
        return converter.convolution(inputs, output, options, depthwise=False)

    def convolve_depthwise(inputs: list[int], output: int, options: Table) -> str:
        converter.channels_first.add(output)
        return converter.convolution(inputs, output, options, depthwise=True)

    def add(inputs: list[int], output: int, options: Table) -> str:
        converter.channels_first.add(output)
        total = converter.emit("Add", [converter.names[i] for i in inputs])
        return converter.activate(total, options.scalar(0, "b"))

    def concatenate(inputs: list[int], _output: int, _options: Table) -> str:
        return converter.emit("Concat", [converter.names[i] for i in inputs], axis=1)

    return {
        0: add,
        2: concatenate,
        3: convolve,
        4: convolve_depthwise,
        6: dequantize,
        22: lambda inputs, output, _: converter.head(inputs, output),
    }


def convert(asset: bytes) -> onnx.ModelProto:
    """Returns the ONNX model of the asset file's detector.

    Input `image` is (N, 3, 300, 300) float32 RGB in [-1, 1]; outputs are `boxes` (N, 1917, 4) raw
    encodings (y, x, height, width) and `scores` (N, 1917, 24) in [0, 1], column 0 the background.
    """
    labels = asset[LABELS].decode().strip().split("\n")
    model = Table.root(asset[MODEL])
    graph = model.tables(2)[0]
    codes = [max(code.scalar(0, "b"), code.scalar(3, "i")) for code in model.tables(1)]
    converter = Converter(read_tensors(model, graph))
    converter.names[graph.integers(1)[0]] = "image"
    known = operators(converter)
    for operator in graph.tables(3):
        code = codes[operator.scalar(0, "I")]
        if code not in known:
            raise ValueError(f"TFLite operator {code} is not known here")
        output = operator.integers(2)[0]
        name = known[code](operator.integers(1), output, operator.table(4))
        if name is not None:
            converter.names[output] = name
    boxes, logits = (converter.names[i] for i in graph.integers(2))
    converter.nodes.append(helper.make_node("Identity", [boxes], ["boxes"], name="boxes"))
    converter.nodes.append(helper.make_node("Sigmoid", [logits], ["scores"], name="scores"))
    return assemble(converter, [label.lower() for label in labels[1:]])


def assemble(converter: Converter, class_names: list[str]) -> onnx.ModelProto:
    """Returns the finished model, with the facts that the detector node reads from its metadata."""
    size = INPUT_SIZE
    graph = helper.make_graph(
        converter.nodes,
        "person-ssd",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, size, size])],
        [
            helper.make_tensor_value_info("boxes", TensorProto.FLOAT, ["n", 1917, 4]),
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 1917, 24]),
        ],
        initializer=converter.initialisers,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="videoflow")
    made.ir_version = 8
    facts = {
        "decode": "ssd",
        "class_names": class_names,
        "scale": 1 / 127.5,
        "offset": -1.0,
        "licence": "Apache-2.0",
        "origin": "@mediapipe/objectron, object_detection_ssd_mobilenetv2_oidv4_fp16.tflite",
    }
    helper.set_model_props(made, {"videoflow": json.dumps(facts, sort_keys=True)})
    onnx.checker.check_model(made, full_check=True)
    return made


def main() -> None:
    """Parses the command line, converts, writes the model and its sha256 file."""
    parser = argparse.ArgumentParser(description="Convert the person detector to ONNX.")
    parser.add_argument("asset", type=Path)
    parser.add_argument("target", type=Path)
    chosen = parser.parse_args()
    octets = convert(chosen.asset.read_bytes()).SerializeToString(deterministic=True)
    chosen.target.write_bytes(octets)
    digest = hashlib.sha256(octets).hexdigest()
    chosen.target.with_suffix(".onnx.sha256").write_text(f"{digest}  {chosen.target.name}\n")


if __name__ == "__main__":
    main()
