"""Multi-port memories built from an FPGA's simple dual-port RAMs (one write, one read port).

A RAM is copied for each port that reads it. Shallow memories use distributed (LUT) RAM, which is
read in the same cycle, so that several write ports can be built by XOR coding as in
:mod:`hdl.coded_ram`. Others use block RAM and have one write port.
"""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib.memory import Memory, ReadPort, WritePort

#: Memories of at most this many words use distributed RAM (one RAM64 primitive per bit in Xilinx
#: 7-series, four 16-word ones in ECP5).
DISTRIBUTED_DEPTH = 64

#: ``enable``, ``address`` and ``data`` of a port.
PortSignals = tuple[Value, Value, Value]


def elaborate_fpga(
    *, width: int, depth: int, reads: list[PortSignals], writes: list[PortSignals]
) -> Module:
    """Logic of a memory with the contract of :class:`hdl.sram.Sram`.

    Parameters:
        width, depth: bits of a word, words.
        reads, writes: signals of the ports; ``data`` of a read port is driven. One write port only
            if ``depth`` is above :data:`DISTRIBUTED_DEPTH`.
    """
    if depth <= DISTRIBUTED_DEPTH:
        return _Distributed(width, depth, reads, writes).build()
    return _Block(width, depth, reads, writes).build()


class _Builder:
    """RAM ``w`` in as many copies as ports read it."""

    style: str
    read_domain: str

    def __init__(
        self, width: int, depth: int, reads: list[PortSignals], writes: list[PortSignals]
    ) -> None:
        self.m = Module()
        self.width = width
        self.depth = depth
        self.reads = reads
        self.writes = writes

    def copy(self, owner: int, reader: str) -> "tuple[ReadPort[int, Value], WritePort[int, Value]]":
        """A new copy of RAM ``owner``, for the port named ``reader``."""
        memory: Memory[int, Value] = Memory(
            shape=self.width, depth=self.depth, init=[], attrs={"ram_style": self.style}
        )
        self.m.submodules[f"ram_{owner}_for_{reader}"] = memory
        return memory.read_port(domain=self.read_domain), memory.write_port()

    def register(self, name: str, width: int) -> Signal:
        """A register without reset: it is read only after it was written."""
        return Signal(width, name=name, reset_less=True)


def _xor(values: list[Value]) -> Value:
    first, *terms = values
    for other in terms:
        first = first ^ other
    return first


class _Distributed(_Builder):
    style = "distributed"
    read_domain = "comb"

    def build(self) -> Module:
        m = self.m
        coded = [Signal(self.width, name=f"coded_{port}") for port in range(len(self.writes))]
        for port, (_, address, data) in enumerate(self.writes):
            terms = [
                self.lookup(owner, f"write_{port}", address, coded)
                for owner in range(len(self.writes))
                if owner != port
            ]
            m.d.comb += coded[port].eq(_xor([data, *terms]))
        for port, (enable, address, data) in enumerate(self.reads):
            codes = [
                self.lookup(owner, f"read_{port}", address, coded)
                for owner in range(len(self.writes))
            ]
            latched = self.register(f"held_{port}", self.width)
            with m.If(enable):
                m.d.sync += latched.eq(_xor(codes))
            m.d.comb += data.eq(latched)
        return m

    def lookup(self, owner: int, reader: str, address: Value, coded: list[Signal]) -> Value:
        """RAM ``owner`` at ``address``, from a copy of its own."""
        read, write = self.copy(owner, reader)
        enable, write_address, _ = self.writes[owner]
        self.m.d.comb += [
            read.addr.eq(address),
            write.en.eq(enable),
            write.addr.eq(write_address),
            write.data.eq(coded[owner]),
        ]
        return read.data


class _Block(_Builder):
    style = "block"
    read_domain = "sync"

    def build(self) -> Module:
        m = self.m
        ((write_enable, write_address, write_data),) = self.writes
        for port, (enable, address, data) in enumerate(self.reads):
            read, write = self.copy(0, f"read_{port}")
            m.d.comb += [
                write.en.eq(write_enable),
                write.addr.eq(write_address),
                write.data.eq(write_data),
                read.en.eq(enable),
                read.addr.eq(address),
                data.eq(read.data),
            ]
        return m
