"""On-chip memory instead of a range of a vault's addresses."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import ConfigurationError, SramKind
from hdl.emission import shared_instance
from hdl.ports import COLUMN_BYTES, MemoryPort
from support.checks import Checks, shown

from .on_chip import OnChipMemory
from .response_merge import merge_responses

_FEWEST_BYTES = 8 * COLUMN_BYTES
_MOST_BYTES = 1 << 20
_CHECK = Checks(ConfigurationError)


def check_preload(size: int, base: int, vault_bytes: int) -> None:
    """Check the range of a preload memory.

    Parameters:
        size: bytes: 0 (there is none), or a power of two, 256..2**20.
        base: its first byte address in the vault; a multiple of ``size``.
        vault_bytes: of the vault, which holds all of the range.

    Raises:
        ConfigurationError: a value is outside its range.
    """
    _CHECK.whole("preload_base", base)
    if type(size) is int and size == 0:
        if base:
            raise ConfigurationError(
                f"preload_base must be 0 without a preload memory, not {shown(base)}"
            )
        return
    _CHECK.power_of_two("preload_bytes", size, _FEWEST_BYTES, _MOST_BYTES)
    if base % size or not 0 <= base <= vault_bytes - size:
        raise ConfigurationError(
            f"preload_base must be a multiple of preload_bytes ({size}) from 0 to "
            f"{vault_bytes - size}, so that the range is in the vault, not {shown(base)}"
        )


class Preload(Component):
    """Serves a range of a vault's addresses from on-chip memory; it *is* the memory there.

    The other accesses pass to the back end. Host and engines access the range like the rest of the
    vault: the host fills it before a launch, the engines work on it. Its contents are undefined
    after reset. It corresponds to SCRATCH's prefetch memory (MIAOW2.0): data that fit are there
    before the program runs.

    A read in the range is answered from two cycles after its request on, a write two cycles after
    its last beat, if nothing else is being answered; one word per cycle. Accesses that pass take no
    longer than without it, unless their responses meet one of the range. The guarantees of
    :class:`hdl.ports.MemoryPort` hold: a column is on one side, and each side keeps the order.

    Parameters:
        size, base: see :func:`check_preload`; ``size`` not 0.
        address_bits: of a byte address on the port. tag_bits: of the port.
        sram: of the memories, one for each byte of a word.

    Members:
        port (in, :class:`hdl.ports.MemoryPort`): from the requesters.
        memory (out, ``MemoryPort``): to the back end.

    Raises:
        hdl.config.ConfigurationError: a value outside its range.
    """

    def __init__(
        self, *, size: int, base: int, address_bits: int, tag_bits: int, sram: SramKind
    ) -> None:
        check_preload(size, base, 1 << address_bits)
        self.size = size
        self.base = base
        self.address_bits = address_bits
        self.tag_bits = tag_bits
        self.sram = sram
        port = MemoryPort(address_bits=address_bits, tag_bits=tag_bits)
        super().__init__({"port": In(port), "memory": Out(port)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        request = self.port.request
        inside = Signal()
        own_bits = (self.size - 1).bit_length()
        own = OnChipMemory(
            size=self.size, address_bits=own_bits, tag_bits=self.tag_bits, sram=self.sram
        )
        m.submodules.own = shared_instance(own, platform)
        m.d.comb += [
            inside.eq(request.payload.address[own_bits:] == self.base >> own_bits),
            request.ready.eq(Mux(inside, own.port.request.ready, self.memory.request.ready)),
            self.memory.request.valid.eq(request.valid & ~inside),
            self.memory.request.payload.eq(request.payload),
            own.port.request.valid.eq(request.valid & inside),
            *(
                own.port.request.payload[name].eq(request.payload[name])
                for name, _ in request.payload.shape()
            ),
        ]
        answers = own.port.response
        merge_responses(
            m,
            self.port.response,
            self.memory.response,
            answers.valid,
            answers.ready,
            answers.payload,
        )
        return m
