// Host of a chip in a simulation: see chip_host.cpp.
#pragma once

#include <cstdint>

// What the host shall do. The layout is shared with Python (sim_tb/harness/chip_models.py).
struct VipChipOperation {
    uint32_t kind;     // 0: reset, 1: run, 2: read a register, 3: write some, 4: read DRAM, 5: write it
    uint32_t stop;     // run: 1 ends it with the interrupt
    uint64_t address;  // of the first byte
    uint64_t count;    // reset and run: cycles; else bytes
    uint64_t limit;    // cycles after which an access is late
    uint8_t* data;     // read or to write; kept by the caller until the operation has ended
};

// What became of it.
struct VipChipResult {
    uint64_t cycles;     // since the last reset
    uint32_t outcome;    // 0: done, 1: late, 2: a rule of the DRAM was broken
    uint32_t response;   // of AXI, the worst
    uint32_t interrupt;  // the interrupt is raised
};

extern "C" {
// Starts an operation; it begins at the next clock edge. The host must be idle.
void vip_chip_start(const VipChipOperation* operation);
// The result of the operation that ended last; while one runs, the cycles so far.
void vip_chip_result(VipChipResult* result);
// One clock cycle; the arguments are those of chip_host.sv. Returns 1 while there is nothing to do.
int32_t vip_chip_cycle(uint8_t failed, uint8_t raised, uint8_t control_awready,
                       uint8_t control_wready, uint8_t control_bvalid, uint32_t control_bresp,
                       uint8_t control_arready, uint8_t control_rvalid, uint32_t control_rresp,
                       uint32_t control_rdata, uint8_t data_awready, uint8_t data_wready,
                       uint8_t data_bvalid, uint32_t data_bresp, uint8_t data_arready,
                       uint8_t data_rvalid, uint32_t data_rresp, uint64_t data_rdata,
                       uint8_t* reset, uint8_t* control_awvalid, uint8_t* control_wvalid,
                       uint8_t* control_arvalid, uint32_t* control_address,
                       uint32_t* control_wdata, uint8_t* data_awvalid, uint64_t* data_awaddr,
                       uint32_t* data_awlen, uint8_t* data_wvalid, uint64_t* data_wdata,
                       uint32_t* data_wstrb, uint8_t* data_wlast, uint8_t* data_arvalid,
                       uint64_t* data_araddr, uint32_t* data_arlen);
}
