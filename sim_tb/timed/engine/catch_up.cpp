// Lets front end and vector unit fall behind the load-store unit.
//
// Nothing sees what they do until they hand over a transfer or the program ends. So they can postpone
// their cycles and do them together, up to the minimum number before the next transfer, which follows
// from the instructions before it and the vector unit's beats. They catch up before they could see a
// change of the load-store unit that came after these cycles. The effect of a fault is visible only
// when the vector unit is done and the counters are complete, which is later.
#include <algorithm>

#include "pe_model.h"

namespace vip::timed {

// Whether a transfer at dispatch can't leave until the front end sees a change.
bool PeModel::blocked() const {
    return !accepts(m_compared && m_conflict, m_arc.full());
}

// The next instruction at issue, beyond scalar instructions whose successor is known.
PeModel::Way PeModel::way() const {
    constexpr int kMost = 8;  // scalar instructions
    Way found = m_held            ? Way{m_pc, 0}
                : m_redirect      ? Way{m_target, kRefill}
                : m_operands_held ? Way{m_operands_pc, 1}
                : m_fetch_valid   ? Way{m_fetch_pc, 2}
                                  : Way{m_following, 3};
    uint64_t unknown = ~m_valid;
    for (int i = 0; i < kMost && static_cast<uint64_t>(found.pc) < m_straight; ++i) {
        const Step& step = m_words[found.pc];
        if (step.unit != kScalar) break;
        if (step.writes) {
            unknown |= uint64_t{1} << step.a;
        } else {
            if (step.registers & unknown) break;
            m_engine.pc = kNever;
            step.execute(m_engine);
            if (m_engine.pc != kNever) {
                found = {kept(m_engine.pc + 1), found.cycles + 1 + kRefill};
                continue;
            }
        }
        ++found.pc, ++found.cycles;
    }
    return found;
}

// Minimum cycles before an instruction of the front end affects the load-store unit or depends on its
// state, if nothing waits.
uint64_t PeModel::distance(const Way& way) const {
    return std::min(way.cycles + word_at(way.pc)->distance, m_sizes.flush_cycles);
}

// The same, from the beats of the vector instructions before that one; 0 if unknown.
uint64_t PeModel::beats_ahead(int64_t pc) const {
    if (!m_ahead || static_cast<uint64_t>(pc) >= m_sizes.words) return 0;
    const Ahead& ahead = m_ahead[pc];
    // Beats of the instructions that runs, that waits, and that is at dispatch.
    const bool dispatched = m_dispatch_held && m_dispatched.word->unit == kVector;
    const uint64_t beats[] = {m_waits.vector_running ? m_beats : 0,
                              m_waits.vector_waits ? m_waiting_beats : 0,
                              dispatched ? m_dispatched.beats : 0};
    const uint64_t all = beats[0] + beats[1] + beats[2];
    uint64_t found = all + ahead.beats;
    for (uint32_t i = 3, fewer = ahead.fewer; fewer && i--;)
        if (beats[i]) found -= beats[i], --fewer;
    // A fault is reported after all beats, when the counters are complete.
    return found ? std::min(found + ahead.then, all + m_sizes.flush_cycles) : 0;
}

// Minimum cycles that the front end can do before it depends on the load-store unit.
uint64_t PeModel::slack() const {
    // An entry of the array range check that becomes free ends a wait.
    const uint64_t same = std::min(m_arc.next() - (m_time - m_behind), kForever);
    const uint64_t found = std::min(m_frozen, same);
    // A load history sees what vector instructions write.
    if (!m_usual || m_load_store.history()) return found;
    const Way next_one = way();
    const uint64_t further = distance(next_one);
    if (!m_dispatch_held) return std::max(found + further, beats_ahead(next_one.pc));
    if (m_dispatched.word->unit == kLoadStore) {
        // It goes one cycle after it can leave.
        if (m_leaves) return m_given ? std::max(further, beats_ahead(next_one.pc)) : 0;
        const uint64_t next = found + (further != 0);
        return blocked() ? std::max(next, std::min(same + 1, further)) : next;
    }
    if (m_dispatched.cause != kNone) [[unlikely]] return found + further;
    const uint64_t known = beats_ahead(next_one.pc);
    if (m_leaves | !m_held | m_outside_now | !m_now->plain | (m_now->unit == kScalar))
        return std::max(found + further, known);
    // The instruction at issue waits for the one at dispatch, and can't fault meanwhile.
    const uint64_t free = (m_compared & m_conflict ? same : 0) + 1 + further;
    if (!m_waits.vector_waits) return std::max(free, known);
    uint64_t begun = m_beats + 1 + further;
    const Step& next = *m_operands_word;
    if (m_operands_held && m_now->unit == kVector && next.plain && next.unit != kScalar &&
        !m_operands_outside)
        // The one behind a vector instruction at issue also waits, for the one that waits now.
        begun = m_beats + 1 + m_waiting_beats +
                std::min<uint64_t>(next.distance, m_sizes.flush_cycles);
    return std::max({free, begun, known});
}

// Does cycles of the front end in which nothing moves.
void PeModel::pass_frozen(uint64_t count) {
    m_frozen -= count;
    m_cycles += count;
    if (m_waits.vector_running) {
        m_beats -= count;
    } else {
        m_unwritten -= static_cast<uint32_t>(std::min<uint64_t>(m_unwritten, count));
    }
    m_counters[m_late_event] += count;
    m_counters[kCycles] += count;
    if (m_waits.vector_running) m_counters[kVectorBusy] += count;
}

void PeModel::catch_up() {
    while (m_behind) {
        uint64_t count;
        if (m_frozen) {
            // Stop after a cycle at whose end an entry of the array range check may become free.
            count = std::min({m_frozen, m_behind, m_arc.next() - (m_time - m_behind)});
            pass_frozen(count);
        } else if (!(count = flow(m_behind))) {
            count = 1;
            if (m_usual) {
                step_alone<true>();
            } else {
                step_alone<false>();
            }
        }
        m_behind -= count;
        const uint64_t time = m_time - m_behind;
        if (m_arc.next() < time) leave(time - 1);
        m_entry = m_arc.free_entry();
        if (m_arc.next() == time) leave(time);
    }
}

// Frees entries up to the end of a cycle that the front end has done.
void PeModel::leave(uint64_t time) {
    if (!m_arc.leave(time)) return;
    // If there was no conflict, there is none with fewer entries.
    m_compared &= !m_conflict;
    if (!stays(true, m_load_store.seen())) m_frozen = 0;
}

// A column of a transfer has arrived or been read, so its entry may become free after cycle `time`.
void PeModel::complete(uint32_t entry, uint64_t time) {
    if (!m_arc.complete(entry, time)) return;
    // Before that nothing changes.
    const uint64_t known = slack(), ahead = known > m_behind ? known - m_behind : 0;
    m_slack = std::min(m_slack, std::max(ahead, time - m_time));
}

// Updates the array range check; entries become free one cycle later.
void PeModel::follow_transfers() {
    if (m_load_store.grown) m_arc.grow(m_load_store.grown_entry);
    if (m_load_store.arrived) complete(m_load_store.arrived_entry, m_time + 1);
    if (m_load_store.released) complete(m_load_store.released_entry, m_time + 1);
}

// After a cycle of the load-store unit alone: updates what the front end sees of it in the next one.
void PeModel::show() {
    const uint32_t seen = m_load_store.seen(), before = m_seen;
    if (seen != before || m_load_store.loaded) {
        catch_up();
        if (!stays(false, before)) m_frozen = 0;
        m_seen = seen;
        m_slack = slack();
    }
    m_still = m_load_store.steady();
}

// A cycle of the load-store unit alone, which at most takes a response.
void PeModel::response_alone(const ResponseBeat* response) {
    if (m_still && !response) return;
    if (m_still && m_load_store.absorb(*response)) {
        if (m_load_store.arrived) complete(m_load_store.arrived_entry, m_time + 2);
        return;
    }
    m_load_store.respond(response);
    follow_transfers();
    show();
}

// The same if it also has transfers.
void PeModel::proceed_alone(MemoryPort& port) {
    pass(1);
    m_load_store.proceed(port);
    follow_transfers();
    show();
}

// The same in all other cases.
void PeModel::transfer_alone(const MemoryPort& port) {
    pass(1);
    if (m_load_store.loaded) catch_up();
    receive();
    follow_transfers();
    m_load_store.edge(port, nullptr, 0);
    show();
}

bool PeModel::rests_on() {
    if (!m_still || m_slack || !m_behind) return false;
    catch_up();
    m_slack = slack();
    return m_slack;
}

// Whether the instruction at dispatch goes to the load-store unit in this cycle with no further
// effect on the front end.
bool PeModel::gives() const {
    return m_usual && m_dispatch_held && m_leaves && m_dispatched.word->unit == kLoadStore &&
           (!m_held || m_now->distance);
}

// Hands it to that unit, while the front end's cycle is postponed.
void PeModel::give(MemoryPort& port) {
    m_given = true;
    const Way next = way();
    m_slack = std::max(distance(next), beats_ahead(next.pc));
    pass(1);
    m_load_store.proceed(port);
    follow_transfers();
    if (!m_dispatched.nothing) {
        const Command given = transfer(m_entry);
        m_load_store.take(given, m_dispatched.values[1]);
        enter(given);
    }
    m_seen = m_load_store.seen();
    m_still = m_load_store.steady();
}

void PeModel::shared_cycle(MemoryPort& port) {
    const uint32_t store = m_load_store.store_asks(port.request_ready);
    m_ports->look(m_load_store.load_asks(), store);
    m_load_store.load_ready = m_ports->load_ready;
    m_load_store.store_ready = m_ports->store_ready;
    m_load_store.look(port, m_held && m_now->unit == kScalar && m_now->writes);
    if (m_usual && !m_load_store.error) {
        step<true>(port);
    } else {
        step<false>(port);
    }
    m_still = false;
    m_slack = m_frozen = 0;
}

void PeModel::cycle(MemoryPort& port) {
    if (m_ports) [[unlikely]] return shared_cycle(port);
    if (!m_slack && m_behind) {
        catch_up();
        m_slack = slack();
    }
    if (m_slack && m_load_store.only_responds()) {
        pass(1);
        port.response_ready = true;
        return response_alone(port.response);
    }
    if (m_load_store.plain()) [[likely]] {
        if (m_slack) return proceed_alone(port);
        if (gives()) return give(port);
    }
    if (m_load_store.holds_result()) [[unlikely]] catch_up();
    m_load_store.look(port, m_held && m_now->unit == kScalar && m_now->writes);
    if (m_load_store.error) [[unlikely]] {
        catch_up();
        return step<false>(port);
    }
    if (m_slack) return transfer_alone(port);
    if (m_usual) [[likely]] return step<true>(port);
    step<false>(port);
}

}  // namespace vip::timed
