// Host of a vault with its engines in a simulation: reads the vault's counters at the launch of the
// engines by their hosts (pe_host.cpp) and at the end of the last, and waits until all writes are in
// the DRAM.

#include "tile_host.h"

#include "../../memory/model/device_model.h"

namespace {

enum class Phase { kIdle, kLoad, kBefore, kRun, kLag, kAfter, kSettle };

struct TileHost {
    Phase phase = Phase::kIdle;
    bool pending = false;
    uint32_t lag = 0;
    uint32_t settle = 0;
    uint32_t window = 0;
    uint32_t step = 0;
    uint64_t before[kVipTileCounters] = {};
    uint64_t after[kVipTileCounters] = {};

    void enter(Phase next) {
        phase = next;
        step = 0;
    }

    bool reading() const { return phase == Phase::kBefore || phase == Phase::kAfter; }

    // One cycle of reading; the answer to an index comes in the cycle after it. True at the end.
    bool read(uint64_t* counters, uint64_t value) {
        if (++step >= 2) counters[step - 2] = value;
        return step == kVipTileCounters + 1;
    }
};

TileHost g_tile;

}  // namespace

extern "C" {

void vip_tile_start(uint32_t lag, uint32_t settle, uint32_t window) {
    g_tile = TileHost{};
    g_tile.lag = lag;
    g_tile.settle = settle;
    g_tile.window = window;
    g_tile.pending = true;
}

void vip_tile_counters(uint64_t* counters) {
    for (uint32_t index = 0; index < kVipTileCounters; ++index) {
        counters[index] = g_tile.after[index] - g_tile.before[index];
    }
}

int32_t vip_tile_cycle(uint8_t launched, uint8_t engines_idle, uint64_t counter_value,
                       uint32_t* counter_index) {
    TileHost& tile = g_tile;
    switch (tile.phase) {
        case Phase::kIdle:
            if (!tile.pending) break;
            tile.pending = false;
            tile.enter(Phase::kLoad);
            break;
        case Phase::kLoad:
            if (launched) {
                vip_dram_record(0, tile.window);
                tile.enter(Phase::kBefore);
            } else if (engines_idle) {
                tile.enter(Phase::kLag);
            }
            break;
        case Phase::kBefore:
            // Engines write their registers meanwhile and leave the memory alone.
            if (tile.read(tile.before, counter_value)) tile.enter(Phase::kRun);
            break;
        case Phase::kRun:
            if (engines_idle) tile.enter(Phase::kLag);
            break;
        case Phase::kLag:
            if (++tile.step == tile.lag) tile.enter(Phase::kAfter);
            break;
        case Phase::kAfter:
            if (tile.read(tile.after, counter_value)) tile.enter(Phase::kSettle);
            break;
        case Phase::kSettle:
            if (++tile.step == tile.settle) tile.enter(Phase::kIdle);
            break;
    }
    *counter_index = tile.reading() ? tile.step % kVipTileCounters : 0;
    return tile.phase == Phase::kIdle;
}

}  // extern "C"
