// Executes programs: what instructions do, without timing. See simulator.py.

#include "engine.h"
#include "hazards.h"

namespace vip {
namespace {

template <typename Kind, bool Narrow, bool Counting>
inline uint32_t step(Engine& engine, const Operation& op) {
    uint64_t clipped = 0;
    const uint64_t at = engine.pc;
    const uint32_t cause = Kind::template execute<Narrow, Counting>(engine, op, clipped);
    if (Counting && cause == kNone) engine.saturated[at] += clipped;
    return cause;
}

// Executes up to `limit` instructions. Where the log must see the next one, returns kFollowed, and
// `limit` is what is left of it. Large, so that copies for its callers take seconds to compile.
template <bool Narrow, bool Counting>
[[gnu::noipa]] uint32_t run(Engine& engine, uint64_t& limit) {
    for (uint64_t left = limit; left; --left) {
        if (static_cast<uint64_t>(engine.pc) >= engine.words) return kPcOutOfProgram;
        const uint64_t at = engine.pc;
        const Operation& op = engine.program[at];
        uint32_t cause;
        switch (op.row) {
#define VIP_ROW(number, ...) \
    case number: \
        cause = step<__VA_ARGS__, Narrow, Counting>(engine, op); \
        break;
#define VIP_HALT(number) \
    case number: \
        ++engine.visits[at]; \
        return kHalted;
#include "rows.inc"
            case kFollowedRow:
                limit = left;
                return kFollowed;
            default:
                return kIllegalInstruction;
        }
        if (cause != kNone) return cause;
        ++engine.visits[at];
        ++engine.pc;
    }
    return kLimit;
}

// The same, but what the log must see is executed too: alone, and noted.
template <bool Narrow, bool Counting>
uint32_t follow(Engine& engine, uint64_t limit) {
    Operation* const program = engine.program;
    while (true) {
        if (const uint32_t code = run<Narrow, Counting>(engine, limit); code != kFollowed)
            return code;
        const int64_t at = engine.pc;
        uint64_t one = 1;
        engine.program = engine.followed;
        const uint32_t code = run<Narrow, Counting>(engine, one);
        engine.program = program;
        if (code != kLimit) return code;
        static_cast<HazardLog*>(engine.log)->executed(engine, engine.followed[at], at);
        --limit;
    }
}

}  // namespace
}  // namespace vip

// Executes up to `limit` instructions from the engine's pc on. Returns the cause of a fault, whose
// instruction has no effect; or kFailed (see errno), kLimit, kHalted.
extern "C" uint32_t vip_engine_run(vip::Engine* engine, uint64_t limit) {
    const bool narrow = engine->register_width < 64, counting = engine->saturated;
    if (counting)
        return narrow ? vip::follow<true, true>(*engine, limit)
                      : vip::follow<false, true>(*engine, limit);
    return narrow ? vip::follow<true, false>(*engine, limit)
                  : vip::follow<false, false>(*engine, limit);
}

// A log of hazards, for one engine from its launch on.
extern "C" vip::HazardLog* vip_hazards_open() { return new vip::HazardLog(); }

extern "C" void vip_hazards_close(vip::HazardLog* log) { delete log; }

extern "C" uint64_t vip_hazards_count(const vip::HazardLog* log) { return log->found.size(); }

// Copies all hazards found.
extern "C" void vip_hazards_copy(const vip::HazardLog* log, vip::FoundHazard* to) {
    std::copy(log->found.begin(), log->found.end(), to);
}
