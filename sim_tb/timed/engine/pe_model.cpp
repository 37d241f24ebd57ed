#include "pe_model.h"

#include <algorithm>

namespace vip::timed {
namespace {

// An instruction that waits for nothing.
constexpr Word kNothing = {};

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

EngineResult PeModel::result() const {
    EngineResult found = {.counters = {},
                          .cycles = cycles,
                          .pc = m_fault_pc,
                          .cause = m_cause,
                          .running = running(),
                          .memory_error = m_failed};
    std::copy(std::begin(m_counters), std::end(m_counters), found.counters);
    return found;
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
    const bool late = m_load_store.error, failed_now = m_failed, stop = m_late_stop;
    m_late_stop = m_stop;
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

// pe/frontend/dispatch.py
void PeModel::look_at_dispatch(Cycle& c) const {
    const Dispatched& held = m_dispatched;
    const bool goes = m_leaves && !c.failed, vector = held.word->unit == kVector;
    const bool waiting = m_dispatch_held && !m_leaves;
    c.offer_ready = !m_dispatch_held || m_leaves;
    c.dispatch_cause = m_dispatch_held ? held.cause : kNone;
    c.vector_goes = goes && vector;
    c.transfer_done = goes && !vector;
    c.transfer_goes = c.transfer_done && !held.nothing;
    c.conflict = waiting && m_arc.conflict(held.ranges);
    c.full = waiting && m_arc.full();
    c.leaves = waiting && held.cause == kNone && !c.failed;
    if (vector) {
        c.leaves = c.leaves && !m_vector_waits && !c.conflict;
    } else {
        const bool accepted =
            held.nothing || m_load_store.ready(held.word->store && held.word->is_register);
        c.leaves = c.leaves && (held.word->is_register || !(c.conflict || c.full)) && accepted;
    }
}

// The fault of the instruction at issue.
uint32_t PeModel::cause_at_issue(bool present) const {
    const Word& now = *m_now;
    if (!present) return kNone;
    if (m_outside_now) return kPcOutOfProgram;
    if (!now.legal) return kIllegalInstruction;
    if (now.unit != kIssue) return kNone;
    const uint64_t value = m_engine.registers[now.a];
    const bool bad = (now.control == kSetVl && (!value || value > m_engine.max_vl)) ||
                     (now.control == kSetMr && (!value || value > m_engine.max_mr)) ||
                     (now.control == kSetFx && value > kMostFx);
    return bad ? kVectorSetting : kNone;
}

// pe/frontend/issue.py; a scalar instruction executes.
void PeModel::look_at_issue(Cycle& c) {
    const Word& now = *m_now;
    const bool scalar = now.unit == kScalar, control = now.unit == kIssue;
    c.present = c.run && m_held;
    c.sound = c.present && !m_outside_now && now.legal;
    c.cause = c.dispatch_cause != kNone ? c.dispatch_cause : cause_at_issue(c.present);
    const bool sized = !m_settling || !now.matrix;
    const bool wanted = (now.unit == kVector && sized) || now.unit == kLoadStore;
    bool ends = control;
    if (control && now.control == kDrain) ends = !m_dispatch_held && !m_vector_busy;
    if (control && now.control == kMemfence) ends = !m_dispatch_held && m_quiet;
    c.fire = scalar || (wanted && c.offer_ready) || ends;
    c.offered = c.sound && wanted && c.offer_ready;
    c.halt = c.sound && control && now.control == kHalt;
    c.target = m_target;
    bool taken = false;
    if (c.sound && scalar) {
        m_engine.pc = kNever;
        execute(m_engine, m_engine.program[m_pc]);
        taken = m_engine.pc != kNever;
        if (taken) m_target = kept(m_engine.pc + 1);
    }
    c.leads_away = taken || c.halt;
}

// pe/frontend/operands.py and fetch.py
void PeModel::look_at_operands(Cycle& c) const {
    const Word& next = *m_operands_word;
    const bool loads = m_held && m_now->unit == kLoadStore && m_now->writes;
    const auto missing = [&](uint8_t number) {
        return !(m_valid >> number & 1) || (loads && number == m_now->a);
    };
    c.waits = ((next.reads_a || next.writes) && missing(next.a)) ||
              (next.reads_b && missing(next.b)) || (next.reads_c && missing(next.c));
    c.next_waits = m_operands_held && (c.waits || m_again) && !c.redirect;
    c.next_ready = !m_held || c.fire;
    c.next_valid = m_operands_held && !c.waits && !m_again;
    const bool ready = !m_operands_held || (c.next_valid && c.next_ready);
    c.take = c.run && m_fetch_valid && !c.redirect && ready;
    c.advance = c.run && (ready || !m_fetch_valid || c.redirect);
}

// What the cycle counts as.
uint32_t PeModel::event(const Cycle& c) const {
    const Word &now = *m_now, &held = *m_dispatched.word;
    const bool vector = now.unit == kVector, transfer = now.unit == kLoadStore;
    if (!c.run) return kStallFence;
    if (!c.present) return c.next_waits ? kStallRegister : kStallFetch;
    if (c.cause != kNone) return kStallFence;
    if (c.fire)
        return now.unit == kScalar ? kIssuedScalar
               : vector            ? kIssuedVector
               : transfer          ? kIssuedLoadStore
                                   : kIssuedControl;
    if ((vector || transfer) && !c.offer_ready) {
        const bool by_vector = held.unit == kVector, by_register = held.is_register;
        if (m_late_conflict && (by_vector || !by_register)) return kStallArcConflict;
        if (by_vector) return kStallVector;
        return !by_register && m_late_full ? kStallArcFull : kStallLoadStore;
    }
    if (vector) return kStallVector;
    return now.control == kDrain ? kStallDrain : kStallFence;
}

void PeModel::count(const Cycle& c) {
    const bool active = m_state == State::kRun || m_state == State::kDrain;
    if (m_state != State::kRest) ++cycles;
    if (!m_sizes.counters) return;
    // What was issued in the cycle before goes no further if it has a fault.
    uint32_t late = m_late_event;
    const bool passed_on = late == kIssuedVector || late == kIssuedLoadStore;
    if (c.dispatch_cause != kNone && passed_on) late = kStallFence;
    if (late < kCounters) ++m_counters[late];
    m_late_event = active ? event(c) : kCounters;
    m_counters[kCycles] += active;
    m_counters[kVectorBusy] += active && m_vector_running;
    if (c.transfer_done)
        m_counters[m_dispatched.word->store ? kBytesStored : kBytesLoaded] += m_dispatched.bytes;
}

// Settings and registers. A load is marked, then what is written is valid.
void PeModel::write(const Cycle& c) {
    const Word& now = *m_now;
    if (c.sound && now.unit == kIssue) {
        execute(m_engine, m_engine.program[m_pc]);
        if (now.control == kSetVl || now.control == kSetMr)
            m_settling = static_cast<uint32_t>(m_sizes.settling_cycles);
    }
    const uint64_t bit = uint64_t{1} << now.a;
    if (c.offered && now.unit == kLoadStore && now.writes) m_valid &= ~bit;
    if (c.sound && now.unit == kScalar && now.writes) m_valid |= bit;
    if (m_load_store.loaded) {
        m_valid |= uint64_t{1} << m_load_store.loaded_index;
        m_engine.registers[m_load_store.loaded_index] = m_load_store.loaded_value;
    }
}

// pe/vector/control.py; what the instruction does is done when it is handed on.
void PeModel::vector_edge(bool handed_on) {
    const Dispatched& held = m_dispatched;
    uint64_t beats = 0;
    if (handed_on) {
        for (int i = 0; i < 3; ++i) m_vector.registers[i] = held.values[i];
        m_vector.vl = held.vl, m_vector.mr = held.mr, m_vector.fx = held.fx;
        execute(m_vector, *held.operation);
        const uint64_t words = ((held.vl << held.word->width) + kWordBytes - 1) / kWordBytes;
        beats = words * held.word->passes * (held.word->matrix ? held.mr : 1);
    }
    m_vector_busy = handed_on || m_vector_running || m_unwritten > 1;
    if (m_vector_running) {
        m_unwritten = kVectorLatency - 1;
    } else if (m_unwritten) {
        --m_unwritten;
    }
    if (m_vector_running && m_beats != 1) {
        if (handed_on) m_vector_waits = true, m_waiting_beats = beats;
        --m_beats;
    } else {
        m_vector_running = m_vector_waits || handed_on;
        m_beats = m_vector_waits ? m_waiting_beats : beats;
        m_vector_waits = false;
    }
}

// Load-store unit and array range check.
void PeModel::transfer_edge(const MemoryPort& port, bool handed_on) {
    const Dispatched& held = m_dispatched;
    const bool store = held.word->store;
    const uint64_t dram = held.values[store ? 0 : 1], near = held.values[store ? 1 : 0];
    const Command given = {.store = store,
                           .is_register = held.word->is_register,
                           .width = held.word->width,
                           .dram = dram,
                           .columns = static_cast<uint32_t>(held.columns),
                           .last = static_cast<uint32_t>((dram + held.bytes - 1) % kColumnBytes),
                           .scratchpad = static_cast<uint32_t>(near - dram % kWordBytes),
                           .entry = m_entry,
                           .index = held.word->a};
    const bool allocates = handed_on && !given.is_register;
    const uint32_t entry = m_entry;
    m_entry = m_arc.free_entry();
    m_arc.edge(m_load_store.arrived ? m_load_store.arrived_entry : kNobody,
               m_load_store.released ? m_load_store.released_entry : kNobody, entry,
               held.ranges[store ? 1 : 0], allocates ? (store ? 1 : given.columns) : 0, store);
    m_load_store.edge(port, handed_on ? &given : nullptr, held.values[1]);
}

// From stage to stage, the last one first. `offer`: what goes to dispatch, if anything does.
void PeModel::stage_edge(const Cycle& c, const Dispatched& offer) {
    if (m_leaves || c.failed || (m_dispatched.cause != kNone && !c.run)) m_dispatch_held = false;
    m_leaves = c.leaves;
    m_late_conflict = c.conflict;
    m_late_full = c.full;
    if (c.offered) {
        m_dispatched = offer;
        m_dispatch_held = true;
    }
    if (m_held) m_last_pc = m_pc;
    m_redirect = c.leads_away;
    if (c.next_ready) {
        m_now = m_operands_word;
        m_pc = m_operands_pc;
        m_outside_now = m_operands_outside;
        m_held = c.next_valid && !c.leads_away && !c.redirect;
    }
    if (!c.run) m_held = false;
    m_again = m_operands_held && c.waits && c.run && !c.redirect;
    if (!c.run || c.redirect || (c.next_valid && c.next_ready)) m_operands_held = false;
    if (c.take) {
        m_operands_held = true;
        m_operands_word = word_at(m_fetch_pc);
        m_operands_pc = m_fetch_pc;
        m_operands_outside = static_cast<uint64_t>(m_fetch_pc) >= m_sizes.words;
    }
    if (!c.run) m_fetch_valid = false;
    if (c.advance) {
        m_fetch_valid = true;
        m_fetch_pc = c.redirect ? c.target : m_following;
        m_following = kept(m_fetch_pc + 1);
    }
}

// Registers that decide what happens in a cycle in which no transfer is on its way.
PeModel::Waits PeModel::waits() const {
    uint32_t bits = 0;
    for (const bool bit :
         {m_late_conflict, m_late_full, m_quiet, m_again, m_vector_busy, m_vector_running,
          m_vector_waits, m_late_stop, m_redirect, m_held, m_operands_held, m_fetch_valid,
          m_dispatch_held, m_leaves, m_run, m_outside_now})
        bits = bits << 1 | bit;
    return {m_now, m_pc, m_fetch_pc, bits, m_entry, m_unwritten, m_late_event, m_settling};
}

// After a cycle in which `waits` stayed and no transfer was on its way: the cycles that do the same,
// unless a response comes.
uint64_t PeModel::frozen(const Cycle& c) const {
    const bool moves = (c.present && c.fire) || c.vector_goes || c.transfer_done || c.leaves ||
                       c.take || c.advance || c.redirect || c.cause != kNone;
    if (moves || m_state != State::kRun || !m_run || m_stop || m_failed ||
        !m_load_store.steady())
        return 0;
    return m_vector_running ? m_beats - 1 : ~uint64_t{0};
}

bool PeModel::pass() {
    if (!m_frozen) return false;
    --m_frozen;
    ++cycles;
    m_beats -= m_vector_running;
    if (m_sizes.counters) {
        ++m_counters[m_late_event];
        ++m_counters[kCycles];
        m_counters[kVectorBusy] += m_vector_running;
    }
    return true;
}

void PeModel::cycle(MemoryPort& port) {
    if (!port.response_valid && pass()) {
        port.response_ready = true;
        return;
    }
    const Waits before = waits();
    const bool steady = m_load_store.steady() && m_arc.settled();
    Cycle c = {};
    c.run = m_run;
    c.redirect = m_redirect;
    c.failed = m_failed;
    m_load_store.look(port, m_held && m_now->unit == kScalar && m_now->writes);
    look_at_dispatch(c);
    look_at_issue(c);
    look_at_operands(c);
    count(c);

    const int64_t waiting_pc = m_dispatch_held ? m_dispatched.pc
                               : m_held        ? m_pc
                               : c.next_waits  ? m_operands_pc
                                               : m_last_pc;
    const int64_t cause_pc = c.dispatch_cause != kNone ? m_dispatched.pc : m_pc;
    const bool idle = m_load_store.idle(), quiet = !m_dispatch_held && idle;
    if (m_settling) --m_settling;
    sequence(c.cause, cause_pc, c.halt, quiet && !m_vector_busy, waiting_pc);
    const Dispatched offer = c.offered ? dispatched(*m_now, m_pc) : Dispatched{};
    write(c);
    vector_edge(c.vector_goes);
    transfer_edge(port, c.transfer_goes);
    m_quiet = quiet;
    stage_edge(c, offer);
    m_frozen = steady && waits() == before ? frozen(c) : 0;
}

}  // namespace vip::timed
