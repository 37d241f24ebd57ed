// A requester that replays a recorded trace: each access follows the previous one after the trace's
// gap, or as soon after it as a tag is free and the memory takes it. It writes numbers of its own
// and
// checks every response.
//
// It applies the trace's addresses to a part of the memory of its own, so that no other requester
// changes what it reads. A write changes the copy when offered; a read takes its expected value
// from
// the copy when offered.
#pragma once

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <iterator>
#include <vector>

#include "trace_word.h"
#include "vault_requester.h"

namespace vip {

class Replayer {
  public:
    Replayer(Run& run, uint32_t number, const VipPattern& pattern, uint32_t tags)
        : m_run(run), m_number(number), m_pattern(pattern), m_by_tag(tags) {
        m_random.state = pattern.seed;
        const uint64_t part = run.job.span / run.job.patterns_count / kColumnBytes * kColumnBytes;
        m_begin = run.job.begin + number * part;
        for (uint32_t tag = 0; tag < tags; ++tag) m_free_tags.push_back(tag);
    }

    bool finished() const { return m_finished == m_pattern.accesses; }
    bool request_valid() const { return m_valid; }
    bool response_ready() const { return true; }
    const Access& request() const { return m_current; }
    uint32_t beat() const { return m_beat; }

    // Processes the cycle that ends: what the memory drove, and what this requester had offered.
    void cycle(bool request_ready, const Answer& answer) {
        const uint64_t now = m_run.now;
        if (m_valid && request_ready) {
            if (m_beat == 0)
                m_run.result.longest_offer =
                    std::max(m_run.result.longest_offer, now - m_current.offered);
            if (!m_current.write || ++m_beat == m_current.words) {
                m_valid = false;
                m_by_tag[m_current.tag] = m_current;
                m_by_tag[m_current.tag].open = true;
                m_idle = 0;
            }
        }
        if (answer.valid) check(answer);
        if (!m_valid && m_made < m_pattern.accesses) {
            const TracedAccess next = entry(m_made);
            const bool room = m_made - m_finished < m_pattern.window && !m_free_tags.empty();
            if (m_idle >= next.gap && room) make(next);
            ++m_idle;
        }
    }

    void check_patience() const {
        for (const Access& access : m_by_tag)
            if (access.open && m_run.now > access.offered + m_run.job.patience)
                m_run.violate("LOST", m_number, "0x%" PRIx64 ": no answer since cycle %" PRIu64,
                              access.address, access.offered);
        if (m_valid && m_run.now > m_current.offered + m_run.job.patience)
            m_run.violate("REFUSED", m_number, "0x%" PRIx64 " not taken since cycle %" PRIu64,
                          m_current.address, m_current.offered);
    }

  private:
    Run& m_run;
    uint32_t m_number;
    VipPattern m_pattern;
    Random m_random;
    uint64_t m_begin, m_made = 0, m_finished = 0, m_idle = 0;
    std::vector<Access> m_by_tag;
    std::vector<uint32_t> m_free_tags;
    Access m_current;
    uint32_t m_beat = 0, m_answered = 0;
    bool m_valid = false;

    TracedAccess entry(uint64_t number) const {
        uint64_t word;
        memcpy(&word, m_pattern.trace + number * sizeof word, sizeof word);
        return traced_access(word);
    }

    void make(const TracedAccess& next) {
        m_current = Access{};
        m_current.write = next.write;
        m_current.words = next.words;
        m_current.address = m_begin + next.address;
        m_current.offered = m_run.now + 1;
        m_current.tag = m_free_tags.back();
        m_free_tags.pop_back();
        uint64_t* words = &m_run.copy[(m_current.address - m_run.job.begin) / kWordBytes];
        for (uint32_t i = 0; i < next.words; ++i) {
            if (next.write) words[i] = m_random.next();
            m_current.data[i] = words[i];
            m_current.strobe[i] = 0xff;
        }
        ++m_made;
        m_beat = 0;
        m_valid = true;
        if (!m_run.first) m_run.first = m_current.offered;
    }

    void check(const Answer& answer) {
        if (answer.tag >= m_by_tag.size() || !m_by_tag[answer.tag].open) {
            m_run.violate("TAG_UNKNOWN", m_number, "a response to tag %" PRIu32 ", not in flight",
                          answer.tag);
            return;
        }
        Access& access = m_by_tag[answer.tag];
        const uint32_t beats = access.write ? 1 : access.words;
        const uint32_t beat = m_answered++;
        if (answer.last != (beat + 1 == beats) || answer.error) {
            m_run.violate("RESPONSE", m_number, "beat %" PRIu32 " of %" PRIu32 ", last %d, error %d",
                          beat + 1, beats, answer.last, answer.error);
        } else if (!access.write && answer.data != access.data[beat]) {
            m_run.violate("DATA", m_number,
                          "word %" PRIu32 " of 0x%" PRIx64 " reads 0x%" PRIx64
                          ", expected 0x%" PRIx64,
                          beat, access.address, answer.data, access.data[beat]);
        }
        if (!answer.last) return;
        m_answered = 0;
        finish(access);
    }

    void finish(Access& access) {
        VipTrafficResult& result = m_run.result;
        const uint64_t latency = m_run.now - access.offered + 1;
        result.longest = std::max(result.longest, latency);
        result.latency_sum += latency;
        ++result.latencies[std::min<uint64_t>(latency, std::size(result.latencies) - 1)];
        ++(access.write ? result.writes : result.reads);
        result.bytes += access.words * kWordBytes;
        m_run.last = m_run.now;
        if (m_number < std::size(result.ends)) {
            result.ends[m_number] = m_run.now - m_run.first + 1;
            result.waits[m_number] = std::max(result.waits[m_number], latency);
        }
        access.open = false;
        m_free_tags.push_back(access.tag);
        ++m_finished;
    }
};

}  // namespace vip
