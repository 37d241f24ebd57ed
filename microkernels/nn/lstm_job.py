"""A vault's part of an LSTM layer ready to run; :mod:`microkernels.nn.job` runs it."""

from isa.image import DramImage
from microkernels.common.errors import CHECK
from microkernels.common.fixed_point import Elements
from microkernels.common.saturation import with_saturation

from .conv_plan import DEFAULT_SCRATCHPAD
from .job import NnJob
from .lstm_kernel import lstm_program
from .lstm_layout import LstmLayout
from .lstm_plan import plan_lstm
from .lstm_shape import LstmShape, LstmState, LstmWeights, lstm_step

__all__ = ["lstm_job"]


@CHECK.arguments
@with_saturation
def lstm_job(
    shape: LstmShape,
    weights: LstmWeights,
    x: Elements,
    state: LstmState | None = None,
    *,
    fraction: int,
    vaults: int = 1,
    vault: int = 0,
    sharers: int = 1,
    base: int = 0,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
) -> NnJob:
    """A time step of a layer on one of its vaults.

    What other vaults contribute to the inputs of the projection lies in memory from the beginning.
    The job's outputs are the vault's part of the new c, and behind it of the new y.

    Parameters:
        weights: of the layer.
        x: batch x inputs elements.
        state: of the step before; None: the first step.
        fraction: fraction bits of all numbers, 0..15.
        vaults: that share the layer. vault: which one this is. sharers: PEs of the vault.
        base: where its memory begins; a multiple of 256.
        scratchpad_bytes: size of the scratchpad.

    Raises:
        KernelError: a shape that does not fit, or data that do not fit the shape.
    """
    before = LstmState.start(shape) if state is None else state
    plan = plan_lstm(shape, vaults=vaults, sharers=sharers, scratchpad_bytes=scratchpad_bytes)
    layout = LstmLayout(plan=plan, vault=vault, base=base)
    after = lstm_step(plan.cut, weights, x, before, fraction=fraction)

    def prepare(memory: DramImage) -> None:
        layout.store(memory, weights, x, before, after.m)

    return NnJob(
        name="LSTM",
        program=lstm_program(plan, fraction=fraction),
        parameters=layout.parameters,
        sharers=sharers,
        end=layout.end,
        prepare=prepare,
        outputs=layout.state,
        expected=layout.own(after),
        operations=shape.operations // vaults,
    )
