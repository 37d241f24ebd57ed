"""Kernels for machines with a vector register file, beside those of VIP (thesis 7.2.2).

The same work is written for three machines that have this engine's datapath, memory and latencies:

- ``memory``: VIP. Vectors lie anywhere in the scratchpad, and ``m.v`` reduces rows of a matrix.
- ``registers``: a vector register file, 16 registers of 256 bytes (IBM's Active Memory Cube). An
  instruction reads and writes whole registers, from their first element on. A reduction unit
  reduces one register into the first element of another.
- ``no_reduction``: the same without the reduction unit.

The register machine is this engine's instructions with that rule about addresses, which
:class:`~microkernels.vector_registers.machine.RegisterBuilder` enforces; a *move* may read or write
within a register, and takes the beats of its elements. The machine has each advantage that the
thesis grants: memory holds packed vectors in the order in which a load wants them, gathers and
scatters are free, programs are unrolled so that no loop or address costs a cycle of the vector
unit.

*Belief propagation*: 8 messages of 16 labels fill a register, and additions take all 8 at once (12
beats per message). Then a message's vectors, and rows of the smoothness matrix, must be moved from
packed registers to registers of their own: 4 beats for a total, 16 x (4 + 1) for minima and for
packing them, 12 for the subtraction and its moves, and 64 for rows, which serve as many messages as
there are registers for totals. With 8 that makes 116 beats, the thesis's 1.45; 16 names suffice
for 4: 124. Without reduction, the labels of a message are the vector, and each label of the source
costs 4 + 4 + 1 beats: 168, the thesis's 2.1, with enough names, and 176 with 16.

*Convolution*, 3 x 3, 16 channels, 8 filters: with reduction, a row of a window (48 elements) times
a filter's, which lie in registers of their own; without, 128 pixels of a channel times a weight.
"""
