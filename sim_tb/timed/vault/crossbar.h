// Timing model of the crossbar of a vault (noc/crossbar.py).
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "controller.h"
#include "fifo.h"

namespace vip::timed {

class Crossbar {
  public:
    explicit Crossbar(uint64_t requesters) : m_responses(requesters) {}

    // The requester, of those that offer a beat, whose beat may pass in this cycle; or -1.
    int selected(uint64_t requests) const {
        if (!m_requests.ready()) return -1;
        if (m_locked) return m_owner;
        const uint64_t high = requests & m_above;
        return requests ? std::countr_zero(high ? high : requests) : -1;
    }

    struct Beat {
        RequestBeat beat;
        uint32_t source;
    };

    // Towards the memory: its beat, or null. Towards a requester: its response, or null.
    const Beat* request() const { return m_requests.valid() ? &m_requests.front() : nullptr; }
    const ResponseBeat* response(uint64_t requester) const {
        return m_held >> requester & 1 ? &m_responses[requester].front() : nullptr;
    }
    bool takes(const ResponseBeat& response) const { return m_responses[response.source].ready(); }
    // Whether a requester's next response, after `took`, can only be the one that arrives now.
    bool empties(uint64_t requester, uint64_t took) const {
        return !(m_held >> requester & 1) ||
               (took >> requester & 1 && m_responses[requester].level() == 1);
    }

    // Advances to the next cycle: the beat that passes, or null; whether the memory accepted one; its
    // response, or null; the requesters that accepted theirs.
    void edge(const Beat* beat, bool taken, const ResponseBeat* response, uint64_t took) {
        if (beat) grant(*beat);
        if (beat || taken) m_requests.edge(beat, taken);
        respond(response, took);
    }
    // Parts of `edge`: the effect of a beat on the arbiter, and the responses.
    void grant(const Beat& beat) {
        if (!m_locked) m_above = ~((uint64_t{2} << beat.source) - 1);
        m_locked = !beat.beat.last;
        m_owner = static_cast<int>(beat.source);
    }
    void respond(const ResponseBeat* response, uint64_t took) {
        uint64_t changed = took & m_held;
        if (response) changed |= uint64_t{1} << response->source;
        for (; changed; changed &= changed - 1) {
            const uint64_t number = std::countr_zero(changed), bit = uint64_t{1} << number;
            auto& buffer = m_responses[number];
            buffer.edge(response && response->source == number ? response : nullptr, took & bit);
            m_held = buffer.valid() ? m_held | bit : m_held & ~bit;
        }
    }
    // Whether nothing is in flight.
    bool idle() const { return !m_locked && !m_held && !m_requests.valid(); }
    // Requesters with a response.
    uint64_t answered() const { return m_held; }

  private:
    StreamBuffer<Beat, 2> m_requests;
    std::vector<StreamBuffer<ResponseBeat, 4>> m_responses;
    bool m_locked = false;
    int m_owner = 0;
    uint64_t m_above = 0, m_held = 0;
};

}  // namespace vip::timed
