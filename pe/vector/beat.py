"""Fields that travel with the data of a beat through the stages of the vector unit.

Two bits travel separately, as only they need a reset: ``complete``, the value of the beat is whole
(not an earlier pass of a product, not an empty cycle), and ``write``, the value of the row is whole
too and is to be written.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Const, Module, Mux, ShapeLike, Signal, Value, signed
from amaranth.lib import data

from hdl.clock_gate import needs_clock
from hdl.packing import Packing
from hdl.simd import one_of
from isa.table import MAX_FX, ReductionOp, Width
from isa.timing import WORD_BYTES
from pe.capabilities import FOLDED, Capabilities
from pe.config import PeConfig

#: Bits of the number of the last byte used in a word.
TAIL_BITS = (WORD_BYTES - 1).bit_length()
#: Bits of the second operand's lanes that a pass multiplies with.
LIMB_BITS = 16
#: Bits of a 64-bit product that a half of it has beyond 64.
BELOW_BITS = 2 * LIMB_BITS
#: Bits of the number of a pass.
PASS_BITS = 2
#: Bits of the codes of :class:`isa.table.Width` and :class:`isa.table.ReductionOp`.
WIDTH_BITS = max(Width).bit_length()
REDUCTION_BITS = max(ReductionOp).bit_length()


def _packings(config: PeConfig) -> tuple[Capabilities, Packing, Packing]:
    """Fields of the vector instructions, and encodings of ``product`` and ``broadcast``."""
    caps = Capabilities.of(config).vector
    return caps, caps.flag(caps.products), caps.flag(caps.broadcast)


def result_beat(config: PeConfig) -> data.StructLayout:
    """Fields beside a finished value; to be read by :class:`ResultFields`, as those that the
    instructions do not need have no bits.

    Members:
        width: code of :class:`isa.table.Width`.
        product: the value is a product, to be shifted.
        reduction: code of :class:`isa.table.ReductionOp`; 0: element-wise.
        tail: number of the last byte used in the word; 7 for a whole one.
        address: scratchpad byte address of the result.
        fx: fraction bits of a product; 0 otherwise.
    """
    caps, product, _ = _packings(config)
    return data.StructLayout(
        {
            "width": caps.width.shape,
            "product": product.shape,
            "reduction": caps.reduction.shape,
            "tail": TAIL_BITS,
            "address": config.scratchpad_bits,
            "fx": MAX_FX.bit_length() if Capabilities.of(config).vector.products.rows else 0,
        }
    )


@dataclass(frozen=True)
class ResultFields:
    """The members of a :func:`result_beat` at their full width."""

    width: Value
    product: Value
    reduction: Value
    tail: Value
    address: Value
    fx: Value

    @staticmethod
    def of(config: PeConfig, beat: Any) -> "ResultFields":
        """The fields of ``beat``, decoded."""
        caps, product, _ = _packings(config)
        return ResultFields(
            width=caps.width.unpack(beat.width),
            product=product.unpack(beat.product),
            reduction=caps.reduction.unpack(beat.reduction),
            tail=beat.tail,
            address=beat.address,
            fx=beat.fx,
        )


def value_beat(config: PeConfig) -> data.StructLayout:
    """Beside the value of a beat.

    Members:
        result: :func:`result_beat`.
        first: it starts a row (1 element-wise; without reductions no bit).
        pairs: elements are pairs; to be read by :func:`numbers_of`.
    """
    caps = Capabilities.of(config).vector
    return data.StructLayout(
        {
            "result": result_beat(config),
            "first": int(bool(caps.reductions)),
            "pairs": caps.pairs.shape,
        }
    )


def operand_beat(config: PeConfig) -> data.StructLayout:
    """Beside the operands of a beat.

    Members:
        value: :func:`value_beat`.
        vertical: code of :class:`isa.table.VerticalOp`.
        broadcast: the second operand is the first element of its word.
        pass_index: which 16 bits of the second operand's lanes to multiply with.

    The last three are to be read by :func:`vertical_of`, :func:`broadcast_of`, and as they are.
    """
    caps, _, broadcast = _packings(config)
    return data.StructLayout(
        {
            "value": value_beat(config),
            "vertical": caps.vertical.shape,
            "broadcast": broadcast.shape,
            "pass_index": pass_bits(config),
        }
    )


def keep_place(m: Module, platform: object, config: PeConfig, result: Any, write: Value) -> None:
    """Clock the fields of a registered :func:`result_beat` that only a write needs when there is
    one to ``write``."""
    if config.sram == "macro":
        with m.If(~needs_clock(m, platform, write, config.sram)):
            m.d.sync += [field.eq(field) for field in (result.address, result.fx)]


def numbers_of(config: PeConfig, beat: Any) -> Value:
    """The code of :class:`isa.table.Width` of the numbers in a :func:`value_beat` that are
    multiplied: of elements, or of each of a pair of them."""
    caps = Capabilities.of(config).vector
    width = ResultFields.of(config, beat.result).width
    if not any(row.pairs for row in caps.rows):
        return width
    return Mux(caps.pairs.unpack(beat.pairs), Width.W8, width)


def pass_bits(config: PeConfig) -> int:
    """Bits of the number of a pass."""
    return (Capabilities.of(config).vector.most_passes - 1).bit_length()


def vertical_of(config: PeConfig, operands: Any) -> Value:
    """The code of :class:`isa.table.VerticalOp` of an :func:`operand_beat`."""
    return _packings(config)[0].vertical.unpack(operands.vertical)


def broadcast_of(config: PeConfig, operands: Any) -> Value:
    """Whether the second operand of an :func:`operand_beat` is one element."""
    return _packings(config)[2].unpack(operands.broadcast)


def is_width(code: Value, widths: Iterable[Width], needs: Capabilities) -> Value:
    """1 when the width of an instruction of ``needs`` is one of ``widths``."""
    return one_of(code, widths, needs.widths)


def lanes_of(m: Module, code: Value, needs: Capabilities) -> list[tuple[int, Value]]:
    """Each lane width of ``needs`` in bits, ascending, and a signal: 1 while lanes have it."""
    lanes: list[tuple[int, Value]] = []
    for width in sorted(needs.widths):
        active = Signal(name=f"lanes_of_{width.bits}")
        m.d.comb += active.eq(is_width(code, [width], needs))
        lanes.append((width.bits, active))
    return lanes


def is_reduced(code: Value, needs: Capabilities) -> Value:
    """1 when the instruction of ``needs`` with this code of the reduction has one."""
    possible = {int(reduction) for reduction in needs.reductions}
    if needs.elementwise.rows:
        possible.add(0)
    return one_of(code, ReductionOp, possible)


def is_product(code: Value, needs: Capabilities) -> Value:
    """1 when the instruction of ``needs`` with this bit ``product`` multiplies."""
    return one_of(code, [1], needs.flag(needs.products).values)


def narrow_bits(config: PeConfig) -> int:
    """Bits of the value of a row of narrow elements, with one more for differences of them. In
    gates the stages have zeros beyond them and not the sign, which would move with every beat.
    Elsewhere, and where no value has more bits, this is more than any has."""
    needs = Capabilities.of(config).vector
    bits = needs.reduced.of_widths(FOLDED).total_bits + 1
    zeros = config.sram == "macro" and needs.reduced.of_widths(FOLDED).rows
    return bits if zeros and bits < needs.total_bits else needs.total_bits + 2


def is_narrow(m: Module, config: PeConfig, result: ResultFields) -> Value:
    """Whether ``result`` is of a row of narrow elements with zeros beyond :func:`narrow_bits`."""
    needs = Capabilities.of(config).vector
    if narrow_bits(config) > needs.total_bits:
        return Const(0, 1)
    narrow = Signal(name="of_narrow")
    m.d.comb += narrow.eq(
        is_reduced(result.reduction, needs) & is_width(result.width, FOLDED, needs)
    )
    return narrow


def value_pair(needs: Capabilities) -> data.StructLayout:
    """Output of the vertical stage to the horizontal one; members that nothing needs are absent.

    Members:
        lower, upper: signed. Element-wise: the lanes; products have twice the elements' width and
            fill both. Of a row to be reduced: elements of 64 bits, or two values to be combined,
            narrow ones with zeros beyond :func:`narrow_bits`.
        below_lower, below_upper: products of 64-bit elements are
            ``lower:below_lower + (upper:below_upper << 32)``, 96-bit numbers both.
    """
    members: dict[str, ShapeLike] = {"lower": signed(needs.lower_bits)}
    if needs.upper_bits:
        members["upper"] = signed(needs.upper_bits)
    if needs.has_long_products:
        members |= {"below_lower": BELOW_BITS, "below_upper": BELOW_BITS}
    return data.StructLayout(members)
