"""Synchronous multi-port memory: all storage in VIP beyond a few registers."""

from typing import Any, get_args

from amaranth.hdl import ClockSignal, Elaboratable, Instance, Module, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from .component import Component
from .config import ConfigurationError, SramKind
from .sram_fpga import DISTRIBUTED_DEPTH, elaborate_fpga
from .sram_macro import SramGeometry


class SramReadPort(wiring.Signature):
    """Read port, seen from the user.

    Members:
        enable (out, 1): read ``address``.
        address (out, address_bits): word to read.
        data (in, width): the word, in the cycle after ``enable``; held until the cycle after the
            next one. A word written in the same cycle is undefined: old or new.
    """

    def __init__(self, width: int, address_bits: int) -> None:
        super().__init__({"enable": Out(1), "address": Out(address_bits), "data": In(width)})


class SramWritePort(wiring.Signature):
    """Write port, seen from the user.

    Two ports that write one word in one cycle leave it undefined.

    Members:
        enable (out, 1): write at the end of the cycle.
        address (out, address_bits): word to write.
        data (out, width): its value.
    """

    def __init__(self, width: int, address_bits: int) -> None:
        super().__init__({"enable": Out(1), "address": Out(address_bits), "data": Out(width)})


class SramSharedPort(wiring.Signature):
    """Port that reads or writes a word in a cycle, seen from the user.

    Members:
        enable (out, 1): access ``address``.
        write (out, 1): write there at the end of the cycle, else read.
        address (out, address_bits): word to access.
        word (out, width): what is written.
        data (in, width): the word, in the cycle after a read; undefined from the cycle after the
            next access on. A word that another port writes in the same cycle is undefined: old or
            new.
    """

    def __init__(self, width: int, address_bits: int) -> None:
        super().__init__(
            {
                "enable": Out(1),
                "write": Out(1),
                "address": Out(address_bits),
                "word": Out(width),
                "data": In(width),
            }
        )


def _check(width: int, depth: int, ports: int, kind: SramKind, kinds: tuple[SramKind, ...]) -> None:
    """Refuse what no memory has; ``ports``: the fewest that it has of a sort."""
    if width < 1 or ports < 1:
        raise ConfigurationError("an SRAM needs a width and ports of at least 1")
    if depth < 2 or depth & (depth - 1):
        raise ConfigurationError(f"SRAM depth must be a power of two, not {depth}")
    if kind not in kinds:
        raise ConfigurationError(f"SRAM kind must be one of {', '.join(kinds)}, not {kind!r}")


