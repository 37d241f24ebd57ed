"""C++ libraries, compiled on first use."""

import ctypes
import hashlib
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from .cache import build_folder
from .errors import VipError
from .files import copy_atomically, write_file
from .processes import run_tool
from .scratch import plain_folder


class CompilerError(VipError):
    """No C++ compiler was found, or it rejects a source; the message says which."""


def compiler() -> list[str]:
    """The C++ compiler's command, split into words: ``CXX``, by default ``c++``.

    Raises:
        CompilerError: ``CXX`` is not a command.
    """
    compiler = os.environ.get("CXX", "")
    try:
        return shlex.split(compiler) or ["c++"]
    except ValueError as error:
        raise CompilerError(f"CXX can't be understood: {compiler!r}: {error}") from None


def _hiding(exports: str, folder: Path) -> list[str]:
    """Flags that hide all functions except those whose names match ``exports``."""
    script = folder / "exports.map"
    write_file(script, f"{{ global: {exports}; local: *; }};\n")
    return ["-flto=auto", f"-Wl,--version-script={script}"]


def _run(command: Sequence[str], folder: Path) -> "subprocess.CompletedProcess[bytes]":
    """Run a compiler, which leaves files in ``folder`` if killed."""
    return run_tool(
        command,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def _reason(said: bytes) -> str:
    """The first line that reports an error, or the first line."""
    lines = said.decode(errors="replace").split("\n")
    return next((line for line in lines if "error: " in line), lines[0]).strip() or "no message"


def compile_library(
    name: str,
    source: Path,
    flags: Sequence[str],
    *,
    others: Sequence[Path] = (),
    headers: Sequence[Path] = (),
    exports: str | None = None,
    generated: Mapping[str, str] | None = None,
) -> ctypes.CDLL:
    """The library built from ``source``, compiled unless the build folder has it.

    Parameters:
        name: the library's, also in messages.
        source: file in C++.
        flags: of the compiler.
        others: further C++ files, compiled separately.
        headers: other files that ``source`` includes, relative to its folder.
        exports: pattern of the functions called from outside. If the tools can, they hide all
            others and inline functions that are called once.
        generated: headers to write first, name -> text, and to search.

    Raises:
        CompilerError: there is no C++ compiler, or it fails.
    """
    words = compiler()
    # Files of several folders may have the same name.
    texts = [(file.name, file.read_text(encoding="utf-8")) for file in (source, *others, *headers)]
    texts += sorted((generated or {}).items())
    parts = [*words, *flags, exports or "", *(part for item in texts for part in item)]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]
    target = build_folder() / "libraries" / f"{name}-{digest}.so"
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        # Link-time optimisation uses make.
        with plain_folder("compile") as folder:
            for file, text in (generated or {}).items():
                write_file(folder / file, text)
            built = folder / target.name
            command = [*words, *flags, "-shared", "-fPIC", f"-I{folder}", str(source)]
            command += [*map(str, others), "-o", str(built)]
            try:
                done = _run([*command, *_hiding(exports, folder)], folder) if exports else None
                if done is None or done.returncode:
                    done = _run(command, folder)
            except FileNotFoundError:
                raise CompilerError(
                    f"{name} needs a C++ compiler: {words[0]!r} is not on the path"
                ) from None
            if done.returncode:
                raise CompilerError(f"{words[0]} fails on {source.name}: {_reason(done.stderr)}")
            copy_atomically(built, target)
    return ctypes.CDLL(str(target), use_errno=True)
