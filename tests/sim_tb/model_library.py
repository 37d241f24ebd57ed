"""C++ models compiled alone, so that a test can be the hardware around them."""

import ctypes
import subprocess
from pathlib import Path

import sim_tb
from sim_tb.harness.models import Library, Model

_ROOM = Path(sim_tb.__file__).parent / "models"
_COMMAND = ["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-O1"]


def compiled(folder: Path, *models: Model) -> Library:
    """A library of ``models`` and what SystemVerilog calls, without any warning."""
    sources = {str(_ROOM / name) for model in models for name in model.sources}
    for model in models:
        (folder / f"vip_{model.name}.h").write_text(model.header)
        wrapper = folder / f"vip_{model.name}_ports.cpp"
        wrapper.write_text(model.wrapper)
        sources.add(str(wrapper))
    files = sorted(name for name in sources if name.endswith(".cpp"))
    target = folder / "models.so"
    subprocess.run([*_COMMAND, f"-I{folder}", "-o", str(target), *files], check=True)
    return Library(ctypes.CDLL(str(target)))
