"""A sequence of time steps of an LSTM layer as a job of a chip; every output is checked."""

from dataclasses import replace

import numpy as np

from isa.run import Launch
from microkernels.common.errors import CHECK
from microkernels.common.fixed_point import Elements, check_elements
from microkernels.common.memory import Readable, Writable
from microkernels.nn.lstm_shape import LstmShape, LstmState, LstmWeights, lstm_step
from microkernels.runtime.job import Golden, KernelJob
from microkernels.runtime.ring import ChipEngines

from .lstm_sequence import SequenceLayout, plan_sequence
from .lstm_sequence_kernel import lstm_sequence_program

__all__ = ["lstm_sequence_job"]


def _checked_state(shape: LstmShape, state: LstmState | None) -> LstmState:
    """A state whose arrays fit the shape; None: all 0."""
    before = LstmState.start(shape) if state is None else state
    return replace(
        before,
        c=check_elements("c of the state", before.c, (shape.batch, shape.cells)),
        y=check_elements("y of the state", before.y, (shape.batch, shape.outputs)),
    )


@CHECK.arguments
def lstm_sequence_job(
    shape: LstmShape,
    weights: LstmWeights,
    x: Elements,
    state: LstmState | None = None,
    *,
    fraction: int,
    weight_fraction: int | None = None,
    engines: ChipEngines | None = None,
) -> KernelJob:
    """A sequence of time steps on all engines of a chip, in one launch.

    The outputs of the job are y after each step, then c after the last one.

    Parameters:
        weights: of the layer.
        x: steps x batch x inputs elements, at least one step.
        state: before the first step; None: all 0.
        fraction: fraction bits of all numbers but weights and peepholes, 0..15.
        weight_fraction: of these; None: as many.
        engines: of the chip; None: four of one vault.

    Raises:
        KernelError: a shape that does not fit the chip, or data that do not fit the shape.
    """
    machine = engines or ChipEngines()
    weights = weights.checked(shape)
    x = check_elements("x", x, ("steps", shape.batch, shape.inputs))
    steps = len(x)
    before = _checked_state(shape, state)
    plan, parts = plan_sequence(shape, machine)
    layout = SequenceLayout(plan=plan, parts=parts, engines=machine, steps=steps)
    program = lstm_sequence_program(layout, fraction=fraction, weight_fraction=weight_fraction)

    def prepare(memory: Writable) -> None:
        layout.store(memory, weights, before.c, before.y)
        layout.store_inputs(memory, x)

    def outputs(memory: Readable) -> Elements:
        return np.concatenate([layout.outputs(memory).ravel(), layout.cells(memory).ravel()])

    def model() -> Elements:
        results, state = [], before
        for inputs in x:
            state = lstm_step(
                plan.cut,
                weights,
                inputs,
                state,
                fraction=fraction,
                weight_fraction=weight_fraction,
            )
            results.append(state.y.ravel())
        return np.concatenate([*results, state.c.ravel()])

    return KernelJob(
        name="LSTM sequence",
        launches=(Launch(program=program, parameters=layout.parameters),),
        prepare=prepare,
        outputs=outputs,
        golden=Golden(model, lazy=True),
        end=layout.end,
        pes=machine.pes,
        ring=machine.ring,
        operations=steps * shape.operations,
    )
