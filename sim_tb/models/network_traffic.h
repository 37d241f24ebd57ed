// Traffic at the vaults' ends of a simulated network: see network_traffic.cpp.
#pragma once

#include <cstdint>

constexpr uint32_t kVipNetworkLatencies = 4096;
constexpr uint32_t kVipNetworkHops = 32;

// One run. Chances are of 65536. The layout is shared with Python (sim_tb/harness/network_models.py).
struct VipNetworkJob {
    uint64_t seed;          //
    uint64_t flits;         // no packet is made any more after so many flits of packets
    uint64_t cycles;        // nor after so many cycles
    uint64_t warmup;        // cycles after which what is delivered, or made, counts for figures
    uint64_t max_cycles;    //
    uint64_t patience;      // cycles after which a packet in the network counts as lost
    uint32_t columns;       //
    uint32_t rows;          //
    uint32_t buffer_flits;  // room at the end of each link, for each channel
    uint32_t pattern;       // 0 uniform, 1 transpose, 2 neighbour, 3 hot spot
    uint32_t hot;           // chance that a packet goes to vault 0 when hot
    uint32_t rate;          // flits made a cycle and vault, of 65536; 65536: as many as get away
    uint32_t shortest;      // flits of a packet, at least and at most
    uint32_t longest;       //
    uint32_t offer;         // chance per cycle that a vault offers a flit
    uint32_t take;          // chance per cycle and class that a vault takes a flit
    uint32_t pause;         // a vault rests at times, and then up to so many cycles; 0: never
    uint32_t answers;       // 1: responses are made of requests that were taken, 0: of nothing
};

// What became of it. Latencies are from the making of a packet to its last flit.
struct VipNetworkResult {
    uint64_t cycles;          // of the run
    uint64_t packets[2];      // delivered, by class
    uint64_t flits[2];        //
    uint64_t measured_flits;  // delivered between `warmup` and `cycles`
    uint64_t latency_sum;     // of the packets made between these
    uint64_t latency_count;   //
    uint64_t longest;         // cycles from the first flit's entry to the last flit's exit
    uint32_t outcome;         // 0 done, 1 rule broken (see vip_network_violation), 2 too long
    uint32_t reserved;
    uint64_t latencies[kVipNetworkLatencies];  // by latency; the last also holds all above
    // By links on the way: fewest cycles from a header at the entry to the same at the exit.
    uint64_t fastest[kVipNetworkHops];
};

extern "C" {
// Starts a run, from a reset of the design at the next clock edge.
void vip_network_start(const VipNetworkJob* job);
// What the network did wrong first, "" if nothing. Valid until the next call.
const char* vip_network_violation();
void vip_network_result(VipNetworkResult* result);
// One clock cycle, before those of the vaults. Returns 1 while there is nothing to do.
int32_t vip_network_host(uint8_t* reset);
// One clock cycle of a vault; the arguments are those of network_traffic.sv.
void vip_network_cycle(int32_t vault, uint32_t in_credit, uint8_t out_valid, uint8_t out_channel,
                       uint64_t out_data, uint8_t out_last, uint8_t out_error, uint8_t* in_valid,
                       uint8_t* in_channel, uint64_t* in_data, uint8_t* in_last, uint8_t* in_error,
                       uint32_t* out_credit);
}
