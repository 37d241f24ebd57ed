"""Four numbers reduced to one in the time of little more than one comparison."""

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from isa.table import ReductionOp

from .component import Component
from .simd import one_of, signed_less

__all__ = ["QuadReducer"]


class QuadReducer(Component):
    """Combines four signed numbers by add, min or max, without loss, combinational.

    The winners of two pairs are compared before it is known who they are, by all four comparisons
    that it can come to. That is for FPGAs, whose carries are fast and whose choices are slow.

    Parameters:
        bits: of a number.
        operations: the reductions that it can do; not empty.

    Members:
        values: in, array of 4, signed. use: in, a bit for each: 0 keeps it out of min and max. The
            first is always used, the last only with the third. For add, numbers not used must be 0.
        reduction: in; code of :class:`isa.table.ReductionOp`. active: in.
        result: out, signed; 0 unless ``active``.
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
            """Whether number ``other`` is chosen over ``one``, if both are used."""
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
