// Host of a vault with its engines in a simulation: see tile_host.cpp.
#pragma once

#include <cstdint>

// Counters that it can read.
constexpr uint32_t kVipTileCounters = 32;

extern "C" {
// Starts a run, after those of the engines' hosts (vip_host_start) and in the same clock cycle.
// `lag`: cycles from the end of the last engine to the first counter that is read.
// `settle`: cycles from then on until all writes are in the DRAM.
// `window`: the DRAM (device 0) records what it moves from launch on, in windows of so many cycles.
void vip_tile_start(uint32_t lag, uint32_t settle, uint32_t window);
// What the vault's counters counted from launch to end; room for kVipTileCounters.
void vip_tile_counters(uint64_t* counters);
// One clock cycle; the arguments are those of the top module. Returns 1 while there is nothing to do.
int32_t vip_tile_cycle(uint8_t launched, uint8_t engines_idle, uint64_t counter_value,
                       uint32_t* counter_index);
}
