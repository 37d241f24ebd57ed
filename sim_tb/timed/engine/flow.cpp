// Cycles in which the stages of the front end are full, and nothing fails.
//
// Most are such cycles, and little can happen in them: it is done at once. `step` and `step_alone`
// do all others.
#include <algorithm>

#include "pe_model.h"

namespace vip::timed {

static_assert(kIssuedScalar == kScalar && kIssuedVector == kVector &&
              kIssuedLoadStore == kLoadStore);

// Whether stages are full, and what they have has no fault.
template <bool kAlone>
bool PeModel::full() const {
    return (m_held & m_operands_held & m_fetch_valid & !m_redirect & !m_outside_now & m_usual) &&
           m_now->plain &&
           (!m_dispatch_held || (m_dispatched.cause == kNone &&
                                 !(kAlone && m_dispatched.word->unit == kLoadStore)));
}

// The vector instruction at dispatch holds, or leaves in the next cycle; that at issue waits for
// it. Returns the number of cycles, none if it may wait for more than the vector unit.
uint64_t PeModel::hold(uint64_t most) {
    compare();
    const uint64_t waits = m_waits.vector_waits ? m_beats : 0;
    const uint64_t count = std::min(most, waits + !m_conflict);
    if (!count) return 0;
    if (m_sizes.counters) {
        const auto cause = [](bool met) { return met ? kStallArcConflict : kStallVector; };
        // Counted a cycle later, and by what dispatch saw a cycle before.
        const uint32_t first = cause(m_waits.late_conflict), others = cause(m_conflict);
        if (m_late_event < kCounters) ++m_counters[m_late_event];
        if (count > 1) ++m_counters[first], m_counters[others] += count - 2;
        m_late_event = count > 1 ? others : first;
        m_counters[kCycles] += count;
        m_counters[kVectorBusy] += m_waits.vector_running ? count : 0;
    }
    m_cycles += count;
    m_last_pc = m_fault_pc = m_pc;
    m_waits.late_conflict = m_conflict;
    m_waits.late_full = m_waits.quiet = false;
    m_waits.again = m_operands_word->registers & ~(m_valid & ~m_now->loaded);
    m_leaves = count > waits;
    if (waits) {
        // Until the last beat they alone change.
        m_beats -= std::min(count, waits) - 1;
        vector_edge(false);
    }
    if (m_leaves) vector_edge(false);
    return count;
}

// The instruction at issue goes on, and that at dispatch, if there is one, as it can.
template <bool kAlone>
void PeModel::move(const MemoryPort* port) {
    const Step &now = *m_now, &next = *m_operands_word;
    const bool goes = m_leaves, holds = m_dispatch_held & !goes;
    const bool transfers = !kAlone && goes && m_dispatched.word->unit == kLoadStore;
    if (m_sizes.counters) {
        if (m_late_event < kCounters) ++m_counters[m_late_event];
        m_late_event = now.unit;
        ++m_counters[kCycles];
        m_counters[kVectorBusy] += m_waits.vector_running;
        if (transfers) count_transfer();
    }
    ++m_cycles;
    m_last_pc = m_fault_pc = m_pc;
    if (holds) compare();
    m_waits.late_conflict = holds & m_conflict;
    m_waits.late_full = !kAlone && holds && m_arc.full();
    m_waits.quiet = !m_dispatch_held & is_idle<kAlone>();
    m_leaves = holds && departs<kAlone>(m_waits.late_conflict, m_waits.late_full);
    vector_edge(goes && !transfers);
    m_valid &= ~now.loaded;
    const bool waits = next.registers & ~m_valid, stays = waits | m_waits.again;
    m_waits.again = waits;
    m_dispatch_held = holds;
    if (now.unit == kScalar) m_redirect = branches(now);
    if (!kAlone) {
        receive();
        transfer_edge(*port, transfers && !m_dispatched.nothing);
    }
    if (now.unit != kScalar) {
        dispatch(now, m_pc, m_dispatched);
        m_dispatch_held = true;
        m_compared = false;
    }
    m_now = m_operands_word, m_pc = m_operands_pc, m_outside_now = m_operands_outside;
    m_held = !stays & !m_redirect;
    if (!stays) take(), advance(m_following);
}

// Stages become full after a branch, if dispatch has nothing and no register is waited for. Returns
// whether they do.
bool PeModel::refill() {
    if (m_dispatch_held || word_at(m_target)->registers & ~m_valid) return false;
    if (m_sizes.counters) {
        if (m_late_event < kCounters) ++m_counters[m_late_event];
        m_counters[kStallFetch] += kRefill - 1;
        m_late_event = kStallFetch;
        m_counters[kCycles] += kRefill;
    }
    m_cycles += kRefill;
    for (uint64_t i = 0; i < kRefill; ++i) {
        if (m_sizes.counters) m_counters[kVectorBusy] += m_waits.vector_running;
        vector_edge(false);
    }
    m_fault_pc = m_operands_pc;
    m_waits.quiet = m_seen & LoadStore::kSeesIdle;
    m_waits.late_conflict = m_waits.late_full = m_waits.again = m_leaves = m_redirect = false;
    advance(m_target);
    take(), advance(m_following);
    m_now = m_operands_word, m_pc = m_operands_pc, m_outside_now = m_operands_outside;
    take(), advance(m_following);
    m_held = m_operands_held = m_fetch_valid = true;
    return true;
}

// Such cycles, up to `most`, which the front end does. Returns how many.
uint64_t PeModel::flow(uint64_t most) {
    uint64_t left = most;
    while (left) {
        if (m_redirect & m_usual) {
            if (left < kRefill || !refill()) break;
            left -= kRefill;
        } else if (!full<true>()) {
            break;
        } else if (goes_on()) {
            move<true>(nullptr);
            --left;
        } else {
            const uint64_t count = hold(left);
            if (!count) break;
            left -= count;
        }
    }
    return most - left;
}

}  // namespace vip::timed
