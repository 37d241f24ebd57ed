// Memory with programmable behaviour, one port per requester, in one memory-mapped file.
//
// It guarantees no more than hdl.ports.MemoryPort does, to expose requesters that rely on more: it
// performs an access as late as its response; the data of an error or of a write response are
// random,
// and a failed read has one beat or more. It checks that the requester keeps the rules.

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <string>

#include "image.h"
#include "vip_memory.h"

namespace {

constexpr uint64_t kWordBytes = 8;
constexpr uint64_t kColumnBytes = 32;
constexpr uint32_t kColumnWords = kColumnBytes / kWordBytes;
constexpr uint32_t kAllBytes = 0xff;
constexpr uint32_t kFullBandwidth = 256;

using vip::g_image;

struct Beat {
    uint64_t address = 0;
    uint64_t data = 0;
    uint32_t tag = 0;
    uint32_t words = 0;
    uint32_t strobe = 0;
    bool write = false;
    bool last = false;

    bool operator==(const Beat& other) const {
        return address == other.address && data == other.data && tag == other.tag &&
               words == other.words && strobe == other.strobe && write == other.write &&
               last == other.last;
    }
};

struct Access {
    uint64_t address = 0;
    uint64_t ready_at = 0;
    uint32_t tag = 0;
    uint32_t words = 0;
    bool write = false;
    uint64_t data[kColumnWords] = {};
    uint32_t strobe[kColumnWords] = {};

    uint64_t column() const { return address / kColumnBytes; }
};

class Port {
  public:
    void configure(const VipMemoryBehaviour& behaviour) {
        *this = Port{};
        m_behaviour = behaviour;
        m_random = behaviour.seed * 0x9e3779b97f4a7c15ULL + 1;
    }

    // Forgets accesses that it has not performed. What is random goes on as without a reset, with
    // which the timing models have nothing to do.
    void reset() {
        m_waiting = m_offering = false;
        m_incoming_beats = m_outgoing_beats = 0;
        m_tags.clear();
        m_accesses.clear();
    }

    const std::string& violation() const { return m_violation; }
    size_t in_flight() const { return m_tags.size(); }
    bool request_ready() const { return m_ready; }
    bool response_valid() const { return m_offering; }
    const Beat& response() const { return m_offer; }
    bool response_error() const { return m_offer_error; }

    // Processes the cycle that ends: what the requester drove, and what this port had offered.
    void cycle(bool valid, const Beat& beat, bool response_ready) {
        ++m_now;
        check_stable(valid, beat);
        // A tag is free from the cycle after the end of its response on.
        if (valid && m_ready) accept(beat);
        m_waiting = valid && !m_ready;
        m_waiting_beat = beat;
        if (m_offering && response_ready) taken();
        m_write_credit = earn(m_write_credit);
        m_read_credit = earn(m_read_credit);
        if (!m_offering) offer();
        m_ready = m_violation.empty() && m_write_credit >= kFullBandwidth &&
                  !chance(m_behaviour.stall);
        if (!m_violation.empty()) m_offering = false;
    }

  private:
    VipMemoryBehaviour m_behaviour = {};
    uint64_t m_random = 1;
    uint64_t m_now = 0;
    std::string m_violation;

    bool m_ready = false;
    bool m_waiting = false;  // a beat was offered to us and not taken
    Beat m_waiting_beat;
    Access m_incoming;
    uint32_t m_incoming_beats = 0;
    uint32_t m_write_credit = kFullBandwidth;
    std::set<uint32_t> m_tags;

    std::deque<Access> m_accesses;  // accepted, not performed, in order
    Access m_outgoing;
    uint32_t m_outgoing_beats = 0;  // response beats still to offer
    bool m_outgoing_error = false;
    uint32_t m_read_credit = kFullBandwidth;
    bool m_offering = false;
    bool m_offer_error = false;
    Beat m_offer;

    uint64_t random() {
        m_random += 0x9e3779b97f4a7c15ULL;
        uint64_t mixed = m_random;
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
        return mixed ^ (mixed >> 31);
    }

    bool chance(uint32_t of_65536) { return of_65536 && (random() & 0xffff) < of_65536; }

