// Memories on AXI4 buses in a simulation: see axi_memory.cpp.
#pragma once

#include <cstdint>

#include "svdpi.h"

extern "C" {
// Gives memory number `memory` its contents: `size` bytes from `base` on of the file at `path`, mapped.
// Answers begin `latency` cycles after a request at the earliest. Returns 0, or -1 if the file can't be
// mapped or is too small.
int32_t vip_axi_open(int32_t memory, const char* path, uint64_t base, uint64_t size, uint32_t latency);
// One clock cycle; the arguments are those of axi_memory.sv, inputs of this cycle and outputs for the
// next.
void vip_axi_cycle(int32_t memory, uint8_t reset, uint32_t lanes, uint8_t arvalid, uint32_t arid,
                   uint64_t araddr, uint32_t arlen, uint8_t awvalid, uint32_t awid, uint64_t awaddr,
                   uint32_t awlen, uint8_t wvalid, const svBitVecVal* wdata, uint32_t wstrb,
                   uint8_t* wready, uint8_t* rvalid, uint32_t* rid, svBitVecVal* rdata,
                   uint32_t* rresp, uint8_t* rlast, uint8_t* bvalid, uint32_t* bid, uint32_t* bresp);
}
