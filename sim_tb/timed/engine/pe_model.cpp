#include "pe_model.h"

#include <algorithm>

namespace vip::timed {
namespace {

// An instruction that waits for nothing.
constexpr Step kNothing = {};

std::unique_ptr<History> history_of(const Sizes& sizes) {
    if (!sizes.history_ways) return nullptr;
    return std::make_unique<History>(static_cast<uint32_t>(sizes.history_sets),
                                     static_cast<uint32_t>(sizes.history_ways),
                                     static_cast<uint32_t>(sizes.scratchpad_bytes),
                                     static_cast<uint32_t>(sizes.history_turn));
}

}  // namespace

PeModel::PeModel(const Sizes& sizes, Engine& engine, const Word* buffer)
    : m_engine(engine),
      m_program(program_of(sizes, engine.program, buffer)),
      m_words(m_program->words().data()),
      m_straight(sizes.words > kRefill ? sizes.words - kRefill : 0),
      m_operands_word(&kNothing),
      m_now(&kNothing),
      m_ports(sizes.result_cycles ? std::make_unique<SharedPorts>(sizes.result_cycles) : nullptr),
      m_load_store(engine.scratchpad, static_cast<uint32_t>(sizes.scratchpad_bytes),
                   static_cast<uint32_t>(sizes.tags), history_of(sizes)),
      m_arc(sizes.arc_entries),
      m_sizes(sizes),
      m_vector(engine) {
    m_dispatched.word = &kNothing;
}

const Step* PeModel::word_at(int64_t pc) const {
    const uint64_t place = static_cast<uint64_t>(pc) & (m_sizes.addressed_words - 1);
    return place < m_sizes.buffer_words ? m_words + place : &kNothing;
}

// pe/frontend/dispatch.py
template <bool kUsual>
void PeModel::look_at_dispatch(Cycle& c) {
    const Dispatched& held = m_dispatched;
    const bool vector = held.word->unit == kVector, goes = m_leaves && !c.failed;
    c.offer_ready = !m_dispatch_held || m_leaves;
    c.dispatch_cause = m_dispatch_held ? held.cause : kNone;
    c.vector_goes = goes && vector;
    c.transfer_done = goes && !vector;
    c.transfer_goes = c.transfer_done && !held.nothing;
    if (c.offer_ready) return;
    compare();
    c.conflict = m_conflict;
    c.full = !vector && m_arc.full();
    if (held.cause != kNone || c.failed) return;
    c.leaves = vector ? !m_waits.vector_waits && !c.conflict : accepts(c.conflict, c.full);
}

bool PeModel::branches(const Step& now) {
    m_engine.pc = kNever;
    now.execute(m_engine);
    if (m_engine.pc == kNever) return false;
    m_target = kept(m_engine.pc + 1);
    return true;
}

// Fault of the instruction at issue.
uint32_t PeModel::cause_at_issue(bool present) const {
    const Step& now = *m_now;
    if (!present) return kNone;
    if (m_outside_now) return kPcOutOfProgram;
    if (!now.legal) return kIllegalInstruction;
    if (now.unit != kIssue) return kNone;
    const uint64_t value = m_engine.registers[now.a];
    if (now.control == kSetWs) {
        if (value % kDescriptorBytes) return kMisaligned;
        if (value >> m_sizes.address_bits) return kDramRange;
        const Workspace* found = m_load_store.declared();
        const bool refused = found && !found->sound(m_engine.address_space, m_engine.unaligned);
        return refused ? kWorkspace : kNone;
    }
    const bool bad = (now.control == kSetVl && (!value || value > m_engine.max_vl)) ||
                     (now.control == kSetMr && (!value || value > m_engine.max_mr)) ||
                     (now.control == kSetFx && value > kMostFx);
    return bad ? kVectorSetting : kNone;
}

// pe/frontend/issue.py; executes scalar instructions.
template <bool kUsual, bool kAlone>
void PeModel::look_at_issue(Cycle& c) {
    const Step& now = *m_now;
    const bool scalar = now.unit == kScalar, control = now.unit == kIssue;
    c.present = c.run && m_held;
    c.sound = c.present && !m_outside_now && now.legal;
    c.cause = c.dispatch_cause;
    if (c.cause == kNone && (!now.plain || m_outside_now)) [[unlikely]]
        c.cause = cause_at_issue(c.present);
    const bool sized = kUsual || !m_settling || !now.matrix;
    const bool wanted = (now.unit == kVector && sized) || now.unit == kLoadStore;
    bool ends = control;
    if (control && now.control == kDrain) [[unlikely]] ends = !m_dispatch_held && !m_waits.vector_busy;
    if (control && now.control == kMemfence) [[unlikely]] ends = !m_dispatch_held && m_waits.quiet;
    if (!kAlone && control && now.control == kSetWs) [[unlikely]] {
        ends = m_load_store.declared();
        c.declares = c.sound && !m_dispatch_held && m_waits.quiet && c.cause == kNone;
    }
    c.fire = scalar || (wanted && c.offer_ready) || ends;
    c.offered = c.sound && wanted && c.offer_ready;
    c.halt = c.sound && control && now.control == kHalt;
    c.target = m_target;
    bool taken = false;
    if (c.sound && scalar) taken = branches(now);
    c.leads_away = taken || c.halt;
}

// pe/frontend/operands.py and fetch.py
template <bool kUsual>
void PeModel::look_at_operands(Cycle& c) const {
    const uint64_t valid = m_held ? m_valid & ~m_now->loaded : m_valid;
    c.waits = m_operands_word->registers & ~valid;
    const bool stays = c.waits | m_waits.again;
    c.next_waits = m_operands_held & stays & !c.redirect;
    c.next_ready = !m_held | c.fire;
    c.next_valid = m_operands_held & !stays;
    const bool ready = !m_operands_held | (c.next_valid & c.next_ready);
    c.take = c.run & m_fetch_valid & !c.redirect & ready;
    c.advance = c.run & (ready | !m_fetch_valid | c.redirect);
}

// The event that the cycle counts as.
template <bool kUsual>
uint32_t PeModel::event(const Cycle& c) const {
    const Step &now = *m_now, &held = *m_dispatched.word;
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
        if (m_waits.late_conflict && (by_vector || !by_register)) return kStallArcConflict;
        if (by_vector) return kStallVector;
        return !by_register && m_waits.late_full ? kStallArcFull : kStallLoadStore;
    }
    if (vector) return kStallVector;
    return now.control == kDrain ? kStallDrain : kStallFence;
}