    uint32_t earn(uint32_t credit) const {
        const uint32_t earned = credit + m_behaviour.bandwidth;
        return earned < kFullBandwidth ? earned : kFullBandwidth;
    }

    void violate(const char* name, const char* format, ...)
        __attribute__((format(printf, 3, 4))) {
        if (!m_violation.empty()) return;
        char text[256];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        char where[64];
        snprintf(where, sizeof where, " (cycle %" PRIu64 ")", m_now);
        m_violation = std::string(name) + ": " + text + where;
    }

    void check_stable(bool valid, const Beat& beat) {
        if (!m_waiting) return;
        if (!valid) {
            violate("REQUEST_WITHDRAWN", "valid fell before ready, address 0x%" PRIx64,
                    m_waiting_beat.address);
        } else if (!(beat == m_waiting_beat)) {
            violate("REQUEST_CHANGED", "payload changed before ready, address 0x%" PRIx64 " to 0x%" PRIx64,
                    m_waiting_beat.address, beat.address);
        }
    }

    void check_first(const Beat& beat) {
        const uint64_t word = beat.address % kColumnBytes / kWordBytes;
        if (m_tags.count(beat.tag)) {
            violate("TAG_REUSED", "tag %u is still in flight", beat.tag);
        } else if (word + beat.words >= kColumnWords) {
            violate("COLUMN_CROSSED", "%u words from 0x%" PRIx64, beat.words + 1, beat.address);
        } else if (!beat.write && !beat.last) {
            violate("READ_NOT_LAST", "a read is one beat, address 0x%" PRIx64, beat.address);
        } else if (!beat.write && beat.strobe != kAllBytes) {
            violate("READ_STROBE", "strobe 0x%x on a read", beat.strobe);
        }
    }

    void check_next(const Beat& beat) {
        const uint64_t expected = m_incoming.address + m_incoming_beats * kWordBytes;
        if (beat.tag != m_incoming.tag || !beat.write) {
            violate("WRITE_INTERRUPTED", "tag %u within the write with tag %u", beat.tag,
                    m_incoming.tag);
        } else if (beat.address != expected) {
            violate("WRITE_ADDRESS", "0x%" PRIx64 " follows, expected 0x%" PRIx64, beat.address,
                    expected);
        } else if (beat.words + m_incoming_beats + 1 != m_incoming.words) {
            violate("WRITE_WORDS", "%u more words in beat %u of a write of %u", beat.words,
                    m_incoming_beats, m_incoming.words);
        }
    }

    void accept(const Beat& beat) {
        if (beat.address % kWordBytes) {
            violate("ADDRESS_MISALIGNED", "0x%" PRIx64, beat.address);
        } else if (beat.address + kWordBytes * (beat.words + 1) > g_image.size) {
            violate("ADDRESS_OUTSIDE", "0x%" PRIx64 " of 0x%" PRIx64 " bytes", beat.address,
                    g_image.size);
        } else if (m_incoming_beats) {
            check_next(beat);
        } else {
            check_first(beat);
        }
        if (beat.write && beat.last != (beat.words == 0)) {
            violate("WRITE_LAST", "last is %d with %u more words", beat.last, beat.words);
        }
        if (!m_violation.empty()) return;
        if (!m_incoming_beats) {
            m_tags.insert(beat.tag);
            m_incoming = Access{};
            m_incoming.address = beat.address;
            m_incoming.tag = beat.tag;
            m_incoming.words = beat.words + 1;
            m_incoming.write = beat.write;
        }
        m_incoming.data[m_incoming_beats] = beat.data;
        m_incoming.strobe[m_incoming_beats] = beat.strobe;
        if (beat.write) m_write_credit -= kFullBandwidth;
        if (!beat.last) {
            ++m_incoming_beats;
            return;
        }
        m_incoming_beats = 0;
        m_incoming.ready_at = m_now + m_behaviour.latency;
        if (m_behaviour.extra_latency) {
            m_incoming.ready_at += random() % (m_behaviour.extra_latency + 1);
        }
        m_accesses.push_back(m_incoming);
    }

