// Programs of engines, what their instructions do and access (pe/frontend/range_check.py), the
// sequencer (pe/sequencer.py), and what the host reads from it.
#include <algorithm>
#include <cstring>

#include "pe_model.h"

namespace vip::timed {

// Minimum cycles from an instruction at issue until the front end affects the load-store unit or
// depends on its state. A transfer goes there two cycles later.
void find_distances(std::vector<Step>& program, uint64_t words) {
    constexpr uint8_t kFar = 64;
    const auto ends = [](const Step& step) {
        return step.unit == kIssue && step.control != kSetVl && step.control != kSetMr &&
               step.control != kSetFx && step.control != kDrain;
    };
    for (uint64_t place = 0; place < words; ++place) {
        Step& step = program[place];
        step.distance = !step.legal || ends(step) ? 0 : step.unit == kLoadStore ? 2 : kFar;
    }
    const auto at = [&](uint64_t place) { return place < words ? program[place].distance : 0; };
    for (bool changed = true; changed;) {
        changed = false;
        for (uint64_t place = words; place-- > 0;) {
            Step& step = program[place];
            const bool branches = step.unit == kScalar && !step.writes;
            uint64_t next = at(place + 1);
            if (branches)
                next = std::min<uint64_t>(
                    next, kRefillCycles + at(static_cast<uint64_t>(step.operation.constant)));
            if (next + 1 >= step.distance) continue;
            step.distance = static_cast<uint8_t>(next + 1);
            changed = true;
        }
    }
}

const Ahead* Program::ahead(uint64_t vl, uint64_t mr) const {
    constexpr size_t kMost = 64;  // stored tables
    const std::lock_guard guard(m_lock);
    const auto key = std::pair(vl, mr);
    auto found = m_known.find(key);
    if (found == m_known.end()) {
        if (m_known.size() == kMost) return nullptr;
        found = m_known.emplace(key, find(vl, mr)).first;
    }
    return found->second.data();
}

std::vector<Ahead> Program::find(uint64_t vl, uint64_t mr) const {
    // Whether there are paths on which 3, 2 or 1 must be left out; beats of paths without any.
    constexpr uint32_t kLeftOut = 3, kMostBeats = UINT16_MAX;
    struct Ways {
        bool some[kLeftOut] = {};
        bool soon = false;  // the word at the end acts at issue, not from dispatch
        uint32_t beats = kMostBeats;
        bool operator==(const Ways&) const = default;
    };
    std::vector<Ways> ways(m_used + 1);
    // A word beyond the program faults.
    ways[m_used].some[0] = ways[m_used].soon = true;
    const auto at = [&](uint64_t place) { return ways[std::min(place, m_used)]; };
    for (bool changed = true; changed;) {
        changed = false;
        for (uint64_t place = m_used; place-- > 0;) {
            const Step& step = m_words[place];
            const bool sets = step.control == kSetVl || step.control == kSetMr;
            Ways found;
            if (!step.distance || (step.unit == kIssue && sets)) {
                found.some[0] = found.soon = true;
            } else if (step.unit == kLoadStore) {
                found.some[1] = true;
            } else {
                found = at(place + 1);
                if (step.unit == kScalar && !step.writes) {
                    const Ways other = at(static_cast<uint64_t>(step.operation.constant));
                    for (uint32_t i = 0; i < kLeftOut; ++i) found.some[i] |= other.some[i];
                    found.soon |= other.soon;
                    found.beats = std::min(found.beats, other.beats);
                }
                if (step.unit == kVector) {
                    const uint64_t sum = found.some[2] ? 0 : found.beats + step.beats(vl, mr);
                    found.beats = static_cast<uint32_t>(std::min<uint64_t>(sum, kMostBeats));
                    found.some[2] = found.some[1], found.some[1] = found.some[0];
                    found.some[0] = false;
                }
            }
            if (found == ways[place]) continue;
            ways[place] = found;
            changed = true;
        }
    }
    std::vector<Ahead> found(m_used);
    for (uint64_t place = 0; place < m_used; ++place) {
        const Ways& now = ways[place];
        uint32_t fewer = 0;
        for (uint32_t i = 0; i < kLeftOut; ++i)
            if (now.some[i]) fewer = std::max(fewer, kLeftOut - i);
        found[place] = {.beats = static_cast<uint16_t>(fewer ? 0 : now.beats),
                        .fewer = static_cast<uint8_t>(fewer),
                        .then = static_cast<uint8_t>(now.soon ? 2 : 3)};
    }
    return found;
}

Execute function_of(uint32_t row) {
    switch (row) {
#define VIP_ROW(number, ...) \
    case number:             \
        return __VA_ARGS__::template execute<false, false>;
#define VIP_HALT(number)
#include "rows.inc"
        default:
            return [](Engine&, const Operation&, uint64_t&) { return kIllegalInstruction; };
    }
}

// The program in an engine's buffer. Engines with the same program share it, since a copy for each
// engine of a chip would not fit the processor's cache.
std::shared_ptr<const Program> program_of(const Sizes& sizes, const Operation* operations,
                                          const Word* buffer) {
    static std::vector<std::weak_ptr<const Program>> known;
    std::vector<Step> made(sizes.buffer_words);
    for (uint64_t place = 0; place < sizes.buffer_words; ++place) {
        Step& step = made[place];
        static_cast<Word&>(step) = buffer[place];
        step.registers = uint64_t{step.reads_a || step.writes} << step.a |
                         uint64_t{step.reads_b} << step.b | uint64_t{step.reads_c} << step.c;
        step.loaded = uint64_t{step.unit == kLoadStore && step.writes} << step.a;
        step.plain = step.legal && step.unit != kIssue;
        if (place >= sizes.words) continue;
        step.operation = operations[place];
        step.function = function_of(step.operation.row);
    }
    find_distances(made, sizes.words);
    std::erase_if(known, [](const auto& each) { return each.expired(); });
    for (const auto& each : known) {
        const auto found = each.lock();
        if (found && found->words().size() == made.size() &&
            !std::memcmp(found->words().data(), made.data(), made.size() * sizeof(Step)))
            return found;
    }
    const auto kept = std::make_shared<const Program>(std::move(made), sizes.words);
    known.push_back(kept);
    return kept;
}

// The bits of a program counter that the engine stores (pe.interface.pc_shape).
int64_t PeModel::kept(int64_t pc) const {
    const int64_t addressed = static_cast<int64_t>(m_sizes.addressed_words);
    if (m_sizes.exact_pc) return pc;
    const bool outside = pc < 0 || pc >= addressed;
    return (pc & (addressed - 1)) - (outside ? addressed : 0);
}

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
    // Indexed by extent.
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
        // Rows of a matrix are as aligned as it.
        const uint64_t row = extent == kExtentMatrix ? found.vl << word.width : 0;
        const bool beyond = (start > most) | (end > m_sizes.scratchpad_bytes / kRangeBytes) |
                            (((start | row) & unaligned) != 0);
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

void PeModel::launch() {
    m_state = State::kClear;
    m_step = 0;
}

EngineResult PeModel::result() {
    catch_up();
    EngineResult found = {.counters = {},
                          .cycles = m_cycles,
                          .pc = m_fault_pc,
                          .cause = m_cause,
                          .running = running(),
                          .memory_error = m_failed,
                          .history = {},
                          .history_turn = 0};
    if (m_sizes.counters) std::copy_n(m_counters, kCounters, found.counters);
    const History* history = m_load_store.history();
    if (history) found.history_turn = history->turn();
    if (history && m_sizes.counters) {
        found.history[kHistoryProbes - kCounters] = history->probes;
        found.history[kHistoryHits - kCounters] = history->hits;
        found.history[kWorkspaceColumns - kCounters] = history->columns;
    }
    return found;
}

void PeModel::launched() {
    m_run = true;
    m_state = State::kRun;
    m_following = 0;
    m_engine.vl = kStartVl, m_engine.mr = kStartMr, m_engine.fx = kStartFx;
    m_engine.workspace = {};
    set_ahead();
    m_settling = static_cast<uint32_t>(m_sizes.settling_cycles);
}

void PeModel::sequence(uint32_t cause_now, int64_t cause_pc, bool halt, bool done,
                       int64_t waiting_pc, bool late) {
    const bool failed_now = m_failed, stop = m_waits.late_stop;
    m_waits.late_stop = m_stop;
    if (late) m_failed = true;
    switch (m_state) {
        case State::kRest:
            break;
        case State::kClear:
            if (++m_step == m_sizes.clear_cycles) launched();
            break;
        case State::kRun:
            m_fault_pc = cause_pc;
            if (cause_now != kNone) {
                m_cause = cause_now;
            } else if (failed_now || ((halt || stop) && late)) {
                m_fault_pc = waiting_pc;
            }
            if (cause_now != kNone || failed_now || halt || stop) {
                m_run = false;
                m_state = State::kDrain;
            }
            break;
        case State::kDrain:
            m_step = 0;
            if (late && !failed_now && m_cause == kNone) m_fault_pc = waiting_pc;
            if (done) m_state = State::kFlush;
            break;
        case State::kFlush:
            if (++m_step == m_sizes.flush_cycles) {
                m_state = State::kRest;
                if (m_cause == kNone && m_failed) m_cause = kMemoryError;
            }
            break;
    }
    if (m_stop || late) m_run = false;
}

}  // namespace vip::timed
