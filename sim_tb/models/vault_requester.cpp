#include "vault_requester.h"

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <iterator>

namespace vip {

namespace {

constexpr uint32_t kAllBytes = 0xff;
constexpr uint32_t kLongestRest = 2000;
constexpr size_t kLatencies = std::size(VipTrafficResult{}.latencies);

}  // namespace

void Run::violate(const char* rule, uint32_t requester, const char* format, ...) {
    if (!violation.empty()) return;
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char where[64];
    snprintf(where, sizeof where, " (requester %" PRIu32 ", cycle %" PRIu64 ")", requester, now);
    violation = std::string(rule) + ": " + text + where;
}

Requester::Requester(Run& run, uint32_t number, const VipPattern& pattern, uint32_t tags)
    : m_run(run), m_number(number), m_pattern(pattern), m_by_tag(tags) {
    for (uint32_t tag = 0; tag < tags; ++tag) m_free_tags.push_back(tag);
}

bool Requester::room() const {
    return m_made < m_pattern.accesses && m_made - m_finished < m_pattern.window &&
           !m_free_tags.empty();
}

uint64_t* Requester::words_of(uint64_t address) {
    return &m_run.copy[(address - m_run.job.begin) / kWordBytes];
}

void Requester::begin(Access access) {
    access.tag = m_free_tags.back();
    m_free_tags.pop_back();
    access.offered = m_run.now + 1;
    if (!m_run.first) m_run.first = access.offered;
    ++m_made;
    m_current = access;
    m_beat = 0;
    m_working = true;
}

Walker::Walker(Run& run, uint32_t number, const VipPattern& pattern, uint32_t tags)
    : Requester(run, number, pattern, tags) {
    m_random.state = pattern.seed * 0x9e3779b97f4a7c15ULL + number;
}

uint64_t Walker::next_column() {
    const uint64_t columns = m_run.job.span / kColumnBytes / m_run.job.patterns_count;
    const VipPattern& pattern = m_pattern;
    switch (pattern.walk) {
        case kSequential: return m_position++ % columns;
        case kStrided: {
            const uint64_t column = m_position % columns;
            m_position += pattern.stride;
            // The next pass visits other columns.
            if (m_position / columns != (m_position - pattern.stride) / columns) {
                ++m_position;
            }
            return column;
        }
        case kHot:
            if (m_random.below(16)) return m_random.below(pattern.hot) % columns;
            return m_random.below(columns);
        default: return m_random.below(columns);
    }
}

void Walker::make_access() {
    const VipPattern& pattern = m_pattern;
    Random& random = m_random;
    Access access;
    const uint64_t column = next_column() * m_run.job.patterns_count + m_number;
    access.words = pattern.partial ? 1 + random.below(kColumnWords) : kColumnWords;
    access.address = m_run.job.begin + column * kColumnBytes +
                     kWordBytes * random.below(kColumnWords - access.words + 1);
    access.write = random.chance(pattern.writes);
    access.outside = random.chance(pattern.outside);
    if (access.outside) {
        const uint64_t beyond = (m_run.job.limit - m_run.job.size) / kColumnBytes;
        access.address = m_run.job.size + random.below(beyond) * kColumnBytes +
                         access.address % kColumnBytes;
    }
    // A random free tag, so that nothing can rely on the number.
    const size_t pick = random.below(m_free_tags.size());
    std::swap(m_free_tags[pick], m_free_tags.back());
    for (uint32_t i = 0; i < access.words; ++i) {
        if (access.write) {
            access.data[i] = random.next();
            access.strobe[i] = pattern.partial && random.below(2) ? random.next() & kAllBytes
                                                                  : kAllBytes;
        } else {
            access.strobe[i] = kAllBytes;
        }
        if (access.outside) continue;
        uint64_t& word = words_of(access.address)[i];
        if (!access.write) {
            access.data[i] = word;
            continue;
        }
        uint64_t mask = 0;
        for (uint64_t byte = 0; byte < kWordBytes; ++byte) {
            if (access.strobe[i] >> byte & 1) mask |= 0xffULL << 8 * byte;
        }
        word = (word & ~mask) | (access.data[i] & mask);
    }
    begin(access);
    if (pattern.burst && m_made % pattern.burst == 0) {
        m_rest = random.below(kLongestRest);
    }
}

void Requester::finish(Access& access) {
    VipTrafficResult& result = m_run.result;
    const uint64_t latency = m_run.now - access.offered + 1;
    result.longest = std::max(result.longest, latency);
    result.latency_sum += latency;
    ++result.latencies[std::min<uint64_t>(latency, kLatencies - 1)];
    ++(access.write ? result.writes : result.reads);
    if (!access.outside) result.bytes += access.words * kWordBytes;
    m_run.last = m_run.now;
    if (m_number < std::size(result.ends)) {
        result.ends[m_number] = m_run.now - m_run.first + 1;
        result.waits[m_number] = std::max(result.waits[m_number], latency);
    }
    access.open = false;
    m_free_tags.push_back(access.tag);
    ++m_finished;
    m_answer = nullptr;
}

void Requester::check_response(const Answer& answer) {
    const uint32_t tag = answer.tag;
    const bool last = answer.last;
    if (tag >= m_by_tag.size() || !m_by_tag[tag].open) {
        m_run.violate("TAG_UNKNOWN", m_number, "a response to tag %" PRIu32 ", not in flight", tag);
        return;
    }
    Access& access = m_by_tag[tag];
    if (m_answer && m_answer != &access) {
        m_run.violate("RESPONSE_MIXED", m_number,
                      "tag %" PRIu32 " within the response to tag %" PRIu32, tag, m_answer->tag);
        return;
    }
    if (!m_answer) {
        m_answer = &access;
        m_answer_beats = 0;
    }
    const uint32_t beat = m_answer_beats++;
    const uint32_t beats = access.write ? 1 : access.words;
    const bool failed = last && answer.error;
    if (beat >= beats || (last && !failed && beat + 1 != beats)) {
        m_run.violate("RESPONSE_LENGTH", m_number,
                      "beat %" PRIu32 " of %" PRIu32 " for 0x%" PRIx64 ", last %d", beat + 1, beats,
                      access.address, last);
        return;
    }
    if (!last) {
        if (beat + 1 == beats) {
            m_run.violate("RESPONSE_LENGTH", m_number,
                          "no last beat after %" PRIu32 " for 0x%" PRIx64, beats, access.address);
        }
        if (access.outside) return;
    }
    if (last && failed != access.outside) {
        m_run.violate("ERROR", m_number, "error is %d for 0x%" PRIx64, answer.error,
                      access.address);
    } else if (!access.write && !access.outside && answer.data != access.data[beat]) {
        m_run.violate("DATA", m_number,
                      "word %" PRIu32 " of 0x%" PRIx64 " reads 0x%" PRIx64 ", expected 0x%" PRIx64,
                      beat, access.address, answer.data, access.data[beat]);
    }
    if (last) finish(access);
}

void Requester::check_held(const Answer& answer) {
    if (!m_held.valid) return;
    if (!answer.valid) {
        m_run.violate("RESPONSE_WITHDRAWN", m_number, "valid fell before ready, tag %" PRIu32,
                      m_held.tag);
    } else if (answer.tag != m_held.tag || answer.data != m_held.data ||
               answer.last != m_held.last || answer.error != m_held.error) {
        m_run.violate("RESPONSE_CHANGED", m_number, "payload changed before ready, tag %" PRIu32,
                      m_held.tag);
    }
}

void Requester::cycle(bool request_ready, const Answer& answer) {
    const uint64_t now = m_run.now;
    if (m_valid && request_ready) {
        Access& current = m_current;
        if (m_beat == 0) {
            VipTrafficResult& result = m_run.result;
            result.longest_offer = std::max(result.longest_offer, now - current.offered);
        }
        // The memory may respond from the cycle after the last beat on.
        if (!current.write || m_beat + 1 == current.words) {
            m_working = false;
            current.open = true;
            m_by_tag[current.tag] = current;
        }
        ++m_beat;
        m_valid = false;
    }
    check_held(answer);
    m_held = answer;
    m_held.valid = answer.valid && !m_ready;
    if (answer.valid && m_ready) check_response(answer);
    next();
}

void Walker::next() {
    if (m_rest) --m_rest;
    if (!m_valid && m_random.chance(m_pattern.offer)) {
        if (!m_working && !m_rest && room()) make_access();
        m_valid = m_working;
    }
    m_ready = m_random.chance(m_pattern.take);
}

void Requester::check_patience() const {
    const auto waits = [this](const Access& access) {
        return m_run.now > access.offered + m_run.job.patience;
    };
    for (const Access& access : m_by_tag) {
        if (access.open && waits(access)) {
            m_run.violate("LOST", m_number,
                          "0x%" PRIx64 ", tag %" PRIu32 ": no answer since cycle %" PRIu64,
                          access.address, access.tag, access.offered);
        }
    }
    if (m_working && m_valid && waits(m_current)) {
        m_run.violate("REFUSED", m_number, "0x%" PRIx64 " not taken since cycle %" PRIu64,
                      m_current.address, m_current.offered);
    }
}

}  // namespace vip
