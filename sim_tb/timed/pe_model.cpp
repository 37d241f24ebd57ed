#include "pe_model.h"


namespace vip::timed {
namespace {

// An instruction that waits for nothing.
constexpr Word kNothing = {};

constexpr uint64_t kUnitMask = kRangeBytes - 1;
// Where no branch leads.
constexpr int64_t kNever = INT64_MIN;

}  // namespace

PeModel::PeModel(const Sizes& sizes, Engine& engine, const Word* buffer)
    : m_sizes(sizes),
      m_engine(engine),
      m_vector(engine),
      m_buffer(buffer),
      m_operations(engine.program, engine.program + sizes.words),
      m_operands_word(&kNothing),
      m_now(&kNothing),
      m_arc(sizes.arc_entries),
      m_load_store(engine.scratchpad, static_cast<uint32_t>(sizes.scratchpad_bytes),
                   static_cast<uint32_t>(sizes.tags)) {
    for (Operation& operation : m_operations) operation.a = 0, operation.b = 1, operation.c = 2;
    m_dispatched.word = &kNothing;
}

void PeModel::launch() {
    m_state = State::kClear;
    m_step = 0;
}

const Word* PeModel::word_at(int64_t pc) const {
    const uint64_t place = static_cast<uint64_t>(pc) % m_sizes.addressed_words;
    return place < m_sizes.buffer_words ? &m_buffer[place] : &kNothing;
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

// What the instruction touches (pe/frontend/range_check.py).
Dispatched PeModel::dispatched(const Word& word, int64_t pc) const {
    Dispatched found = {};
    found.word = &word;
    found.operation = &m_operations[pc];
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
        range.start = static_cast<uint32_t>(start % m_sizes.scratchpad_bytes / kRangeBytes);
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
        found.columns = (address % 32 + size + 31) / 32;
        misaligned = address & (word.is_register ? (uint64_t{1} << word.width) - 1 : unaligned);
        beyond = address >= 2 * bytes || (address & (2 * bytes - 1)) + size > bytes;
    }
    found.cause = outside ? kScratchpadRange : misaligned ? kMisaligned : beyond ? kDramRange : kNone;
    return found;
}

void PeModel::count(uint32_t event, bool stays) {
    uint32_t late = m_late_event;
    m_late_event = event;
    if (late >= kCounters) return;
    if (stays && (late == kIssuedVector || late == kIssuedLoadStore)) late = kStallFence;
    ++counters[late];
}

void PeModel::launched() {
    m_run = true;
    m_state = State::kRun;
    m_following = 0;
    m_engine.vl = kStartVl, m_engine.mr = kStartMr, m_engine.fx = kStartFx;
    m_settling = static_cast<uint32_t>(m_sizes.settling_cycles);
}

// pe/sequencer.py
void PeModel::sequence(uint32_t cause_now, int64_t cause_pc, bool halt, bool done,
                       int64_t waiting_pc) {
    const bool late = m_load_store.error, failed_now = failed, stop = m_late_stop;
    m_late_stop = m_stop;
    if (late) failed = true;
    switch (m_state) {
        case State::kRest:
            break;
        case State::kClear:
            if (++m_step == m_sizes.clear_cycles) launched();
            break;
        case State::kRun:
            pc = cause_pc;
            if (cause_now != kNone) {
                cause = cause_now;
            } else if (failed_now || ((halt || stop) && late)) {
                pc = waiting_pc;
            }
            if (cause_now != kNone || failed_now || halt || stop) {
                m_run = false;
                m_state = State::kDrain;
            }
            break;
        case State::kDrain:
            m_step = 0;
            if (late && !failed_now && cause == kNone) pc = waiting_pc;
            if (done) m_state = State::kFlush;
            break;
        case State::kFlush:
            if (++m_step == m_sizes.flush_cycles) {
                m_state = State::kRest;
                if (cause == kNone && failed) cause = kMemoryError;
            }
            break;
    }
    if (m_stop || late) m_run = false;
}

void PeModel::cycle(MemoryPort& port) {
    const bool run = m_run, redirect = m_redirect, failed_now = failed, was_held = m_held;
    const Word& now = *m_now;
    const bool scalar = now.unit == kScalar;
    const bool vector = now.unit == kVector, transfer = now.unit == kLoadStore;
    const bool control = now.unit == kIssue;
    const bool writes = m_held && scalar && now.writes;
    const bool loads = m_held && transfer && now.writes;
    m_load_store.look(port, writes);
    const bool load_store_idle = m_load_store.idle();

    // Dispatch.
    const Dispatched& held = m_dispatched;
    const bool offer_ready = !m_dispatch_held || m_leaves;
    const uint32_t dispatch_cause = m_dispatch_held ? held.cause : kNone;
    const bool goes = m_leaves && !failed_now;
    const bool vector_goes = goes && held.word->unit == kVector;
    const bool transfer_done = goes && !vector_goes;
    const bool transfer_goes = transfer_done && !held.nothing;
    const bool waiting = m_dispatch_held && !m_leaves, dispatch_empty = !m_dispatch_held;
    const bool conflict = waiting && m_arc.conflict(held.ranges);
    const bool full = waiting && m_arc.full();
    const bool vector_ready = !m_vector_waits;
    const bool load_store_ready = m_load_store.ready(held.word->store && held.word->is_register);
    bool leaves = waiting && held.cause == kNone && !failed_now;
    if (held.word->unit == kVector) {
        leaves = leaves && vector_ready && !conflict;
    } else {
        leaves = leaves && (held.word->is_register || !(conflict || full)) &&
                 (held.nothing || load_store_ready);
    }

    // Issue.
    const bool present = run && m_held;
    const bool sound = present && !m_outside_now && now.legal;
    uint32_t own_cause = kNone;
    const uint64_t value = m_engine.registers[now.a];
    if (present && m_outside_now) {
        own_cause = kPcOutOfProgram;
    } else if (present && !now.legal) {
        own_cause = kIllegalInstruction;
    } else if (present && control) {
        if ((now.control == kSetVl && (!value || value > m_engine.max_vl)) ||
            (now.control == kSetMr && (!value || value > m_engine.max_mr)) ||
            (now.control == kSetFx && value > kMostFx))
            own_cause = kVectorSetting;
    }
    const uint32_t cause_now = dispatch_cause != kNone ? dispatch_cause : own_cause;
    const bool sized = !m_settling || !now.matrix;
    const bool wanted = (vector && sized) || transfer;
    const bool moves = wanted && offer_ready;
    bool ends = control;
    if (control && now.control == kDrain) ends = dispatch_empty && !m_vector_busy;
    if (control && now.control == kMemfence) ends = dispatch_empty && m_quiet;
    const bool fire = scalar || moves || ends;
    const bool halt = sound && control && now.control == kHalt;
    bool taken = false;
    const int64_t target = m_target;
    if (sound && scalar) {
        m_engine.pc = kNever;
        execute(m_engine, m_engine.program[m_pc]);
        taken = m_engine.pc != kNever;
        if (taken) m_target = kept(m_engine.pc + 1);
    }
    const bool leads_away = taken || halt;

    // Operands.
    const Word& next = *m_operands_word;
    const auto missing = [&](uint8_t number) {
        return !(m_valid >> number & 1) || (loads && number == now.a);
    };
    const bool waits = ((next.reads_a || next.writes) && missing(next.a)) ||
                       (next.reads_b && missing(next.b)) || (next.reads_c && missing(next.c));
    const bool next_waits = m_operands_held && (waits || m_again) && !redirect;
    const bool next_ready = !m_held || fire;
    const bool next_valid = m_operands_held && !waits && !m_again;
    const bool operands_ready = !m_operands_held || (next_valid && next_ready);
    const bool take = run && m_fetch_valid && !redirect && operands_ready;
    const bool advance = run && (operands_ready || !m_fetch_valid || redirect);
    const int64_t waiting_pc = m_dispatch_held ? held.pc
                               : m_held        ? m_pc
                               : next_waits    ? m_operands_pc
                                               : m_last_pc;
    const int64_t cause_pc = dispatch_cause != kNone ? held.pc : m_pc;

    // Counters.
    const bool active = m_state == State::kRun || m_state == State::kDrain;
    if (m_state != State::kRest) ++cycles;
    if (m_sizes.counters) {
        uint32_t event = kStallFence;
        if (!run) {
        } else if (!present) {
            event = next_waits ? kStallRegister : kStallFetch;
        } else if (cause_now != kNone) {
        } else if (fire) {
            event = scalar     ? kIssuedScalar
                    : vector   ? kIssuedVector
                    : transfer ? kIssuedLoadStore
                               : kIssuedControl;
        } else if ((vector || transfer) && !offer_ready) {
            const bool by_vector = held.word->unit == kVector, by_register = held.word->is_register;
            event = m_late_conflict && (by_vector || !by_register) ? kStallArcConflict
                    : by_vector                                    ? kStallVector
                    : !by_register && m_late_full                  ? kStallArcFull
                                                                   : kStallLoadStore;
        } else if (vector) {
            event = kStallVector;
        } else if (now.control == kDrain) {
            event = kStallDrain;
        }
        count(active ? event : kCounters, dispatch_cause != kNone);
        if (active) {
            ++counters[kCycles];
            counters[kVectorBusy] += m_vector_running;
        }
        if (transfer_done) counters[held.word->store ? kBytesStored : kBytesLoaded] += held.bytes;
    }
    const bool done = dispatch_empty && !m_vector_busy && load_store_idle;
    if (m_settling) --m_settling;
    sequence(cause_now, cause_pc, halt, done, waiting_pc);

    // Settings.
    if (sound && control) {
        execute(m_engine, m_engine.program[m_pc]);
        if (now.control == kSetVl || now.control == kSetMr)
            m_settling = static_cast<uint32_t>(m_sizes.settling_cycles);
    }
    const bool offered = sound && wanted && offer_ready;
    const Dispatched offer = offered ? dispatched(now, m_pc) : Dispatched{};

    // The registers: a load is marked, then what is written is valid.
    if (offered && transfer && now.writes) m_valid &= ~(uint64_t{1} << now.a);
    if (sound && scalar && now.writes) m_valid |= uint64_t{1} << now.a;
    if (m_load_store.loaded) {
        m_valid |= uint64_t{1} << m_load_store.loaded_index;
        m_engine.registers[m_load_store.loaded_index] = m_load_store.loaded_value;
    }

    // Units.
    Command given;
    if (transfer_goes) {
        const uint64_t dram = held.values[held.word->store ? 0 : 1];
        const uint64_t near = held.values[held.word->store ? 1 : 0];
        given = Command{.store = held.word->store,
                         .is_register = held.word->is_register,
                         .width = held.word->width,
                         .dram = dram,
                         .columns = static_cast<uint32_t>(held.columns),
                         .last = static_cast<uint32_t>((dram + held.bytes - 1) % 32),
                         .scratchpad = static_cast<uint32_t>(near - dram % 8),
                         .entry = m_entry,
                         .index = held.word->a};
    }
    const bool allocates = transfer_goes && !given.is_register;
    const Range range = held.ranges[held.word->store ? 1 : 0];
    const uint32_t entry = m_entry;
    m_entry = m_arc.free_entry();
    m_late_conflict = conflict;
    m_late_full = full;
    if (vector_goes) {
        for (int i = 0; i < 3; ++i) m_vector.registers[i] = held.values[i];
        m_vector.vl = held.vl, m_vector.mr = held.mr, m_vector.fx = held.fx;
        execute(m_vector, *held.operation);
    }
    const bool last = m_beats == 1;
    const bool was_running = m_vector_running;
    uint64_t beats = 0;
    if (vector_goes) {
        const uint64_t words = ((held.vl << held.word->width) + 7) / 8;
        beats = words * held.word->passes * (held.word->matrix ? held.mr : 1);
    }
    if (was_running && !last) {
        if (vector_goes) m_vector_waits = true, m_waiting_beats = beats;
        --m_beats;
    } else {
        m_vector_running = m_vector_waits || vector_goes;
        m_beats = m_vector_waits ? m_waiting_beats : beats;
        m_vector_waits = false;
    }
    m_vector_busy = vector_goes || was_running || m_unwritten > 1;
    if (was_running) {
        m_unwritten = kVectorLatency - 1;
    } else if (m_unwritten) {
        --m_unwritten;
    }
    m_arc.edge(m_load_store.arrived ? m_load_store.arrived_entry : kNobody,
               m_load_store.released ? m_load_store.released_entry : kNobody, entry, range,
               allocates ? (given.store ? 1 : given.columns) : 0, allocates && given.store);
    m_load_store.edge(port, transfer_goes ? &given : nullptr, held.values[1]);

    // From stage to stage, the last one first.
    if (m_leaves || failed_now || (held.cause != kNone && !run)) m_dispatch_held = false;
    m_leaves = leaves;
    if (offered) {
        m_dispatched = offer;
        m_dispatch_held = true;
    }
    m_quiet = dispatch_empty && load_store_idle;
    if (was_held) m_last_pc = m_pc;
    m_redirect = leads_away;
    if (next_ready) {
        m_now = m_operands_word;
        m_pc = m_operands_pc;
        m_outside_now = m_operands_outside;
        m_held = next_valid && !leads_away && !redirect;
    }
    if (!run) m_held = false;
    m_again = m_operands_held && waits && run && !redirect;
    if (!run || redirect || (next_valid && next_ready)) m_operands_held = false;
    if (take) {
        m_operands_held = true;
        m_operands_word = word_at(m_fetch_pc);
        m_operands_pc = m_fetch_pc;
        m_operands_outside = static_cast<uint64_t>(m_fetch_pc) >= m_sizes.words;
    }
    if (!run) m_fetch_valid = false;
    if (advance) {
        m_fetch_valid = true;
        m_fetch_pc = redirect ? target : m_following;
        m_following = kept(m_fetch_pc + 1);
    }
}

}  // namespace vip::timed
