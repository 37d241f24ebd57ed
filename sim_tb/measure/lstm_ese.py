"""The LSTM of ESE on 32 vaults (thesis 6.4, 7.2.2): one vault's part of a time step."""

from dataclasses import replace

import numpy as np

from microkernels.common.fixed_point import Elements, to_fixed
from microkernels.nn.jobs import lstm_job
from microkernels.nn.lstm_shape import LstmShape, LstmState, usual_weights
from microkernels.runtime.job import KernelJob

__all__ = ["ESE", "ESE_LIMIT_MS", "ESE_THESIS_MS", "ese_job"]

ESE = LstmShape(inputs=153, cells=1024, outputs=512, batch=32)
#: Milliseconds: limit of the datapath, and result of the thesis's simulator.
ESE_LIMIT_MS = 0.162
ESE_THESIS_MS = 0.514
_VAULTS = 32
#: One in the middle, whose lists of chunks go round.
_VAULT = 5
_FRACTION = 11
_SEED = 1


def ese_job(sharers: int, *, batch: int = ESE.batch) -> KernelJob:
    """A vault's part of a time step with random weights, inputs and state of usual size.

    Parameters:
        sharers: engines of the vault, at least 1.
        batch: sequences that they share.

    Raises:
        KernelError: the batch does not fit so few engines.
    """
    rng = np.random.default_rng(_SEED)

    def values(scale: float, *size: int) -> Elements:
        return to_fixed(rng.normal(0, scale, size), _FRACTION)

    shape = replace(ESE, batch=batch)
    weights = usual_weights(shape, values)
    state = LstmState(
        c=values(0.7, batch, shape.cells),
        y=values(0.5, batch, shape.outputs),
        m=np.zeros((batch, shape.cells), np.int16),
    )
    return lstm_job(
        shape,
        weights,
        values(1.0, batch, shape.inputs),
        state,
        fraction=_FRACTION,
        vaults=_VAULTS,
        vault=_VAULT,
        sharers=sharers,
    )
