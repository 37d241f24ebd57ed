// An access of a recorded trace as one nonzero word; sim_tb/harness/traffic.py has the same format.
#pragma once

#include <algorithm>
#include <cstdint>

namespace vip {

// `gap`: cycles by which the access is first offered later than possible after the previous
// access's
// last beat is taken. `words`: at least 1, whole words.
struct TracedAccess {
    uint64_t address, gap;
    uint32_t words;
    bool write;
};

constexpr unsigned kTraceWords = 1, kTraceWrite = 3, kTraceGap = 4, kTraceAddress = 24;
constexpr uint64_t kTraceLongest = (uint64_t{1} << (kTraceAddress - kTraceGap)) - 1;

inline uint64_t trace_word(const TracedAccess& access) {
    return access.address << kTraceAddress | std::min(access.gap, kTraceLongest) << kTraceGap |
           uint64_t{access.write} << kTraceWrite | uint64_t{access.words - 1} << kTraceWords | 1;
}

inline TracedAccess traced_access(uint64_t word) {
    return {.address = word >> kTraceAddress,
            .gap = word >> kTraceGap & kTraceLongest,
            .words = static_cast<uint32_t>(word >> kTraceWords & 3) + 1,
            .write = static_cast<bool>(word >> kTraceWrite & 1)};
}

}  // namespace vip
