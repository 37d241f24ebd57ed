"""Folders of compiled models: programs, memory, launches, and a manifest that describes them.

======================  ==========================================================================
``manifest.json``       :data:`SCHEMA`: model, machine, maps, launches, digests of all files
``programs/NNN.vip``    programs; launches name them
``memory.bin``          what must be in memory before the first launch, one segment after the other
``segments.json``       address and bytes of each segment
``weights.npz``         weights as elements
``model.onnx``          the model, as it was given
``listing.txt``         launches, and the listing of each program
======================  ==========================================================================
"""

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from isa.program import Program, listing
from isa.run import Launch
from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import Elements
from microkernels.networks.jobs import NetworkLayout
from microkernels.networks.network import INPUT, MapSize, Network, kind_named
from microkernels.networks.parameters import Weights
from microkernels.onnx_models.calibrate import MapReport
from microkernels.onnx_models.errors import ModelError, one_line
from microkernels.onnx_models.model import Value
from support.checks import shown
from support.errors import VipError
from support.files import naming, read_bytes, write_file


def network_to_json(network: Network) -> dict[str, Any]:
    """A network as plain data."""
    layers = [{"kind": type(layer).__name__, **asdict(layer)} for layer in network.layers]
    attributes = {"input": network.input, "input_bits": network.input_bits, "layers": layers}
    plain: dict[str, Any] = json.loads(json.dumps(attributes, default=list))
    return plain


def network_from_json(content: Any) -> Network:
    """The reverse of :func:`network_to_json`.

    Raises:
        ModelError: it is not such data.
    """
    try:
        layers = []
        for attributes in content["layers"]:
            values = {name: value for name, value in attributes.items() if name != "kind"}
            layers.append(kind_named(attributes["kind"]).stored(values))
        return Network(
            input=MapSize(*content["input"]),
            input_bits=content["input_bits"],
            layers=tuple(layers),
        )
    except (KeyError, TypeError, ValueError, OverflowError, KernelError) as error:
        raise ModelError(f"no description of a network: {one_line(error)}") from error


def save_arrays(weights: Mapping[str, Weights], constants: Mapping[str, Elements]) -> bytes:
    """Weights and constants by layer as the contents of a file of NumPy's (``.npz``)."""
    arrays: dict[str, Any] = {}
    for number, (name, numbers) in enumerate(weights.items()):
        arrays[f"weights{number}"] = numbers.weights
        arrays[f"bias{number}"] = numbers.bias
        arrays[f"name{number}"] = np.array(name)
    for number, (name, values) in enumerate(constants.items()):
        arrays[f"constant{number}"] = values
        arrays[f"constant_name{number}"] = np.array(name)
    content = BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def load_arrays(content: bytes) -> tuple[dict[str, Weights], dict[str, Elements]]:
    """The reverse of :func:`save_arrays`.

    Raises:
        ModelError: it is not such a file.
    """
    try:
        with np.load(BytesIO(content), allow_pickle=False) as file:
            count = sum(name.startswith("weights") for name in file.files)
            weights = {
                str(file[f"name{number}"]): Weights(
                    weights=file[f"weights{number}"], bias=file[f"bias{number}"]
                )
                for number in range(count)
            }
            constant_count = sum(name.startswith("constant_name") for name in file.files)
            constants = {
                str(file[f"constant_name{number}"]): file[f"constant{number}"]
                for number in range(constant_count)
            }
    except (ValueError, OSError, KeyError, EOFError) as error:
        raise ModelError(f"no weights of a compiled model: {one_line(error)}") from error
    return weights, constants


#: Version of the manifest's schema.
SCHEMA = "vip-model-4"
_MOST_BYTES = 1 << 32
_MANIFEST = "manifest.json"


@dataclass(frozen=True, kw_only=True, eq=False)
class CompiledModel:
    """A compiled model.

    Attributes:
        network, weights, constants: layers, and their weights and constant maps as elements; maps
            have the images of a batch.
        folder: that holds it.
        preset: of the machine. batch: images of a run.
        maps: fraction bits, errors and saturated values on the calibration data.
        fractions: of each map, by its layer.
        inputs, outputs: of the model.
        keep: every map keeps its memory.
        carry: output -> input of the next image.
        launches: with the programs of the folder.
    """

    network: Network
    weights: Mapping[str, Weights]
    constants: Mapping[str, Elements]
    folder: Path
    preset: str
    batch: int
    maps: tuple[MapReport, ...]
    fractions: Mapping[str, int]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    keep: bool
    carry: Mapping[str, str]
    launches: tuple[Launch, ...]

    @property
    def model(self) -> Path:
        """The ONNX model."""
        return self.folder / "model.onnx"


def check_new(folder: Path) -> None:
    """Refuse a folder to write that exists.

    Raises:
        ModelError: it exists.
    """
    if folder.exists():
        raise ModelError(f"{folder}: it exists; name a new folder, or remove it first")


def manifest_of(folder: Path) -> Path:
    """The manifest in a folder, or that is given itself."""
    return folder / _MANIFEST if folder.is_dir() else folder


def _programs(launches: Sequence[Launch]) -> tuple[list[Program], list[int]]:
    """Different programs, and the number of each launch's."""
    numbers: dict[tuple[int, ...], int] = {}
    programs: list[Program] = []
    used = []
    for launch in launches:
        words = tuple(launch.program.words)
        if words not in numbers:
            numbers[words] = len(programs)
            programs.append(launch.program)
        used.append(numbers[words])
    return programs, used


