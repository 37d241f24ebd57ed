"""Declaration of a workspace: reads its descriptor, checks it, and multiplies its numbers."""

from collections.abc import Iterable
from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.ports import COLUMN_WORDS, WORD_BITS, memory_request, memory_response
from isa.workspace import DESCRIPTOR_BYTES
from pe.config import PeConfig
from pe.extensions.workspace import DESCRIPTOR_SHIFT, declared, declaring, workspace_bounds

from .workspace import KERNEL_BITS, PIXEL_BITS, geometry

#: The words of a descriptor behind its addresses: names, bits that a number may have, its field's.
_NUMBERS = (
    ("width", PIXEL_BITS, 16),
    ("height", PIXEL_BITS, 16),
    ("pixel", PIXEL_BITS, 16),
    ("output_width", PIXEL_BITS, 16),
    ("output_height", PIXEL_BITS, 16),
    ("kernel", KERNEL_BITS, 8),
    ("stride", KERNEL_BITS, 8),
    ("padding", KERNEL_BITS, 8),
)
#: Products in order: name, factors. A factor is a number of the descriptor or an earlier product.
_PRODUCTS = (
    ("run", "pixel", "kernel"),
    ("row", "run", "kernel"),
    ("line", "row", "output_width"),
    ("window_bytes", "line", "output_height"),
    ("pitch", "pixel", "width"),
    ("image_bytes", "pitch", "height"),
    ("hop", "pitch", "stride"),
    ("top", "pitch", "padding"),
    ("step", "pixel", "stride"),
    ("margin", "pixel", "padding"),
)
#: Cycles from the descriptor's last word until the workspace is declared: per product one for its
#: factors, one for each bit of the second, and one to store it; the checks take one.
DECLARATION_CYCLES = 1 + sum(
    2 + bits for _, _, second in _PRODUCTS for name, bits, _ in _NUMBERS if name == second
)
#: Bits of the largest product.
_MOST = 3 * PIXEL_BITS + 2 * KERNEL_BITS
assert DESCRIPTOR_BYTES == COLUMN_WORDS * WORD_BITS // 8