    // Index of the access to answer in the next cycle, or -1.
    int choose() {
        if (!m_behaviour.out_of_order) {
            return !m_accesses.empty() && m_accesses.front().ready_at <= m_now + 1 ? 0 : -1;
        }
        std::set<uint64_t> columns;
        int chosen = -1;
        uint64_t eligible = 0;
        for (size_t i = 0; i < m_accesses.size(); ++i) {
            const bool first = columns.insert(m_accesses[i].column()).second;
            if (!first || m_accesses[i].ready_at > m_now + 1) continue;
            if (random() % ++eligible == 0) chosen = static_cast<int>(i);
        }
        return chosen;
    }

    void perform(Access& access) {
        const uint64_t end = access.address + access.words * kWordBytes;
        m_outgoing_error =
            access.address < m_behaviour.errors[1] && end > m_behaviour.errors[0];
        for (uint32_t i = 0; i < access.words; ++i) {
            uint8_t* word = g_image.data + access.address + i * kWordBytes;
            uint8_t bytes[kWordBytes];
            memcpy(bytes, &access.data[i], kWordBytes);
            const uint64_t noise = random();
            for (uint32_t byte = 0; byte < kWordBytes; ++byte) {
                if (m_outgoing_error) {
                    bytes[byte] = static_cast<uint8_t>(noise >> 8 * byte);
                } else if (!access.write) {
                    bytes[byte] = word[byte];
                } else if (access.strobe[i] >> byte & 1) {
                    word[byte] = bytes[byte];
                }
            }
            memcpy(&access.data[i], bytes, kWordBytes);
        }
        if (access.write) access.data[0] = random();
        // A read's response may end with an error after any beat.
        if (m_outgoing_error && !access.write) access.words = 1 + random() % access.words;
    }

    void offer() {
        if (!m_outgoing_beats) {
            const int chosen = choose();
            if (chosen < 0 || (!m_accesses[chosen].write && m_read_credit < kFullBandwidth)) return;
            if (chance(m_behaviour.gap)) return;
            m_outgoing = m_accesses[chosen];
            m_accesses.erase(m_accesses.begin() + chosen);
            perform(m_outgoing);
            m_outgoing_beats = m_outgoing.write ? 1 : m_outgoing.words;
        } else if (m_read_credit < kFullBandwidth || chance(m_behaviour.gap)) {
            return;
        }
        if (!m_outgoing.write) m_read_credit -= kFullBandwidth;
        const uint32_t beats = m_outgoing.write ? 1 : m_outgoing.words;
        m_offer.data = m_outgoing.data[beats - m_outgoing_beats];
        m_offer.tag = m_outgoing.tag;
        m_offer.last = --m_outgoing_beats == 0;
        m_offer_error = m_offer.last ? m_outgoing_error : random() & 1;
        m_offering = true;
    }

    void taken() {
        m_offering = false;
        if (m_offer.last) m_tags.erase(m_offer.tag);
    }
};

std::map<int32_t, Port> g_ports;

}  // namespace

int32_t vip_memory_start(int32_t port, const VipMemoryBehaviour* behaviour) {
    g_ports[port].configure(*behaviour);
    return 0;
}

void vip_memory_result(int32_t port, VipMemoryResult* result) {
    result->violation = g_ports[port].violation().c_str();
}

void vip_memory_cycle(int32_t index, const VipMemoryIn* in, VipMemoryOut* out) {
    Port& port = g_ports[index];
    if (in->reset) {
        port.reset();
        return;
    }
    Beat beat;
    beat.address = in->request_address;
    beat.tag = in->request_tag;
    beat.words = in->request_words;
    beat.strobe = in->request_strobe;
    beat.write = in->request_write;
    beat.last = in->request_last;
    // A read carries no data, so its data lines need not be stable.
    beat.data = beat.write ? in->request_data : 0;
    port.cycle(in->request_valid, beat, in->response_ready);
    out->request_ready = port.request_ready();
    out->response_valid = port.response_valid();
    out->response_tag = port.response().tag;
    out->response_data = port.response().data;
    out->response_last = port.response().last;
    out->response_error = port.response_error();
    out->in_flight = static_cast<uint32_t>(port.in_flight());
    out->failed = !port.violation().empty();
}