template <bool kUsual>
void PeModel::count(const Cycle& c) {
    const bool active = kUsual || m_state == State::kRun || m_state == State::kDrain;
    if (kUsual || m_state != State::kRest) ++m_cycles;
    // An instruction issued in the previous cycle goes no further if it faults.
    uint32_t late = m_late_event;
    const bool passed_on = late == kIssuedVector || late == kIssuedLoadStore;
    if (c.dispatch_cause != kNone && passed_on) late = kStallFence;
    ++m_counters[late];
    m_late_event = active ? event<kUsual>(c) : kCounters;
    m_counters[kCycles] += active;
    m_counters[kVectorBusy] += active && beats();
    if (c.transfer_done) count_transfer();
}

// Writes settings and registers. Registers to be loaded become invalid, then written ones valid.
template <bool kAlone>
void PeModel::write(const Cycle& c) {
    const Step& now = *m_now;
    if (const Workspace* found = kAlone ? nullptr : m_load_store.declared()) [[unlikely]]
        m_engine.workspace = c.cause == kNone ? *found : Workspace{};
    if (c.sound && now.unit == kIssue && now.control != kSetWs) [[unlikely]] {
        now.execute(m_engine);
        if (now.control == kSetVl || now.control == kSetMr) {
            m_settling = static_cast<uint32_t>(m_sizes.settling_cycles);
            set_ahead();
        }
    }
    if (c.offered) m_valid &= ~now.loaded;
    if (c.sound && now.unit == kScalar && now.writes) m_valid |= uint64_t{1} << now.a;
    if (!kAlone) receive();
}

void PeModel::receive() {
    if (!m_load_store.loaded) [[likely]] return;
    m_valid |= uint64_t{1} << m_load_store.loaded_index;
    m_engine.registers[m_load_store.loaded_index] = m_load_store.loaded_value;
}

