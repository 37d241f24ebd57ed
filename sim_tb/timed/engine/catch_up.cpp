// Front end and vector unit behind the load-store unit.
//
// What they do is seen by nobody until they hand a transfer on, or the program ends. So cycles of
// theirs wait while that unit goes on, as many as there must be before the next transfer, and are done
// together. Before they could see something of that unit that was not so in these cycles, they have
// caught up. What a fault does is seen when the counters are complete, which is later than that.
#include <algorithm>

#include "pe_model.h"

namespace vip::timed {

// Cycles before the front end next looks at the load-store unit, at least.
uint64_t PeModel::distance() const {
    if (m_dispatch_held && m_dispatched.word->unit != kVector) return 0;
    uint64_t found;
    if (m_held) {
        found = m_now->distance;
    } else if (m_redirect) {
        found = 3 + word_at(m_target)->distance;
    } else if (m_operands_held) {
        found = 1 + m_operands_word->distance;
    } else if (m_fetch_valid) {
        found = 2 + word_at(m_fetch_pc)->distance;
    } else {
        found = 3 + word_at(m_following)->distance;
    }
    return std::min(found, m_sizes.flush_cycles);
}

void PeModel::find_slack() {
    m_slack = m_frozen;
    // A load history sees what vector instructions write.
    if (!m_usual || m_load_store.history()) return;
    if (full<true>() && !goes_on()) {
        // What is at issue waits for that at dispatch, too, and can't have a fault meanwhile.
        const bool waits = m_waits.vector_waits;
        m_slack = (waits ? m_beats : m_frozen) + 1;
        const Step& next = *m_operands_word;
        if (waits && m_now->unit == kVector && next.plain && next.unit != kScalar &&
            !m_operands_outside) {
            // So does what follows a vector instruction there, for the one that waits now.
            m_slack += m_waiting_beats + std::min<uint64_t>(next.distance, m_sizes.flush_cycles);
            return;
        }
    }
    m_slack += distance();
}

// Cycles of the front end in which nothing moves.
void PeModel::pass_frozen(uint64_t count) {
    m_frozen -= count;
    m_cycles += count;
    if (m_waits.vector_running) {
        m_beats -= count;
    } else {
        m_unwritten -= static_cast<uint32_t>(std::min<uint64_t>(m_unwritten, count));
    }
    if (!m_sizes.counters) return;
    m_counters[m_late_event] += count;
    m_counters[kCycles] += count;
    if (m_waits.vector_running) m_counters[kVectorBusy] += count;
}

void PeModel::catch_up() {
    while (m_behind) {
        uint64_t count;
        if (m_frozen) {
            count = std::min(m_frozen, m_behind);
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
    }
}

// After a cycle in which the load-store unit alone went on: what the front end sees of it in the
// next one. `changes`: of entries of the array range check.
void PeModel::show(bool changes) {
    const uint32_t seen = m_load_store.seen(), before = m_seen;
    if (seen != before) catch_up();
    if (changes || seen != before || m_load_store.loaded) {
        if (!stays(changes, before)) m_frozen = 0;
        m_seen = seen;
        find_slack();
    }
    m_still = still();
}

// A cycle in which the load-store unit alone goes on, at most to take a response.
void PeModel::response_alone(const ResponseBeat* response) {
    if (m_still && (!response || m_load_store.absorb(*response))) return;
    const bool settled = m_arc.settled();
    // The array range check's entries may change.
    if (!settled) catch_up();
    m_load_store.respond(response);
    m_entry = m_arc.free_entry();
    bool changes = false;
    if (m_load_store.arrived || !settled) {
        const uint32_t arrived = m_load_store.arrived ? m_load_store.arrived_entry : kNobody;
        changes = m_arc.edge(arrived, kNobody, kNobody, kNobody, Range{}, 0, false);
        if (changes) m_compared = false;
    }
    show(changes);
}

void PeModel::transfer_alone(const MemoryPort& port) {
    pass(1);
    if (m_load_store.loaded || !m_arc.settled()) catch_up();
    receive();
    show(transfer_edge(port, false));
}

void PeModel::cycle(MemoryPort& port) {
    if (!m_slack && m_behind) {
        catch_up();
        find_slack();
    }
    if (m_slack && m_load_store.only_responds()) {
        pass(1);
        port.response_ready = true;
        return response_alone(port.response);
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
