"""A serial line of eight data bits, no parity and one stop bit."""

from amaranth.hdl import Cat, Const, Elaboratable, Module, Signal
from amaranth.lib import stream
from amaranth.lib.cdc import FFSynchronizer  # type: ignore[import-untyped]
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import ConfigurationError

#: Fewest cycles of a bit: the middle of a bit must be met after synchronisation.
FEWEST_CYCLES = 4
_BITS = 8


class Uart(Component):
    """Joins the two wires of a serial line to streams of bytes.

    A byte whose stop bit is 0 is dropped, and so is one that arrives while the one before waits.

    Parameters:
        divisor: cycles of a bit, 4..65536.

    Members:
        rx (in, 1): from the line, asynchronous. tx (out, 1): to the line.
        received (out, stream of bytes): from the line.
        sent (in, stream of bytes): to the line.

    Raises:
        ConfigurationError: ``divisor`` outside its range.
    """

    def __init__(self, *, divisor: int) -> None:
        if not FEWEST_CYCLES <= divisor <= 1 << 16:
            raise ConfigurationError(
                f"a bit of a serial line has {FEWEST_CYCLES} to {1 << 16} cycles, not {divisor!r}"
            )
        self.divisor = divisor
        super().__init__(
            {
                "rx": In(1),
                "tx": Out(1),
                "received": Out(stream.Signature(_BITS)),
                "sent": In(stream.Signature(_BITS)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        self._receive(m)
        self._send(m)
        return m

    def _receive(self, m: Module) -> None:
        line = Signal(init=1)
        m.submodules.line = FFSynchronizer(self.rx, line, init=1)
        before = Signal(init=1)
        m.d.sync += before.eq(line)
        timer = Signal(range(2 * self.divisor))
        # Bits still to come: the data's and the stop bit.
        left = Signal(range(_BITS + 2))
        bits = Signal(_BITS)
        with m.If(left == 0):
            # The first sample is in the middle of bit 0.
            m.d.sync += timer.eq(self.divisor + self.divisor // 2 - 2)
            with m.If(before & ~line):
                m.d.sync += left.eq(_BITS + 1)
        with m.Elif(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Else():
            m.d.sync += [timer.eq(self.divisor - 1), left.eq(left - 1)]
            with m.If(left != 1):
                m.d.sync += bits.eq(Cat(bits[1:], line))
        free = ~self.received.valid | self.received.ready
        with m.If(self.received.ready):
            m.d.sync += self.received.valid.eq(0)
        with m.If((left == 1) & (timer == 0) & line & free):
            m.d.sync += [self.received.valid.eq(1), self.received.payload.eq(bits)]

    def _send(self, m: Module) -> None:
        timer = Signal(range(self.divisor))
        left = Signal(range(_BITS + 3))
        # Bit 0 is on the line; ones follow the stop bit.
        bits = Signal(_BITS + 1, init=(1 << (_BITS + 1)) - 1)
        m.d.comb += [self.tx.eq(bits[0]), self.sent.ready.eq(left == 0)]
        with m.If(left == 0):
            with m.If(self.sent.valid):
                m.d.sync += [
                    bits.eq(Cat(Const(0, 1), self.sent.payload)),
                    left.eq(_BITS + 2),
                    timer.eq(self.divisor - 1),
                ]
        with m.Elif(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Else():
            m.d.sync += [
                bits.eq(Cat(bits[1:], Const(1, 1))),
                timer.eq(self.divisor - 1),
                left.eq(left - 1),
            ]
