#include "controller.h"

namespace vip::timed {

void Bank::look(bool read_allowed, bool write_allowed, bool activate_allowed) {
    const Request& request = head();
    waiting = m_queue.valid();
    m_usable = m_sizes.page_policy == kClosed ? m_opened : m_open;
    const bool row_hit = waiting && m_open && m_usable && request.row == m_row;
    urgent = m_debt >= kForcedDebt || (m_debt && !row_hit);
    hit = row_hit && !urgent;
    bool closes = urgent || (waiting && !row_hit);
    if (m_sizes.page_policy != kOpen) closes = closes || !waiting;
    const bool opens = urgent || (waiting && activate_allowed);
    const bool allowed = request.write ? write_allowed : read_allowed && m_read_timer.done();
    column = hit && m_column_timer.done() && allowed;
    row = m_row_timer.done() && (m_open ? closes : opens);
    kind = hit ? (request.write ? kWrite : kRead) : m_open ? kPre : urgent ? kRefresh : kAct;
}

void Bank::edge(bool grant, bool refresh_due, const Request* input) {
    const bool refreshed = grant && kind == kRefresh, timer_done = m_row_timer.done();
    const uint32_t row_of_head = head().row;
    m_queue.edge(input, grant && column);
    m_debt += refresh_due;
    m_debt -= refreshed;
    if (refreshed) {
        m_refreshing = true;
    } else if (timer_done) {
        m_refreshing = false;
    }
    if (grant) switch (kind) {
            case kAct:
                m_open = m_opened = true;
                m_row = row_of_head;
                m_row_timer.wait(m_sizes.tras);
                m_column_timer.wait(m_sizes.trcd);
                break;
            case kPre:
                m_open = false;
                m_displaced = waiting && m_usable && !urgent;
                m_row_timer.wait(m_sizes.trp);
                break;
            case kRefresh:
                m_row_timer.wait(m_sizes.trfc);
                break;
            case kRead:
                m_opened = false;
                m_row_timer.wait(m_sizes.trtp);
                m_column_timer.wait(m_sizes.tccd);
                break;
            case kWrite:
                m_opened = false;
                m_row_timer.wait(m_sizes.write_to_precharge);
                m_column_timer.wait(m_sizes.tccd);
                m_read_timer.wait(m_sizes.write_to_read);
                break;
        }
    m_row_timer.edge();
    m_column_timer.edge();
    m_read_timer.edge();
}

bool Bank::rests() {
    if (m_queue.holds() || m_debt || m_refreshing || !m_row_timer.done() ||
        !m_column_timer.done() || !m_read_timer.done() ||
        (m_open && m_sizes.page_policy != kOpen))
        return false;
    column = row = urgent = waiting = hit = false;
    return true;
}

}  // namespace vip::timed
