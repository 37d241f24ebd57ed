"""Generator of the program of :mod:`microkernels.networks.lstm_sequence`: time steps in a loop.

The phases of a step are those of :mod:`microkernels.nn.lstm_kernel`. The stream of weights goes on
from step to step: after the last block come the first ones again, so that the ring is full when the
next step begins. A barrier of all engines of the chip ends each phase.
"""

from isa.program import Program
from microkernels.common.builder import WORD_BYTES, KernelBuilder
from microkernels.common.errors import CHECK
from microkernels.common.fixed_point import check_fraction
from microkernels.nn.lstm_kernel import LstmCode, program_name
from microkernels.runtime.chip_barrier import ChipBarrierCode

from .lstm_sequence import FIXED_WORDS, SequenceLayout

__all__ = ["lstm_sequence_program"]


@CHECK.arguments
def lstm_sequence_program(
    layout: SequenceLayout, *, fraction: int, weight_fraction: int | None = None
) -> Program:
    """The program of a sequence.

    Parameters:
        layout: sizes.
        fraction: fraction bits of all numbers but weights and peepholes, 0..15.
        weight_fraction: of these; None: as many.

    Raises:
        KernelError: a fraction outside its range.
    """
    check_fraction(fraction)
    check_fraction(fraction if weight_fraction is None else weight_fraction)
    code = _Sequence(layout, fraction, weight_fraction)
    return code.build().program(program_name(layout.plan))


class _Sequence(LstmCode):
    def __init__(self, layout: SequenceLayout, fraction: int, weight_fraction: int | None) -> None:
        super().__init__(
            layout.plan,
            fraction,
            weight_fraction=weight_fraction,
            vault_bits=layout.engines.ring.address_bits,
        )
        self._layout = layout
        w = self.writer
        self._steps = w.register("steps", "time steps left")
        self._table = w.register("table", "words of the barrier")
        self._record = w.register("record", "lists of the step")
        self._lists = w.register("lists", "lists of all steps")
        self._chip = ChipBarrierCode(
            w,
            flags=self.barrier,
            rounds=layout.flags.rounds,
            table=self._table,
            scratch=(self.cursor, self.address, self.chunks),
        )

    def build(self) -> KernelBuilder:
        """The whole program."""
        w, plan, cut, layout = self.writer, self.plan, self.plan.cut, self._layout
        words = (self.weights, self.starts, self.peepholes, self.state, self._steps, self._lists)
        w.start(words, self._table, vault_bits=self.vault_bits)
        self._chip.resume()
        w.op("li", self.at[0], self.weight_fraction)
        w.op("set.fx", self.at[0])
        w.op("set.mr", self.block)
        w.offset(self._record, self._table, layout.flags.words * WORD_BYTES)
        self.fill_ring()
        w.note("A time step.")
        with w.loop("step", self._steps):
            w.op("mov", self.inputs, self._record)
            if cut.shape.projected:
                w.op("mov", self.results, self._lists)
                self.cells_phase()
                w.note("All inputs of the projection are there.")
                self._chip.wait()
                w.op("mov", self.inputs, self.results)
                w.offset(self.results, self._record, cut.input_chunks * WORD_BYTES)
                self.projection_phase()
            else:
                w.offset(self.results, self._record, cut.input_chunks * WORD_BYTES)
                self.cells_phase("y")
            w.note("All outputs of the step are there.")
            self._chip.wait()
            w.offset(self._record, self._record, layout.step_words * WORD_BYTES)
            w.offset(self.cursor, self._table, -FIXED_WORDS * WORD_BYTES)
            for word in (self.weights, self.starts, self.peepholes, self.state):
                w.read(word, self.cursor)
            w.offset(self.weights, self.weights, (plan.slots - 1) * plan.block_bytes)
        w.op("halt")
        return w
