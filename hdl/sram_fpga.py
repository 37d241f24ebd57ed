"""Multi-port memories out of the simple dual-port RAMs (one write, one read port) of an FPGA.

A RAM is copied for each port that reads it. Several write ports are built by XOR coding: write port
``w`` owns RAM ``w``, the word is the XOR of all RAMs, and a write stores its data XORed with what
the other RAMs hold at that address. Unlike a table of the port that wrote last, this needs no
storage of its own that would itself have several write ports.

Shallow memories use distributed (LUT) RAM, which is read in the same cycle; others use block RAM,
whose reads take a cycle: there a write is performed one cycle late, and a read that meets a late
write is given its data. All RAMs start with 0, so that all copies agree.
"""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib.memory import Memory, ReadPort, WritePort

__all__ = ["DISTRIBUTED_DEPTH", "PortSignals", "elaborate_fpga"]

#: Memories of at most so many words use distributed RAM (one RAM64 primitive a bit in Xilinx
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
        reads, writes: signals of the ports; ``data`` of a read port is driven.
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

    def copy(self, owner: int, reader: str) -> tuple[ReadPort, WritePort]:
        """A new copy of RAM ``owner``, for the port named ``reader``."""
        memory: Memory = Memory(
            shape=self.width, depth=self.depth, init=[], attrs={"ram_style": self.style}
        )
        self.m.submodules[f"ram_{owner}_for_{reader}"] = memory
        return memory.read_port(domain=self.read_domain), memory.write_port()

    def register(self, name: str, width: int) -> Signal:
        """A register without reset: it is read only after it was written."""
        return Signal(width, name=name, reset_less=True)


def _xor(values: list[Value]) -> Value:
    first, *others = values
    for other in others:
        first = first ^ other
    return first


class _Distributed(_Builder):
    style = "distributed"
    read_domain = "comb"

    def build(self) -> Module:
        m = self.m
        coded = [Signal(self.width, name=f"coded_{port}") for port in range(len(self.writes))]
        for port, (_, address, data) in enumerate(self.writes):
            others = [
                self.lookup(owner, f"write_{port}", address, coded)
                for owner in range(len(self.writes))
                if owner != port
            ]
            m.d.comb += coded[port].eq(_xor([data, *others]))
        for port, (enable, address, data) in enumerate(self.reads):
            found = [
                self.lookup(owner, f"read_{port}", address, coded)
                for owner in range(len(self.writes))
            ]
            held = self.register(f"held_{port}", self.width)
            with m.If(enable):
                m.d.sync += held.eq(_xor(found))
            m.d.comb += data.eq(held)
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
        if len(self.writes) == 1:
            self.single()
        else:
            self.several()
        return self.m

    def single(self) -> None:
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

    def several(self) -> None:
        m = self.m
        address_bits = (self.depth - 1).bit_length()
        owners = range(len(self.writes))
        # What each port performs in this cycle: the write asked for in the one before.
        late = [Signal(name=f"late_{port}") for port in owners]
        late_address = [self.register(f"late_address_{port}", address_bits) for port in owners]
        late_data = [self.register(f"late_data_{port}", self.width) for port in owners]
        coded = [Signal(self.width, name=f"coded_{port}") for port in owners]
        for port, (enable, address, data) in enumerate(self.writes):
            m.d.sync += late[port].eq(enable)
            with m.If(enable):
                m.d.sync += [late_address[port].eq(address), late_data[port].eq(data)]

        def performed(reader: str, owner: int, enable: Value, address: Value) -> Value:
            """Output of a copy of RAM ``owner``, one cycle after ``enable``."""
            read, write = self.copy(owner, reader)
            m.d.comb += [
                write.en.eq(late[owner]),
                write.addr.eq(late_address[owner]),
                write.data.eq(coded[owner]),
                read.en.eq(enable),
                read.addr.eq(address),
            ]
            return read.data

        def meets(owner: int, address: Value) -> Value:
            return late[owner] & (late_address[owner] == address)

        for port, (enable, address, _) in enumerate(self.writes):
            parts: list[Value] = [late_data[port]]
            for owner in owners:
                if owner == port:
                    continue
                name = f"write_{port}_{owner}"
                stored = performed(f"write_{port}", owner, enable, address)
                met = self.register(f"met_{name}", 1)
                newer = self.register(f"newer_{name}", self.width)
                with m.If(enable):
                    m.d.sync += [met.eq(meets(owner, address)), newer.eq(coded[owner])]
                parts.append(Mux(met, newer, stored))
            m.d.comb += coded[port].eq(_xor(parts))

        for port, (enable, address, data) in enumerate(self.reads):
            stored = _xor([performed(f"read_{port}", owner, enable, address) for owner in owners])
            met = self.register(f"met_read_{port}", 1)
            newer = self.register(f"newer_read_{port}", self.width)
            with m.If(enable):
                m.d.sync += met.eq(0)
                for owner in owners:
                    with m.If(meets(owner, address)):
                        m.d.sync += [met.eq(1), newer.eq(late_data[owner])]
            m.d.comb += data.eq(Mux(met, newer, stored))