class Sram(Component):
    """Memory of ``depth`` words of ``width`` bits with any number of read and write ports.

    Parameters:
        width: bits of a word, at least 1.
        depth: words; a power of two, at least 2.
        read_ports, write_ports: at least 1 each; for an FPGA, 1 write port in memories deeper than
            :data:`hdl.sram_fpga.DISTRIBUTED_DEPTH`.
        kind: ``behavioural`` for simulation, ``fpga`` for block or LUT RAM
            (:mod:`hdl.sram_fpga`), ``macro`` for a black box (:mod:`hdl.sram_macro`), which
            Amaranth's simulator can't run. The first two start with all bits 0, but Verilog of more
            than :data:`hdl.verilog.CLEARED_WORDS` words leaves that to the device.

    Members:
        read (in, ``read_ports`` :class:`SramReadPort`): read ports.
        write (in, ``write_ports`` :class:`SramWritePort`): write ports.

    Raises:
        ConfigurationError: a parameter outside its range.
    """

    def __init__(
        self, *, width: int, depth: int, read_ports: int, write_ports: int, kind: SramKind
    ) -> None:
        _check(width, depth, min(read_ports, write_ports), kind, get_args(SramKind))
        if kind == "fpga" and depth > DISTRIBUTED_DEPTH and write_ports > 1:
            raise ConfigurationError(
                f"an SRAM for an FPGA deeper than {DISTRIBUTED_DEPTH} has 1 write port, "
                f"not {write_ports}; hdl.coded_ram has more"
            )
        self.width = width
        self.depth = depth
        self.read_ports = read_ports
        self.write_ports = write_ports
        self.kind = kind
        self.geometry = SramGeometry(depth, width, read_ports, write_ports)
        #: Name of the module in emitted Verilog.
        self.module_name = self.geometry.name.removeprefix("vip_")
        bits = self.geometry.address_bits
        super().__init__(
            {
                "read": In(SramReadPort(width, bits)).array(read_ports),
                "write": In(SramWritePort(width, bits)).array(write_ports),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        if self.kind == "fpga":
            return elaborate_fpga(
                width=self.width,
                depth=self.depth,
                reads=[(port.enable, port.address, port.data) for port in self.read],
                writes=[(port.enable, port.address, port.data) for port in self.write],
            )
        return self._macro() if self.kind == "macro" else self._behavioural()

    def _behavioural(self) -> Module:
        m = Module()
        memory: Memory[int, Value] = Memory(shape=self.width, depth=self.depth, init=[])
        m.submodules.words = memory
        for port in self.write:
            write = memory.write_port()
            m.d.comb += [write.en.eq(port.enable), write.addr.eq(port.address)]
            m.d.comb += write.data.eq(port.data)
        for port in self.read:
            read = memory.read_port()
            m.d.comb += [read.en.eq(port.enable), read.addr.eq(port.address)]
            m.d.comb += port.data.eq(read.data)
        return m

    def _macro(self) -> Module:
        m = Module()
        connections: dict[str, Any] = {"i_clk": ClockSignal()}
        for number, port in enumerate(self.read):
            connections[f"i_r{number}_en"] = port.enable
            connections[f"i_r{number}_addr"] = port.address
            connections[f"o_r{number}_data"] = port.data
        for number, port in enumerate(self.write):
            connections[f"i_w{number}_en"] = port.enable
            connections[f"i_w{number}_addr"] = port.address
            connections[f"i_w{number}_data"] = port.data
        m.submodules.macro = Instance(self.geometry.name, **connections)
        return m


class SharedSram(Component):
    """As :class:`Sram`, with ports that either read or write in a cycle.

    Parameters:
        width, depth: as there. ports: at least 1.
        kind: ``behavioural`` or ``macro``.

    Members:
        port (in, ``ports`` :class:`SramSharedPort`). Two that write one word in one cycle leave it
            undefined.

    Raises:
        ConfigurationError: a parameter outside its range.
    """

    def __init__(self, *, width: int, depth: int, ports: int, kind: SramKind) -> None:
        _check(width, depth, ports, kind, ("behavioural", "macro"))
        self.width = width
        self.depth = depth
        self.ports = ports
        self.kind = kind
        self.geometry = SramGeometry(depth, width, 0, 0, ports)
        #: Name of the module in emitted Verilog.
        self.module_name = self.geometry.name.removeprefix("vip_")
        signature = SramSharedPort(width, self.geometry.address_bits)
        super().__init__({"port": In(signature).array(ports)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        if self.kind == "macro":
            connections: dict[str, Any] = {"i_clk": ClockSignal()}
            for number, port in enumerate(self.port):
                connections |= {
                    f"i_rw{number}_en": port.enable,
                    f"i_rw{number}_write": port.write,
                    f"i_rw{number}_addr": port.address,
                    f"i_rw{number}_word": port.word,
                    f"o_rw{number}_data": port.data,
                }
            m.submodules.macro = Instance(self.geometry.name, **connections)
            return m
        memory: Memory[int, Value] = Memory(shape=self.width, depth=self.depth, init=[])
        m.submodules.words = memory
        for port in self.port:
            write, read = memory.write_port(), memory.read_port()
            m.d.comb += [
                write.en.eq(port.enable & port.write),
                read.en.eq(port.enable & ~port.write),
                write.addr.eq(port.address),
                read.addr.eq(port.address),
                write.data.eq(port.word),
                port.data.eq(read.data),
            ]
        return m
