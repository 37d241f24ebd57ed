// Programs of engines, and what their instructions do.
#include <cstring>

#include "pe_model.h"

namespace vip::timed {

// The program in an engine's buffer. Engines with the same one share it: a chip's would not fit
// the processor's cache.
std::shared_ptr<const Program> program_of(const Sizes& sizes, const Operation* operations,
                                          const Word* buffer) {
    static std::vector<std::weak_ptr<const Program>> known;
    Program made(sizes.buffer_words);
    for (uint64_t place = 0; place < sizes.buffer_words; ++place) {
        Step& step = made[place];
        static_cast<Word&>(step) = buffer[place];
        step.registers = uint64_t{step.reads_a || step.writes} << step.a |
                         uint64_t{step.reads_b} << step.b | uint64_t{step.reads_c} << step.c;
        step.plain = step.legal && step.unit != kIssue;
        if (place >= sizes.words) continue;
        step.operation = step.placed = operations[place];
        step.placed.a = 0, step.placed.b = 1, step.placed.c = 2;
    }
    std::erase_if(known, [](const auto& each) { return each.expired(); });
    for (const auto& each : known)
        if (const auto found = each.lock(); found->size() == made.size() &&
                                            !std::memcmp(found->data(), made.data(),
                                                         made.size() * sizeof(Step)))
            return found;
    const auto kept = std::make_shared<const Program>(std::move(made));
    known.push_back(kept);
    return kept;
}

// What the engine keeps of a program counter (pe.interface.pc_shape).
int64_t PeModel::kept(int64_t pc) const {
    const int64_t addressed = static_cast<int64_t>(m_sizes.addressed_words);
    if (m_sizes.exact_pc) return pc;
    const bool outside = pc < 0 || pc >= addressed;
    return (pc & (addressed - 1)) - (outside ? addressed : 0);
}

uint32_t PeModel::execute(Engine& engine, const Operation& op) {
    uint64_t clipped = 0;
    switch (op.row) {
#define VIP_ROW(number, ...) \
    case number:             \
        return __VA_ARGS__::template execute<false, false>(engine, op, clipped);
#define VIP_HALT(number)
#include "rows.inc"
        default:
            return kIllegalInstruction;
    }
}

}  // namespace vip::timed