// pe/vector/control.py; an instruction executes when it is handed over.
void PeModel::vector_edge(bool handed_on) {
    if (handed_on) execute_vector();
    const uint64_t beats = handed_on ? m_dispatched.beats : 0;
    m_waits.vector_busy = handed_on || m_waits.vector_running || m_unwritten > 1;
    if (m_waits.vector_running) {
        m_unwritten = kVectorLatency - 1;
    } else if (m_unwritten) {
        --m_unwritten;
    }
    if (m_ports) [[unlikely]] return shared_edge(handed_on);
    if (m_waits.vector_running && m_beats != 1) {
        if (handed_on) m_waits.vector_waits = true, m_waiting_beats = beats;
        --m_beats;
    } else {
        m_waits.vector_running = m_waits.vector_waits || handed_on;
        m_beats = m_waits.vector_waits ? m_waiting_beats : beats;
        m_waits.vector_waits = false;
    }
}

void PeModel::shared_edge(bool handed_on) {
    const Dispatched& held = m_dispatched;
    const Step& word = *held.word;
    const Stepping next = {.result = held.values[0],
                           .first = held.values[1],
                           .second = held.values[2],
                           .row_bytes = held.vl << word.width,
                           .rows = word.matrix ? held.mr : 1,
                           .passes = word.passes,
                           .width = word.width,
                           .matrix = word.matrix,
                           .scalar = word.extents[2] == kExtentElement,
                           .unary = word.extents[2] == kNoExtent};
    m_ports->edge(handed_on ? &next : nullptr);
    m_waits.vector_running = m_ports->running();
    m_waits.vector_waits = m_ports->waits();
}

// Load-store unit and array range check. Returns whether entries of the latter change.
bool PeModel::transfer_edge(const MemoryPort& port, bool handed_on) {
    const uint32_t entry = m_entry;
    m_entry = m_arc.free_entry();
    follow_transfers();
    const bool left = m_arc.leave(m_time);
    if (left) m_compared = false;
    if (!handed_on) {
        m_load_store.edge(port, nullptr, 0);
        return left;
    }
    const Command given = transfer(entry);
    m_load_store.edge(port, &given, m_dispatched.values[1]);
    return enter(given) | left;
}

// The instruction at dispatch as a command for the load-store unit.
Command PeModel::transfer(uint32_t entry) const {
    const Dispatched& held = m_dispatched;
    const bool store = held.word->store;
    const uint64_t dram = held.values[store ? 0 : 1], near = held.values[store ? 1 : 0];
    return {.store = store,
            .is_register = held.word->is_register,
            .width = held.word->width,
            .dram = dram,
            .columns = static_cast<uint32_t>(held.columns),
            .last = static_cast<uint32_t>((dram + held.bytes - 1) % kColumnBytes),
            .scratchpad = static_cast<uint32_t>(held.lowered ? near : near - dram % kWordBytes),
            .entry = entry,
            .index = held.word->a,
            .lowered = held.lowered,
            .final = false,
            .recorded = held.recorded,
            .bytes = held.bytes};
}

// Enters a transfer into the array range check. Returns whether it tracks it.
bool PeModel::enter(const Command& given) {
    if (given.is_register) return false;
    const uint32_t columns = given.store | given.lowered ? 1 : given.columns;
    m_arc.enter(given.entry, m_dispatched.ranges[given.store ? 1 : 0], columns, given.store,
                given.lowered);
    m_compared = false;
    return true;
}

// Moves instructions from stage to stage, last stage first. Registers of an instruction that goes to
// dispatch are valid.
template <bool kUsual>
void PeModel::stage_edge(const Cycle& c) {
    if (m_leaves || c.failed || (m_dispatched.cause != kNone && !c.run)) m_dispatch_held = false;
    if (m_leaves) m_given = false;
    m_leaves = c.leaves;
    m_waits.late_conflict = c.conflict;
    m_waits.late_full = c.full;
    if (c.offered) {
        dispatch(*m_now, m_pc, m_dispatched);
        m_dispatch_held = true;
        m_compared = false;
    }
    if (m_held) m_last_pc = m_pc;
    m_redirect = c.leads_away;
    if (c.next_ready) {
        m_now = m_operands_word;
        m_pc = m_operands_pc;
        m_outside_now = m_operands_outside;
        m_held = c.next_valid & !c.leads_away & !c.redirect;
    }
    if (!c.run) m_held = false;
    m_waits.again = m_operands_held & c.waits & c.run & !c.redirect;
    m_operands_held &= c.run & !c.redirect & !(c.next_valid & c.next_ready);
    if (c.take) {
        m_operands_held = true;
        take();
    }
    if (!c.run) m_fetch_valid = false;
    if (c.advance) {
        m_fetch_valid = true;
        advance(c.redirect ? c.target : m_following);
    }
}

