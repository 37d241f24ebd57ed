// What an instruction touches, from its operands' values (pe/frontend/range_check.py).
#include "pe_model.h"

namespace vip::timed {

constexpr uint64_t kUnitMask = kRangeBytes - 1;

void PeModel::dispatch(const Step& word, int64_t pc, Dispatched& found) const {
    found = {};
    found.word = &word;
    found.pc = pc;
    found.vl = m_engine.vl;
    found.mr = m_engine.mr;
    found.fx = m_engine.fx;
    const uint8_t numbers[3] = {word.a, word.b, word.c};
    for (int i = 0; i < 3; ++i) found.values[i] = m_engine.registers[numbers[i]];
    const bool memory = word.unit == kLoadStore, transfer = memory && !word.is_register;
    const uint64_t unaligned = m_sizes.alignment - 1;
    const uint64_t most = 2 * m_sizes.scratchpad_bytes - 1;
    const bool is_long = transfer && found.values[2] > most;
    const uint64_t length = found.values[2] & most;
    bool outside = is_long;
    for (int i = 0; i < 3; ++i) {
        Range& range = found.ranges[i];
        const bool used = word.extents[i] != kNoExtent;
        if (!used) continue;
        uint64_t count = 1;
        switch (word.extents[i]) {
            case kExtentVector: count = found.vl; break;
            case kExtentRows: count = found.mr; break;
            case kExtentMatrix: count = found.vl * found.mr; break;
            case kExtentLength: count = length; break;
            default: break;
        }
        const uint64_t start = found.values[i], size = count << word.width;
        const uint64_t end = ((start & most) + size + kUnitMask) / kRangeBytes;
        range.used = size != 0;
        range.writes = i == 0 && word.unit == kVector;
        range.start = static_cast<uint32_t>((start & (m_sizes.scratchpad_bytes - 1)) / kRangeBytes);
        range.end = static_cast<uint32_t>(end);
        outside |= start > most || end > m_sizes.scratchpad_bytes / kRangeBytes || start & unaligned;
    }
    bool misaligned = false, beyond = false;
    if (memory) {
        const uint64_t address = found.values[word.store ? 0 : 1];
        const uint64_t size = ((word.is_register ? 1 : length) << word.width) & most;
        const uint64_t bytes = uint64_t{1} << m_sizes.address_bits;
        found.bytes = size;
        found.nothing = transfer && !size;
        found.columns = (address % kColumnBytes + size + kColumnBytes - 1) / kColumnBytes;
        misaligned = address & (word.is_register ? (uint64_t{1} << word.width) - 1 : unaligned);
        beyond = address >= 2 * bytes || (address & (2 * bytes - 1)) + size > bytes;
    }
    found.cause = outside ? kScratchpadRange : misaligned ? kMisaligned : beyond ? kDramRange : kNone;
    if (memory && found.cause == kNone && m_engine.workspace.declared()) check_workspace(found);
}

// pe/frontend/dispatch.py
void PeModel::check_workspace(Dispatched& found) const {
    const Workspace& workspace = m_engine.workspace;
    const bool store = found.word->store;
    const uint64_t address = found.values[store ? 0 : 1];
    const bool whole = !store && !found.word->is_register && found.bytes;
    found.lowered = whole && workspace.contains(address, found.bytes);
    found.recorded = m_load_store.history() && whole &&
                     (found.lowered || workspace.image_contains(address, found.bytes));
    if (!found.lowered) found.cause = keep_out(workspace, address, found.bytes, !store);
}

}  // namespace vip::timed
