// Executes programs: what instructions do, without timing. See simulator.py.

#include "engine.h"

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

template <bool Narrow, bool Counting>
uint32_t run(Engine& engine, uint64_t limit) {
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
            default:
                return kIllegalInstruction;
        }
        if (cause != kNone) return cause;
        ++engine.visits[at];
        ++engine.pc;
    }
    return kLimit;
}

}  // namespace
}  // namespace vip

// Executes up to `limit` instructions from the engine's pc on. Returns the cause of a fault, whose
// instruction has no effect; or kFailed (see errno), kLimit, kHalted.
extern "C" uint32_t vip_engine_run(vip::Engine* engine, uint64_t limit) {
    const bool narrow = engine->register_width < 64, counting = engine->saturated;
    if (counting)
        return narrow ? vip::run<true, true>(*engine, limit) : vip::run<false, true>(*engine, limit);
    return narrow ? vip::run<true, false>(*engine, limit) : vip::run<false, false>(*engine, limit);
}
