"""Reduces four numbers to one in little more time than one comparison."""

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from isa.table import ReductionOp

from .component import Component
from .simd import one_of, signed_less


class QuadReducer(Component):
    """Combines four signed numbers by add, min or max, without loss, combinational.

    All four comparisons that may decide between the winners of two pairs are made at the same time
    as the first ones. This suits FPGAs, whose carries are fast and whose multiplexers are slow.

    Parameters:
        bits: of a number.
        operations: its reductions; not empty.

    Members:
        values (in, 4 signed numbers of ``bits``): operands.
        use (in, 4): a 0 excludes a number from min and max. The first is always used, the last only
            with the third. For add, unused numbers must be 0.
        reduction (in, 3): code of :class:`isa.table.ReductionOp`.
        active (in, 1): enables the result.
        result (out, signed, bits + 2): 0 unless ``active``.
    """

    def __init__(self, bits: int, operations: frozenset[ReductionOp]) -> None:
        self.bits = bits
        self.operations = operations
        super().__init__(
            {
                "values": In(signed(bits)).array(4),
                "use": In(4),
                "reduction": In(max(ReductionOp).bit_length()),
                "active": In(1),
                "result": Out(signed(bits + 2)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        values = list(self.values)
        add = one_of(self.reduction, [ReductionOp.ADD], self.operations)
        least = one_of(self.reduction, [ReductionOp.MIN], self.operations - {ReductionOp.ADD})

        def beats(other: int, one: int) -> Value:
            """Whether number ``other`` is selected over ``one``, if both are used."""
            return signed_less(values[one], values[other], chained=True) ^ least

        first, second = Signal(name="first_pair"), Signal(name="second_pair")
        across = Signal()
        best = Signal(signed(self.bits))
        total = Signal(signed(self.bits + 2))
        bits = len(total)
        m.d.comb += [
            first.eq(self.use[1] & beats(1, 0)),
            second.eq(self.use[3] & beats(3, 2)),
            across.eq(
                self.use[2]
                & Mux(
                    first,
                    Mux(second, beats(3, 1), beats(2, 1)),
                    Mux(second, beats(3, 0), beats(2, 0)),
                )
            ),
            best.eq(
                Mux(
                    across,
                    Mux(second, values[3], values[2]),
                    Mux(first, values[1], values[0]),
                )
            ),
            total.eq((values[0] + values[1]) + (values[2] + values[3])),
            self.result.eq(
                (total & (self.active & add).replicate(bits))
                | (Cat(best, best[-1], best[-1]) & (self.active & ~add).replicate(bits))
            ),
        ]
        return m