def save_folder(compiled: CompiledModel, model: bytes, layout: NetworkLayout) -> None:
    """Write a compiled model: all of it, or nothing.

    Parameters:
        compiled: whose folder must not exist.
        model: contents of the ONNX file.
        layout: of its network.

    Raises:
        ModelError: the folder exists.
        OSError: it can't be written.
    """
    folder = compiled.folder
    check_new(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{folder.name[:40]}.vip-", dir=folder.parent))
    try:
        _fill(work, compiled, model, layout)
        work.chmod(0o755)
        work.rename(folder)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


def _write_programs(work: Path, launches: Sequence[Launch]) -> list[int]:
    """Write programs and their listing; the number of each launch's program."""
    programs, numbers = _programs(launches)
    (work / "programs").mkdir()
    text = []
    for number, program in enumerate(programs):
        program.save(work / "programs" / f"{number:03}.vip")
        users = [
            launch.name for launch, used in zip(launches, numbers, strict=True) if used == number
        ]
        text.append(f"; programs/{number:03}.vip: {', '.join(users)}\n{listing(program)}")
    write_file(work / "listing.txt", "\n".join(text))
    return numbers


class _Segments:
    """A memory whose segments follow each other in a file.

    Attributes:
        places: address and bytes of each.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.places: list[tuple[int, int]] = []

    def write(self, address: int, data: bytes) -> None:
        self.places.append((address, len(data)))
        self._file.write(data)


def _fill(work: Path, compiled: CompiledModel, model: bytes, layout: NetworkLayout) -> None:
    numbers = _write_programs(work, compiled.launches)
    memory = work / "memory.bin"
    maps = {port.layer: port.zeros(compiled.batch) for port in compiled.inputs}
    maps |= compiled.constants
    sources = [layer.name for layer in compiled.network.layers if not layer.computed]
    with naming(memory), memory.open("wb") as file:
        segments = _Segments(file)
        layout.store(segments, compiled.weights)
        layout.store_images(segments, maps[INPUT], {name: maps[name] for name in sources})
    write_file(work / "segments.json", json.dumps(segments.places) + "\n")
    write_file(work / "weights.npz", save_arrays(compiled.weights, compiled.constants))
    write_file(work / "model.onnx", model)
    files, steps = sorted(path for path in work.rglob("*") if path.is_file()), layout.launch_steps
    manifest = {
        "schema": SCHEMA,
        "preset": compiled.preset,
        "batch": compiled.batch,
        "keep": compiled.keep,
        "carry": dict(compiled.carry),
        "vault_bytes": layout.end,
        "inputs": [asdict(port) for port in compiled.inputs],
        "outputs": [asdict(port) for port in compiled.outputs],
        "fractions": dict(compiled.fractions),
        "maps": [asdict(report) for report in compiled.maps],
        "network": network_to_json(compiled.network),
        "launches": [
            {
                "name": launch.name,
                "layer": steps[launch.name].layer_name,
                "program": f"programs/{number:03}.vip",
                "parameters": launch.parameters,
            }
            for launch, number in zip(compiled.launches, numbers, strict=True)
        ],
        "sha256": {
            path.relative_to(work).as_posix(): sha256(path.read_bytes()).hexdigest()
            for path in files
        },
    }
    write_file(work / _MANIFEST, json.dumps(manifest, indent=2) + "\n")


def _port(content: Any) -> Value:
    return Value(
        tensor=str(content["tensor"]),
        shape=tuple(int(axis) for axis in content["shape"]),
        layer=str(content["layer"]),
        size=MapSize(*content["size"]),
        turned=bool(content.get("turned", False)),
        integers=bool(content.get("integers", False)),
        step=float(content.get("step", 1)),
    )


def load_folder(folder: Path) -> CompiledModel:
    """A compiled model from its folder, or the manifest in it.

    Raises:
        ModelError: no such folder, or one whose files were changed.
        OSError: a file can't be read.
    """
    file = manifest_of(folder)
    folder = file.parent
    try:
        manifest: Any = json.loads(read_bytes(file, 1 << 28))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file}: no manifest: {one_line(error)}") from error
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise ModelError(f"{file}: a manifest of schema {SCHEMA} is needed")
    try:
        for name, digest in manifest["sha256"].items():
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise ModelError(f"{file}: {shown(name)} is not in the folder")
            if sha256(read_bytes(folder / name, _MOST_BYTES)).hexdigest() != digest:
                raise ModelError(f"{folder / name}: it was changed; compile the model again")
        weights, constants = load_arrays(read_bytes(folder / "weights.npz", _MOST_BYTES))
        programs = {
            item["program"]: Program.load(folder / item["program"])
            for item in manifest["launches"]
            if item["program"] in manifest["sha256"]
        }
        return CompiledModel(
            folder=folder,
            preset=str(manifest["preset"]),
            batch=int(manifest["batch"]),
            network=network_from_json(manifest["network"]),
            weights=weights,
            constants=constants,
            fractions={str(name): int(value) for name, value in manifest["fractions"].items()},
            inputs=tuple(_port(item) for item in manifest["inputs"]),
            outputs=tuple(_port(item) for item in manifest["outputs"]),
            maps=tuple(MapReport(**item) for item in manifest["maps"]),
            keep=bool(manifest["keep"]),
            carry={str(one): str(other) for one, other in manifest["carry"].items()},
            launches=tuple(
                Launch(
                    program=programs[item["program"]],
                    parameters=int(item["parameters"]),
                    name=str(item["name"]),
                )
                for item in manifest["launches"]
            ),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, VipError):
            raise
        raise ModelError(f"{file}: it lacks or spoils {one_line(error)}") from error
