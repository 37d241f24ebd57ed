// Host of a vault with its engines in a simulation: waits until the hosts of the engines (pe_host.cpp)
// have done their runs and all writes are in the DRAM, and reads the vault's counters.

#include "tile_host.h"

#include <algorithm>

namespace {

enum class Phase { kIdle, kRun, kSettle, kCounters };

struct TileHost {
    Phase phase = Phase::kIdle;
    bool pending = false;
    uint32_t settle = 0;
    uint32_t step = 0;
    uint64_t counters[kVipTileCounters] = {};
};

TileHost g_tile;

}  // namespace

extern "C" {

void vip_tile_start(uint32_t settle) {
    g_tile = TileHost{};
    g_tile.settle = settle;
    g_tile.pending = true;
}

void vip_tile_counters(uint64_t* counters) {
    std::copy_n(g_tile.counters, kVipTileCounters, counters);
}

int32_t vip_tile_cycle(uint8_t engines_idle, uint64_t counter_value, uint32_t* counter_index) {
    TileHost& tile = g_tile;
    switch (tile.phase) {
        case Phase::kIdle:
            if (!tile.pending) break;
            tile.pending = false;
            tile.phase = Phase::kRun;
            break;
        case Phase::kRun:
            if (!engines_idle) break;
            tile.phase = Phase::kSettle;
            break;
        case Phase::kSettle:
            if (++tile.step < tile.settle) break;
            tile.step = 0;
            tile.phase = Phase::kCounters;
            break;
        case Phase::kCounters:
            // The answer to an index comes in the cycle after it.
            if (++tile.step >= 2) tile.counters[tile.step - 2] = counter_value;
            if (tile.step == kVipTileCounters + 1) tile.phase = Phase::kIdle;
            break;
    }
    *counter_index = tile.phase == Phase::kCounters ? tile.step % kVipTileCounters : 0;
    return tile.phase == Phase::kIdle;
}

}  // extern "C"
