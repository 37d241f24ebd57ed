// Host of a vault with its engines in a simulation: reads the vault's counters when the engines'
// hosts (pe_host.cpp) launch them and when the last has ended, and waits until all writes are in
// the
// DRAM.

#include "../../memory/model/device_model.h"
#include "vip_tile.h"

namespace {

constexpr uint32_t kCounters = 32;

enum class Phase { kIdle, kLoad, kBefore, kRun, kLag, kAfter, kSettle };

struct TileHost {
    Phase phase = Phase::kIdle;
    bool pending = false;
    VipTileJob job = {};
    uint32_t step = 0;
    uint64_t before[kCounters] = {};
    uint64_t after[kCounters] = {};

    void enter(Phase next) {
        phase = next;
        step = 0;
    }

    bool reading() const { return phase == Phase::kBefore || phase == Phase::kAfter; }

    // One cycle of reading; a value follows one cycle after its index. True at the end.
    bool read(uint64_t* counters, uint64_t value) {
        if (++step >= 2) counters[step - 2] = value;
        return step == kCounters + 1;
    }
};

TileHost g_tile;

}  // namespace

int32_t vip_tile_start(int32_t, const VipTileJob* job) {
    g_tile = TileHost{};
    g_tile.job = *job;
    g_tile.pending = true;
    return 0;
}

void vip_tile_result(int32_t, VipTileResult* result) {
    for (uint32_t index = 0; index < kCounters; ++index) {
        result->counters[index] = g_tile.after[index] - g_tile.before[index];
    }
}

void vip_tile_cycle(int32_t, const VipTileIn* in, VipTileOut* out) {
    TileHost& tile = g_tile;
    switch (tile.phase) {
        case Phase::kIdle:
            if (!tile.pending) break;
            tile.pending = false;
            tile.enter(Phase::kLoad);
            break;
        case Phase::kLoad:
            if (in->launched) {
                vip_dram_record(0, tile.job.window);
                tile.enter(Phase::kBefore);
            } else if (in->engines_idle) {
                tile.enter(Phase::kLag);
            }
            break;
        case Phase::kBefore:
            // Meanwhile engines write their registers and don't access the memory.
            if (tile.read(tile.before, in->counter_value)) tile.enter(Phase::kRun);
            break;
        case Phase::kRun:
            if (in->engines_idle) tile.enter(Phase::kLag);
            break;
        case Phase::kLag:
            if (++tile.step == tile.job.lag) tile.enter(Phase::kAfter);
            break;
        case Phase::kAfter:
            if (tile.read(tile.after, in->counter_value)) tile.enter(Phase::kSettle);
            break;
        case Phase::kSettle:
            if (++tile.step == tile.job.settle) tile.enter(Phase::kIdle);
            break;
    }
    out->counter_index = tile.reading() ? tile.step % kCounters : 0;
    out->idle = tile.phase == Phase::kIdle;
}
