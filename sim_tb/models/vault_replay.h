// A requester that replays a recorded trace: each access follows the previous one after the trace's
// gap, or as soon after it as a tag is free and the memory takes it. It writes numbers of its own.
//
// It applies the trace's addresses to a part of the memory of its own, so that no other requester
// changes what it reads.
#pragma once

#include <cstring>

#include "trace_word.h"
#include "vault_requester.h"

namespace vip {

class Replayer : public Requester {
  public:
    Replayer(Run& run, uint32_t number, const VipPattern& pattern, uint32_t tags)
        : Requester(run, number, pattern, tags) {
        m_random.state = pattern.seed;
        const uint64_t part = run.job.span / run.job.patterns_count / kColumnBytes * kColumnBytes;
        m_begin = run.job.begin + number * part;
        m_ready = true;
    }

  protected:
    void next() override {
        if (!m_working && m_made < m_pattern.accesses) {
            const TracedAccess traced = entry(m_made);
            if (m_idle >= traced.gap && room()) {
                make(traced);
                m_idle = 0;
            } else {
                ++m_idle;
            }
        }
        m_valid = m_working;
    }

  private:
    uint64_t m_begin, m_idle = 0;

    TracedAccess entry(uint64_t number) const {
        uint64_t word;
        memcpy(&word, m_pattern.trace + number * sizeof word, sizeof word);
        return traced_access(word);
    }

    void make(const TracedAccess& traced) {
        Access access;
        access.write = traced.write;
        access.words = traced.words;
        access.address = m_begin + traced.address;
        uint64_t* words = words_of(access.address);
        for (uint32_t i = 0; i < traced.words; ++i) {
            if (traced.write) words[i] = m_random.next();
            access.data[i] = words[i];
            access.strobe[i] = 0xff;
        }
        begin(access);
    }
};

}  // namespace vip