// Whether the front end sees no effect of transfers: `changes` of entries, or of the unit's state,
// which was `seen` before.
bool PeModel::stays(bool changes, uint32_t seen) const {
    if (m_load_store.loaded) return false;
    if (!m_dispatch_held || m_dispatched.word->unit != kVector)
        return !changes && m_load_store.seen() == seen;
    return !changes || (m_waits.vector_waits && !m_waits.late_conflict);
}

// After a usual cycle that changed neither `m_waits` nor what the front end sees of transfers: how
// many cycles do the same unless it sees a change.
uint64_t PeModel::frozen(const Cycle& c) const {
    const bool moves = (c.present & c.fire) | c.vector_goes | c.transfer_done | c.leaves | c.take |
                       c.advance | c.redirect | (c.next_valid & c.next_ready) | (c.cause != kNone);
    if (moves) return 0;
    if (m_waits.vector_running) return m_beats - 1;
    return m_unwritten ? m_unwritten - 1 : kForever;
}

// Empties the load history at fences, and removes what a dispatched instruction will write.
void PeModel::report_to_history(const Cycle& c) {
    const bool fence = c.sound && m_now->unit == kIssue && m_now->control == kMemfence && c.fire;
    if (fence || c.declares) m_load_store.forget();
    const Range& range = m_dispatched.ranges[0];
    if ((c.vector_goes || c.transfer_done) && range.used) m_load_store.overwrites(range);
}

// What front end and vector unit do in a cycle, except moving instructions.
template <bool kUsual, bool kAlone>
void PeModel::front(Cycle& c) {
    c.run = kUsual || m_run;
    c.redirect = m_redirect;
    c.failed = !kUsual && m_failed;
    look_at_dispatch<kUsual>(c);
    look_at_issue<kUsual, kAlone>(c);
    look_at_operands<kUsual>(c);
    count<kUsual>(c);

    c.quiet = !m_dispatch_held && is_idle<kAlone>();
    const int64_t cause_pc = c.dispatch_cause != kNone ? m_dispatched.pc : m_pc;
    m_usual = kUsual;
    if (kUsual && c.cause == kNone && !c.halt) [[likely]] {
        m_fault_pc = cause_pc;
    } else {
        const int64_t waiting_pc = m_dispatch_held ? m_dispatched.pc
                                   : m_held        ? m_pc
                                   : c.next_waits  ? m_operands_pc
                                                   : m_last_pc;
        if (m_settling) --m_settling;
        sequence(c.cause, cause_pc, c.halt, c.quiet && !m_waits.vector_busy, waiting_pc,
                 !kAlone && m_load_store.error);
        m_usual = m_state == State::kRun && m_run && !m_stop && !m_waits.late_stop && !m_failed;
    }
    write<kAlone>(c);
    if (m_settling) [[unlikely]] m_usual = false;
    if (!kAlone && m_load_store.history()) [[unlikely]]
        report_to_history(c);
    vector_edge(c.vector_goes);
}

template <bool kUsual>
void PeModel::step(MemoryPort& port) {
    ++m_time;
    const Waits before = m_waits;
    const uint32_t seen = m_load_store.seen();
    Cycle c = {};
    front<kUsual, false>(c);
    const bool changes = transfer_edge(port, c.transfer_goes);
    if (c.declares) [[unlikely]] m_load_store.declare(m_engine.registers[m_now->a]);
    m_waits.quiet = c.quiet;
    stage_edge<kUsual>(c);
    m_frozen = kUsual && m_usual && m_waits == before && stays(changes, seen) ? frozen(c) : 0;
    m_seen = m_load_store.seen();
    m_still = m_load_store.steady();
    m_slack = slack();
}

template <bool kUsual>
void PeModel::step_alone() {
    const Waits before = m_waits;
    Cycle c = {};
    front<kUsual, true>(c);
    m_waits.quiet = c.quiet;
    stage_edge<kUsual>(c);
    m_frozen = kUsual && m_usual && m_waits == before ? frozen(c) : 0;
}

}  // namespace vip::timed
