"""A module mapped to an FPGA within the shell of :mod:`synth.physical.shell`."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from hdl.emission import Emission
from synth.errors import SynthesisError

from .devices import Device
from .shell import SHELL, ShellPort, ports_of, shell_ffs, shell_verilog
from .targets import ecp5_commands, find_target
from .units import closure
from .yosys import Run, run

__all__ = ["MappedInShell", "map_in_shell"]


@dataclass(frozen=True)
class MappedInShell:
    """A mapped module.

    Attributes:
        used: measure -> number of it, without the shell's flip-flops.
        netlist: of module and shell, a file of Yosys's JSON, gzipped.
        what: names the work in messages.
    """

    used: dict[str, float]
    netlist: Path
    what: str


def map_in_shell(
    emission: Emission,
    module: str,
    device: Device,
    of_memory: Callable[[ShellPort], bool] = lambda _: False,
) -> MappedInShell:
    """Map a module of ``emission`` to ECP5, cached by content.

    Parameters:
        device: that it must fit.
        of_memory: whether a port belongs to the memory's clock.

    Raises:
        SynthesisError: a design that does not fit (the message gives the shortage), or a tool that
            is missing or fails.
    """
    ports = ports_of(module, emission.modules[module])
    memory: Collection[str] = {port.name for port in ports if of_memory(port)}
    sources = {name: emission.modules[name] for name in closure(emission, module)}
    work = Run(
        top=SHELL,
        sources={**sources, SHELL: shell_verilog(module, ports, memory)},
        commands=ecp5_commands(),
        netlist=True,
    )
    label = f"{module} on {device.name}"
    mapped = run(work, what=f"synthesis of {label}")
    counts = find_target("ecp5").count(mapped, frozenset())
    lacking = device.shortage(counts)
    if lacking:
        raise SynthesisError(f"{label}: it does not fit: it needs {lacking}")
    assert mapped.netlist is not None
    used = {measure: _plain(value) for measure, value in counts.items()}
    used["ffs"] -= shell_ffs(ports)
    return MappedInShell(used, mapped.netlist, label)


def _plain(value: float) -> float:
    return int(value) if value == int(value) else value
