// What an instruction touches, from its operands' values (pe/frontend/range_check.py).
#include "pe_model.h"

namespace vip::timed {

constexpr uint64_t kUnitMask = kRangeBytes - 1;

static_assert(kNoExtent == 0 && kExtentElement == 1 && kExtentVector == 2 && kExtentRows == 3 &&
              kExtentMatrix == 4 && kExtentLength == 5);

void PeModel::dispatch(const Step& word, int64_t pc, Dispatched& found) const {
    found.word = &word;
    found.pc = pc;
    found.vl = m_engine.vl;
    found.mr = m_engine.mr;
    found.fx = m_engine.fx;
    found.values[0] = m_engine.registers[word.a];
    found.values[1] = m_engine.registers[word.b];
    found.values[2] = m_engine.registers[word.c];
    const bool memory = word.unit == kLoadStore, transfer = memory && !word.is_register;
    const uint64_t unaligned = m_sizes.alignment - 1;
    const uint64_t most = 2 * m_sizes.scratchpad_bytes - 1;
    const uint64_t length = found.values[2] & most;
    // By extents, in their order.
    const uint64_t counts[] = {0, 1, found.vl, found.mr, found.vl * found.mr, length};
    bool outside = transfer && found.values[2] > most;
    for (int i = 0; i < 3; ++i) {
        const uint8_t extent = word.extents[i];
        const uint64_t start = found.values[i], size = counts[extent] << word.width;
        const uint64_t end = ((start & most) + size + kUnitMask) / kRangeBytes;
        found.ranges[i] = Range{
            .used = size != 0,
            .writes = i == 0 && !memory,
            .start = static_cast<uint32_t>((start & (m_sizes.scratchpad_bytes - 1)) / kRangeBytes),
            .end = static_cast<uint32_t>(end)};
        const bool beyond = (start > most) | (end > m_sizes.scratchpad_bytes / kRangeBytes) |
                            ((start & unaligned) != 0);
        outside |= (extent != kNoExtent) & beyond;
    }
    found.beats = word.beats(found.vl, found.mr);
    found.nothing = found.lowered = found.recorded = false;
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
