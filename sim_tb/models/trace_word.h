// An access of a recorded trace in one word that is not 0; sim_tb/harness/traffic.py has the same.
#pragma once

#include <algorithm>
#include <cstdint>

namespace vip {

// `gap`: cycles from the last beat of the access before, as it was taken, to the first offer of this
// one, beyond the first that is possible. `words`: 1 or more, whole ones.
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
