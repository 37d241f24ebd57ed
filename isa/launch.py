"""The state in which a launch leaves a processing engine (PE).

Every register reads 0 except :data:`START_REGISTERS`; the vector settings are
:data:`START_VL`, :data:`START_MR` and :data:`START_FX`. Scratchpad and memory keep their contents.
"""

#: Register number -> value that the launch writes to it.
START_REGISTERS = {
    1: "pe_index",  # global index of this PE in the chip
    2: "vault",  # index of the vault this PE belongs to
    3: "slot",  # index of this PE within its vault
    4: "pe_count",  # number of PEs in the chip
    5: "parameters",  # DRAM byte address of the parameter block given by the host
}

START_VL = 1
START_MR = 1
START_FX = 0