class Declaration(Component):
    """Declares a workspace (:mod:`isa.workspace`).

    One request reads the descriptor. A multiplier that processes one bit per cycle then computes
    the products that loads from the workspace need, which leaves them only additions.

    Members:
        declare, descriptor, forget: :func:`pe.extensions.workspace.declaring`, in.
        declared, refused: :func:`pe.extensions.workspace.declared`, out.
        request: stream of :func:`hdl.ports.memory_request`, out.
        response: stream of :func:`hdl.ports.memory_response`, in.
        busy: out; a declaration is in progress. error: out; memory answered with an error, so the
            declaration failed.
        known, window, window_end, image, image_end:
            :func:`pe.extensions.workspace.workspace_bounds`, out.
        geometry: :func:`pe.lsu.workspace.geometry`, out; while ``known``.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__(
            {
                **declaring(config).inputs(),
                **declared().outputs(),
                "request": Out(
                    stream.Signature(memory_request(config.address_bits, config.tag_bits))
                ),
                "response": In(stream.Signature(memory_response(config.tag_bits))),
                "busy": Out(1),
                "error": Out(1),
                **workspace_bounds(config).outputs(),
                "geometry": Out(geometry(config)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        number: Any = Signal(
            data.StructLayout({name: bits for name, bits, _ in _NUMBERS}),
            name="number",
            reset_less=True,
        )
        invalid = Signal()
        product = _Multiplier(m)
        parts = self.geometry
        stored: Any = Signal(self._stored(), name="product", reset_less=True)
        m.d.comb += [
            # Stored in the image's place, as a stop may remove the instruction.
            self.request.payload.address.eq(self.image),
            self.request.payload.words.eq(COLUMN_WORDS - 1),
            self.request.payload.strobe.eq(-1),
            self.request.payload.last.eq(1),
            parts.window.eq(self.window),
        ]
        copied = ("height", "output_width", "kernel", "stride", "padding")
        m.d.comb += [parts[name].eq(number[name]) for name in copied]
        m.d.comb += [parts[name].eq(stored[name]) for name in stored.shape().members]
        with m.If(self.forget):
            m.d.sync += self.known.eq(0)
        with m.Switch(product.number):
            for index, (_, first, _) in enumerate(_PRODUCTS):
                with m.Case(index):
                    factor = stored[first] if first in stored.shape().members else number[first]
                    m.d.comb += product.first.eq(factor)
        place = Signal(range(COLUMN_WORDS))
        m.d.comb += self.busy.eq(1)
        with m.FSM():
            with m.State("REST"):
                m.d.comb += self.busy.eq(0)
                m.d.sync += invalid.eq(0)
                with m.If(self.declare):
                    m.d.sync += [
                        self.known.eq(0),
                        self.image.eq(Cat(Const(0, DESCRIPTOR_SHIFT), self.descriptor)),
                    ]
                    m.next = "REQUEST"
            with m.State("REQUEST"):
                m.d.comb += self.request.valid.eq(1)
                with m.If(self.request.ready):
                    m.next = "WORDS"
            with m.State("WORDS"):
                m.d.comb += self.response.ready.eq(1)
                with m.If(self.response.valid):
                    m.d.sync += place.eq(Mux(self.response.payload.last, 0, place + 1))
                    self._take(m, place, number, invalid)
                    with m.If(self.response.payload.last):
                        m.d.comb += self.error.eq(self.response.payload.error)
                        m.next = "FACTORS"
                        with m.If(self.response.payload.error):
                            m.next = "REST"
            with m.State("FACTORS"):
                self._factors(m, product, number)
                m.next = "MULTIPLY"
            with m.State("MULTIPLY"):
                with m.If(product.left == 0):
                    self._keep(m, product, stored, invalid)
                    m.d.sync += product.number.eq(product.number + 1)
                    m.next = "FACTORS"
                    with m.If(product.number == len(_PRODUCTS) - 1):
                        m.d.sync += product.number.eq(0)
                        m.next = "CHECK"
            with m.State("CHECK"):
                m.d.sync += invalid.eq(invalid | self._is_invalid(number))
                m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += [self.declared.eq(1), self.refused.eq(invalid)]
                m.d.sync += self.known.eq(~invalid & ~self.forget)
                m.next = "REST"
        m.d.comb += parts.origin.eq(self.image - product.top)
        return m

    def _take(self, m: Module, place: Signal, number: Any, invalid: Signal) -> None:
        """Keep the numbers of the word that has come, the one at ``place``."""
        word = self.response.payload.data
        bits = self.config.address_bits
        aligned = self.config.scratchpad_alignment.bit_length() - 1
        with m.Switch(place):
            for index, name in enumerate(("image", "window")):
                with m.Case(index):
                    m.d.sync += [
                        getattr(self, name).eq(word),
                        invalid.eq(invalid | word[bits:].any() | word[:aligned].any()),
                    ]
            low = 0
            for index, names in ((2, _NUMBERS[:4]), (3, _NUMBERS[4:])):
                low = 0
                wrong: Value = Const(0, 1)
                with m.Case(index):
                    for name, width, field in names:
                        value = word[low : low + field]
                        m.d.sync += number[name].eq(value)
                        wrong = wrong | value[width:].any()
                        if name != "padding":
                            wrong = wrong | ~value.any()
                        if name == "pixel":
                            wrong = wrong | value[:aligned].any()
                        low += field
                    m.d.sync += invalid.eq(invalid | wrong | word[low:].any())

    def _stored(self) -> data.StructLayout:
        """The products that are members of the geometry."""
        layout = geometry(self.config)
        names = {name for name, _ in layout}
        return data.StructLayout(
            {name: layout[name].shape for name, _, _ in _PRODUCTS if name in names}
        )

    def _factors(self, m: Module, product: "_Multiplier", number: Any) -> None:
        """Begin the product of this turn."""
        widths = {name: bits for name, bits, _ in _NUMBERS}
        m.d.sync += product.total.eq(0)
        with m.Switch(product.number):
            for index, (_, _, second) in enumerate(_PRODUCTS):
                with m.Case(index):
                    bits = widths[second]
                    m.d.sync += [
                        product.second.eq(number[second] << (PIXEL_BITS - bits)),
                        product.left.eq(bits),
                    ]

    def _keep(self, m: Module, product: "_Multiplier", stored: Any, invalid: Signal) -> None:
        """Store the product of this turn."""
        beyond = 1 << self.config.address_bits
        with m.Switch(product.number):
            for index, (name, _, _) in enumerate(_PRODUCTS):
                with m.Case(index):
                    if name in self._stored().members:
                        m.d.sync += stored[name].eq(product.total)
                    elif name == "top":
                        m.d.sync += product.top.eq(product.total)
                    else:
                        part = name.removesuffix("_bytes")
                        end = Signal(_MOST + 1, name=f"{part}_stop")
                        m.d.comb += end.eq(getattr(self, part) + product.total)
                        m.d.sync += [
                            getattr(self, f"{part}_end").eq(end),
                            invalid.eq(invalid | (end > beyond)),
                        ]

    def _is_invalid(self, number: Any) -> Value:
        """Whether the kernel is too large, or window and image overlap."""
        around = number.padding << 1
        sizes: Iterable[Value] = (number.width, number.height)
        wrong = Cat(
            (self.window < self.image_end) & (self.image < self.window_end),
            *(number.kernel > size + around for size in sizes),
        )
        return wrong.any()


class _Multiplier:
    """Doubles the product and adds the first factor, for each bit of the second one.

    Attributes:
        number: of the product. first: factor, constant meanwhile. second: what is left of the other
            factor, its next bit on top. left: bits of it. total: of the product.
        top: bytes of the padding rows above the image.
    """

    def __init__(self, m: Module) -> None:
        self.number = Signal(range(len(_PRODUCTS)), name="product")
        self.first = Signal(_MOST - KERNEL_BITS, name="first_factor")
        self.second = Signal(PIXEL_BITS, name="second_factor", reset_less=True)
        self.left = Signal(range(PIXEL_BITS + 1), name="bits_left", reset_less=True)
        self.total = Signal(_MOST, name="total", reset_less=True)
        self.top = Signal(2 * PIXEL_BITS + KERNEL_BITS, name="top", reset_less=True)
        # `FACTORS` follows these and wins.
        m.d.sync += [
            self.second.eq(self.second << 1),
            self.left.eq(self.left - 1),
            self.total.eq((self.total << 1) + Mux(self.second[-1], self.first, 0)),
        ]
