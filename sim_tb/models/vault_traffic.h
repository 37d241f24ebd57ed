// Requesters at the ports of a memory in a simulation: see vault_traffic.cpp.
#pragma once

#include <cstdint>

// What one requester does. Chances are of 65536. The layout is shared with Python
// (sim_tb/harness/memory_models.py).
struct VipTrafficPattern {
    uint64_t seed;      //
    uint64_t accesses;  //
    uint32_t kind;      // 0 sequential, 1 random, 2 hot, 3 strided
    uint32_t stride;    // columns from one access to the next when strided
    uint32_t hot;       // the columns, from the first on, that take 15 of 16 accesses when hot
    uint32_t writes;    // chance that an access is a write
    uint32_t partial;   // 1: any words of a column, any strobes; 0: whole columns
    uint32_t offer;     // chance per cycle that the next beat of a request is offered
    uint32_t take;      // chance per cycle that responses are taken
    uint32_t window;    // requests in flight at most, no more than there are tags
    uint32_t outside;   // chance that an access lies beyond the memory
    uint32_t burst;     // accesses after which the requester rests for a random time; 0: never
};

// One run of all requesters.
struct VipTrafficJob {
    const char* image;    // file of the memory; kept by the caller until the run has ended
    uint64_t begin;       // first byte that is accessed, in the file and at the ports
    uint64_t span;        // bytes accessed; a multiple of a column for each requester
    uint64_t size;        // bytes of the memory; an access beyond is to answer with an error
    uint64_t limit;       // bytes that the ports' addresses reach
    uint64_t max_cycles;  //
    uint64_t patience;    // cycles after which a request that is not answered counts as lost
    uint32_t requesters;  //
    uint32_t counters;    // number of counters to read at the end
    uint32_t settle;      // cycles from the last response to reading counters and comparing memory
};

constexpr uint32_t kVipLatencies = 4096;
constexpr uint32_t kVipCounters = 64;

// What became of it. Latencies are from the first offer of a request to its last response beat.
struct VipTrafficResult {
    uint64_t cycles;         // from the first request beat offered to the last response beat
    uint64_t reads;          //
    uint64_t writes;         //
    uint64_t bytes;          // asked for, in whole words
    uint64_t longest;        // latency
    uint64_t latency_sum;    //
    uint64_t longest_offer;  // cycles for which the first beat of a request waited to be taken
    uint64_t total_cycles;   // of the run since reset
    uint32_t outcome;        // 0 done, 1 rule broken (see vip_traffic_violation), 2 too long
    uint32_t latencies[kVipLatencies];  // requests by latency; the last also holds all above
    uint64_t counters[kVipCounters];
};

extern "C" {
// Starts a run: fills the span of the image with new contents, and resets the design at the next
// clock edge. Returns 0, or -1 if the image can't be mapped or is too small.
int32_t vip_traffic_start(const VipTrafficJob* job, const VipTrafficPattern* patterns);
// What the memory did wrong first, "" if nothing. Valid until the next call.
const char* vip_traffic_violation();
void vip_traffic_result(VipTrafficResult* result);
// Clock cycles of the run.
uint64_t vip_traffic_cycles();
// One clock cycle of the design. Returns 1 while there is nothing to do.
int32_t vip_traffic_host(uint8_t failed, uint64_t counter_value, uint8_t* reset,
                         uint32_t* counter_index);
// One clock cycle of a requester; the arguments are those of vault_traffic.sv.
void vip_traffic_cycle(int32_t requester, uint8_t reset, uint32_t tags, uint8_t request_ready,
                       uint8_t response_valid, uint32_t response_tag, uint64_t response_data,
                       uint8_t response_last, uint8_t response_error, uint8_t* request_valid,
                       uint64_t* address, uint32_t* tag, uint8_t* write, uint32_t* words,
                       uint64_t* data, uint32_t* strobe, uint8_t* last, uint8_t* response_ready);
}
