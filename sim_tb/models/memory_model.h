// Memory beside the engines of a simulation: see memory_model.cpp.
#pragma once

#include <cstdint>

// How one port behaves. The layout is shared with Python (sim_tb/harness/engine_serve.py).
struct VipMemoryBehaviour {
    uint64_t seed;           // start of the port's random numbers
    uint64_t error_begin;    // accesses that touch [error_begin, error_end) answer with an error
    uint64_t error_end;      //
    uint32_t latency;        // cycles from the last beat of a request to its answer, at least 1
    uint32_t extra_latency;  // up to so many random cycles more
    uint32_t bandwidth;      // words per 256 cycles, each way, 1..256
    uint32_t stall;          // chance per cycle of not being ready, of 65536
    uint32_t gap;            // chance per cycle of no beat of a response, of 65536
    uint32_t out_of_order;   // 1: answers in random order, where the port's rules allow it
};

extern "C" {
// Maps the file at `path` as the memory of all ports. Returns its bytes, or -1 (see errno).
int64_t vip_memory_open(const char* path);
// Resets a port: nothing in flight, no violation, the behaviour given.
void vip_memory_configure(int32_t port, const VipMemoryBehaviour* behaviour);
// What the requester did wrong first, "" if nothing. Valid until the next call.
const char* vip_memory_violation(int32_t port);
// Requests accepted and not yet answered.
int32_t vip_memory_in_flight(int32_t port);
// One clock cycle of a port; the arguments are those of memory_model.sv. Returns 1 after a
// violation, when the port has gone silent.
int32_t vip_memory_cycle(int32_t port, uint8_t request_valid, uint8_t response_ready,
                         uint64_t address, uint32_t tag, uint8_t write, uint32_t words,
                         uint64_t data, uint32_t strobe, uint8_t last, uint8_t* request_ready,
                         uint8_t* response_valid, uint32_t* response_tag, uint64_t* response_data,
                         uint8_t* response_last, uint8_t* response_error);
}
