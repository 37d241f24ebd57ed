"""A wide memory with several write ports, built from an FPGA's block RAMs."""

from functools import reduce
from operator import xor

from amaranth.hdl import Elaboratable, Module, Signal, Value, ValueLike
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from .component import Component


class CodedReadPort(wiring.Signature):
    """Read port, seen from the user.

    Members:
        enable (out, 1): read ``address``.
        address (out, address_bits): word to read.
        data (in, width): the word, in the cycle after ``enable``; held until the cycle after the
            next one. A lane that is written in the same cycle is undefined.
    """

    def __init__(self, width: int, address_bits: int) -> None:
        super().__init__({"enable": Out(1), "address": Out(address_bits), "data": In(width)})


class CodedWritePort(wiring.Signature):
    """Write port, seen from the user.

    Members:
        next_address (out, address_bits): address of a write in the next cycle.
        address (out, address_bits): ``next_address`` of the previous cycle.
        data (out, width): word to write.
        lanes (out, lanes): lanes to write, at the end of the cycle. A lane that two ports write in
            one cycle or in successive ones is undefined.
    """

    def __init__(self, width: int, lanes: int, address_bits: int) -> None:
        super().__init__(
            {
                "next_address": Out(address_bits),
                "address": Out(address_bits),
                "data": Out(width),
                "lanes": Out(lanes),
            }
        )


class CodedRam(Component):
    """Words of several lanes with any number of read and write ports, made of simple dual-port RAMs
    (one write, one read port).

    Each write port owns a RAM, and the word is the XOR of all of them: a write stores its data
    XORed with the contents of the other RAMs at its address, which must therefore be known one
    cycle ahead. Unlike a live value table, this needs no storage that itself has several write
    ports. Each RAM is copied for each port that reads it: all read ports, and the other write
    ports. All start with 0.

    Parameters:
        width: bits of a word; a multiple of ``lanes``.
        lanes: at least 1.
        depth: words; a power of two, at least 2.
        read_ports, write_ports: at least 1 each.

    Members:
        read (in, ``read_ports`` :class:`CodedReadPort`): read ports.
        write (in, ``write_ports`` :class:`CodedWritePort`): write ports.
    """

    def __init__(
        self, *, width: int, lanes: int, depth: int, read_ports: int, write_ports: int
    ) -> None:
        self.width = width
        self.lanes = lanes
        self.depth = depth
        self.read_ports = read_ports
        self.write_ports = write_ports
        bits = (depth - 1).bit_length()
        super().__init__(
            {
                "read": In(CodedReadPort(width, bits)).array(read_ports),
                "write": In(CodedWritePort(width, lanes, bits)).array(write_ports),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        coded = [Signal(self.width, name=f"coded_{port}") for port in range(self.write_ports)]

        def copy(owner: int, reader: str, enable: ValueLike, address: Value) -> Value:
            """Output of a copy of RAM ``owner``, one cycle after ``enable``."""
            memory: Memory[int, Value] = Memory(
                shape=self.width, depth=self.depth, init=[], attrs={"ram_style": "block"}
            )
            m.submodules[f"ram_{owner}_for_{reader}"] = memory
            read = memory.read_port()
            write = memory.write_port(granularity=self.width // self.lanes)
            m.d.comb += [
                write.en.eq(self.write[owner].lanes),
                write.addr.eq(self.write[owner].address),
                write.data.eq(coded[owner]),
                read.en.eq(enable),
                read.addr.eq(address),
            ]
            return read.data

        owners = range(self.write_ports)
        for number, port in enumerate(self.write):
            parts = [
                copy(owner, f"write_{number}", 1, port.next_address)
                for owner in owners
                if owner != number
            ]
            m.d.comb += coded[number].eq(reduce(xor, parts, port.data))
        for number, port in enumerate(self.read):
            parts = [copy(owner, f"read_{number}", port.enable, port.address) for owner in owners]
            m.d.comb += port.data.eq(reduce(xor, parts))
        return m
