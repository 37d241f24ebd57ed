"""Range check: the scratchpad ranges and DRAM bytes of an instruction, and its faults."""

from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.ports import COLUMN_BITS, COLUMN_BYTES
from isa.faults import FaultCause
from isa.table import INSTRUCTIONS, MAX_FX, Extent, Opcode, Unit, Width
from pe.capabilities import Capabilities
from pe.codes import ControlOp, IssueClass
from pe.config import PeConfig
from pe.extensions.units import extension_outputs, extensions
from pe.vector.settings import element_bits

from .arc import RANGES, UNIT_BYTES, scratchpad_range
from .decode import issued

#: Bits of the causes that an instruction and its operands' values can have on a full engine.
CAUSE_BITS = FaultCause.DRAM_RANGE.bit_length()


def _forms() -> dict[Opcode, tuple[Extent, ...]]:
    """Operand forms of vector instructions: the elements at the addresses A, B and C."""
    forms: dict[Opcode, tuple[Extent, ...]] = {}
    for row in INSTRUCTIONS:
        if row.unit is Unit.VECTOR:
            extents = tuple(operand.extent for operand in row.scratchpad)
            # An instruction of a given form may ignore its last operand.
            forms[Opcode(row.opcode)] = max(extents, forms.get(Opcode(row.opcode), ()), key=len)
    return forms


_FORMS = _forms()


def cause_bits(config: PeConfig) -> int:
    """Bits of the causes that an instruction can have on an engine of ``config``."""
    narrow = FaultCause.REGISTER_RANGE.bit_length() if config.narrow else CAUSE_BITS
    return max(narrow, operand_cause_bits(config))


def operand_cause_bits(config: PeConfig) -> int:
    """Bits of the causes in the operands' values of a vector or load-store instruction."""
    added = (extension.last_cause.bit_length() for extension in extensions(config))
    return max((CAUSE_BITS, *added))


def byte_bits(config: PeConfig) -> int:
    """Bits of a number of bytes in the scratchpad, up to all of it."""
    return config.scratchpad_bits + 1


def value_faults(config: PeConfig) -> data.StructLayout:
    """Faults in the values of a vector or load-store instruction's operands.

    Members:
        outside: a bit for each range: it leaves the scratchpad or is not aligned as it must be.
        misaligned: the DRAM address is not aligned. dram: the DRAM bytes leave the memory.

    Members that no instruction of ``config`` needs have no bits.
    """
    memory = int(bool(Capabilities.of(config).memory))
    return data.StructLayout({"outside": RANGES, "misaligned": memory, "dram": memory})


def cause_of(faults: Any) -> Value:
    """:class:`isa.faults.FaultCause` of :func:`value_faults`; the lowest if there are several."""
    return Mux(
        faults.outside.any(),
        FaultCause.SCRATCHPAD_RANGE,
        Mux(
            faults.misaligned.any(),
            FaultCause.MISALIGNED,
            Mux(faults.dram.any(), FaultCause.DRAM_RANGE, FaultCause.NONE),
        ),
    )


