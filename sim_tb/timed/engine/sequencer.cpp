// The sequencer of an engine (pe/sequencer.py), and what the host reads of it.
#include <algorithm>

#include "pe_model.h"

namespace vip::timed {

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