class RangeCheck(Component):
    """Combinational: the bytes that an instruction touches, from its operands' values.

    Members:
        decoded: :func:`pe.frontend.decode.issued`, in. a, b, c: in, values of the registers.
        vl, mr, elements: in, vector settings.
        ranges: array of :func:`pe.frontend.arc.scratchpad_range`, out: where A, B and C point.
        bytes: out; length of a load or store. columns: out; DRAM columns that it touches.
        is_empty: out; it is a load or store of no bytes. dram: out; its DRAM address.
        faults: out; :func:`value_faults` of a vector or load-store instruction.
        bad_setting: out; the instruction sets VL, MR or FX to a value out of range.

    Extensions have further outputs (:meth:`pe.extensions.extension.LsuExtension.outputs`).
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        width = config.register_width
        super().__init__(
            {
                "decoded": In(issued(config)),
                "a": In(width),
                "b": In(width),
                "c": In(width),
                "vl": In(config.vl_bits),
                "mr": In(config.mr_bits),
                "elements": In(element_bits(config)),
                "ranges": Out(scratchpad_range(config)).array(RANGES),
                "bytes": Out(byte_bits(config)),
                "columns": Out(config.column_count_bits),
                "is_empty": Out(1),
                "dram": Out(config.address_bits),
                "faults": Out(value_faults(config)),
                "bad_setting": Out(1),
                **extension_outputs(config, "range_check"),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        d = self.decoded
        caps = Capabilities.of(config)
        kind, width = d.kind, caps.width.unpack(d.width)
        vector = Signal()
        transfer = Signal()
        memory = caps.is_unit(d.unit, IssueClass.LOAD_STORE)
        store, register = caps.is_store(kind), caps.is_register(kind)
        m.d.comb += [
            vector.eq(caps.is_unit(d.unit, IssueClass.VECTOR)),
            transfer.eq(memory & ~register),
        ]
        counts = self._counts(m)

        # Lengths in elements, as wide as the largest not refused by its upper bits.
        length = self.c[: byte_bits(config)]
        long = self.c[byte_bits(config) :].any() & transfer
        used = (
            vector | (transfer & ~store),
            vector | (transfer & store),
            (vector & d.reads_c) if caps.binary else Const(0, 1),
        )
        outside = self._ranges(m, vector, transfer, used, counts, length)

        address = Mux(store, self.a, self.b)
        size = Signal(byte_bits(config))
        low = config.address_bits + 1
        end = Signal(low + 1)
        misaligned = Signal()
        ones = (Const(1, max(Width) + 1) << width) - 1
        m.d.comb += [
            size.eq(Mux(register, 1, length) << width),
            end.eq(address[:low] + size),
            misaligned.eq((address[: max(Width)] & ones[: max(Width)]).any()),
            self.bytes.eq(size),
            self.is_empty.eq(transfer & (size == 0)),
            self.dram.eq(address),
            self.columns.eq((address[:COLUMN_BITS] + size + COLUMN_BYTES - 1) >> COLUMN_BITS),
        ]
        faults = self.faults
        if config.scratchpad_alignment > min(caps.reduced.widths, default=max(Width)).bytes:
            long = long | self._ragged(m, vector)
        m.d.comb += faults.outside.eq(outside | Cat(long))
        if caps.memory:
            # The sign is among the upper bits even where it is the only one.
            upper = address[min(low, len(address) - 1) :]
            m.d.comb += [
                faults.dram.eq(memory & (upper.any() | (end > 1 << config.address_bits))),
                faults.misaligned.eq(memory & Mux(register, misaligned, self._unaligned(address))),
            ]
        m.d.comb += self.bad_setting.eq(self._bad_setting())
        for extension in extensions(config):
            extension.check(m, self, end)
        return m

    def _unaligned(self, place: Value) -> Value:
        """Whether ``place`` lacks the alignment required of transfers and operands."""
        return place[: self.config.scratchpad_alignment.bit_length() - 1].any()

    def _ragged(self, m: Module, vector: Value) -> Value:
        """Whether a vector instruction has a matrix whose rows lack that alignment."""
        caps = Capabilities.of(self.config)
        # Rows follow each other without gaps.
        row = Signal(self.config.vl_bits + max(Width), name="row_bytes")
        m.d.comb += row.eq(self.vl << caps.width.unpack(self.decoded.width))
        reduces = caps.is_form(self.decoded.kind, Opcode.MATRIX_VECTOR)
        return vector & (reduces & self._unaligned(row))

    def _ranges(
        self,
        m: Module,
        vector: Value,
        transfer: Value,
        used: tuple[Value, ...],
        counts: list[Value],
        length: Value,
    ) -> Signal:
        """The ranges at A, B and C that are ``used``, of a vector instruction with ``counts``
        elements, or of a transfer of ``length``; the result says which of them have a fault."""
        config = self.config
        caps = Capabilities.of(config)
        width = caps.width.unpack(self.decoded.width)
        outside = Signal(RANGES)
        unit_shift = (UNIT_BYTES - 1).bit_length()
        for number, (r, value) in enumerate(
            zip(self.ranges, (self.a, self.b, self.c), strict=True)
        ):
            count: Value = counts[number]
            if number < 2 and caps.transfers:
                count = Mux(transfer, length, count) if caps.vector else length
            size = Signal(len(count) + max(Width), name=f"size_{number}")
            end = Signal(max(len(size), byte_bits(config)) + 1, name=f"range_end_{number}")
            # The scratchpad ends with a unit: the rounded end leaves it exactly if the range does.
            end_unit = end[unit_shift:]
            m.d.comb += [
                size.eq(count << width),
                end.eq(value[: byte_bits(config)] + size + (UNIT_BYTES - 1)),
                r.used.eq(used[number] & (size != 0)),
                r.start.eq(value),
                r.end.eq(end_unit),
                r.writes.eq(vector if number == 0 else 0),
                outside[number].eq(
                    used[number]
                    & (
                        value[byte_bits(config) :].any()
                        | (end_unit > config.scratchpad_bytes // UNIT_BYTES)
                        | self._unaligned(value)
                    )
                ),
            ]
        return outside

    def _counts(self, m: Module) -> list[Value]:
        """Elements in each range of a vector instruction, by its operand form."""
        caps = Capabilities.of(self.config)
        elements = {Extent.ELEMENT: 1, Extent.ROWS: self.mr, Extent.MATRIX: self.elements}
        counts: list[Value] = [self.vl] * RANGES
        for form, extents in _FORMS.items():
            special_extents = [extent for extent in extents if extent is not Extent.VECTOR]
            if not special_extents:
                continue
            chosen = Signal(name=special_extents[-1].name.lower())
            m.d.comb += chosen.eq(caps.is_form(self.decoded.kind, form))
            for number, extent in enumerate(extents):
                if extent in elements and (caps.reduced or not extent.by_mr):
                    counts[number] = Mux(chosen, elements[extent], counts[number])
        return counts

    def _bad_setting(self) -> Value:
        """Whether the instruction sets VL, MR or FX to a value out of range."""
        caps = Capabilities.of(self.config)
        control = self.decoded.control
        limits = {
            ControlOp.SET_VL: self.config.max_vl,
            ControlOp.SET_MR: self.config.max_mr,
        }
        is_length = {
            bound: caps.control.is_one_of(
                control, [op.value for op, limit in limits.items() if limit == bound]
            )
            for bound in sorted(set(limits.values()))
        }
        bad: Value = Const(0, 1)
        for bound, sets_length in is_length.items():
            bad = bad | (sets_length & ((self.a == 0) | (self.a > bound)))
        is_fraction = caps.control.is_one_of(control, [ControlOp.SET_FX.value])
        bad = bad | (is_fraction & (self.a > MAX_FX))
        return caps.is_unit(self.decoded.unit, IssueClass.CONTROL) & bad
