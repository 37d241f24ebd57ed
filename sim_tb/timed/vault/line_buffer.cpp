#include "line_buffer.h"

#include <bit>

namespace vip::timed {
namespace {

constexpr Lines kOne = 1;

uint32_t lowest(Lines flags) {
    const auto low = static_cast<uint64_t>(flags), high = static_cast<uint64_t>(flags >> 64);
    return low ? std::countr_zero(low) : 64 + std::countr_zero(high);
}

uint32_t first_word(const RequestBeat& beat) { return beat.address / kWordBytes % kColumnWords; }

}  // namespace

LineDirectory::LineDirectory(uint64_t lines, uint64_t merges)
    : m_merges(merges),
      m_all(~Lines{0} >> (128 - lines)),
      m_columns(lines),
      m_waiting(lines) {}

void LineDirectory::turn(const Events& events) {
    const bool again = (events.use || events.merge) && present() && m_line == m_next;
    if (m_found && !events.allocate && !again) return;
    const Lines ahead = m_all & ~((kOne << m_hand) - 1);
    const Lines busy = events.busy ? kOne << events.busy_line : 0;
    const Lines taken = m_found ? kOne << m_next : 0;
    const Lines fit = ahead & ~m_filling & ~busy & ~taken & ~(m_present & m_used);
    const Lines passed = ahead & ~m_filling & ~fit & (fit - 1);
    m_found = fit != 0;
    m_used &= ~passed;
    m_hand = 0;
    if (!fit) return;
    m_next = lowest(fit);
    m_hand = (m_next + 1) % m_columns.size();
}

void LineDirectory::edge(const Events& events) {
    const uint32_t allocated = m_next;
    const bool hits = present();
    turn(events);
    if (events.finish) {
        m_filling &= ~(kOne << events.finish_line);
        if (events.failed) m_present &= ~(kOne << events.finish_line);
    }
    if (hits) {
        if (events.kill) m_present &= ~(kOne << m_line);
        if (events.use || events.merge) m_used |= kOne << m_line;
        m_waiting[m_line] += events.merge;
    }
    if (events.allocate) {
        m_columns[allocated] = m_looked_up;
        m_present |= kOne << allocated;
        m_filling |= kOne << allocated;
        m_waiting[allocated] = events.first_waits;
    }
    if (!events.lookup) return;
    m_looked_up = events.column;
    m_hit = 0;
    m_line = 0;
    for (uint32_t line = 0; line < m_columns.size(); ++line)
        if (m_columns[line] == events.column && m_present >> line & 1) m_hit = kOne << (m_line = line);
}

LineAnswers::LineAnswers(uint64_t lines, uint64_t merges, uint64_t sources, uint64_t tags)
    : m_merges(merges),
      m_tags(tags),
      m_words(lines * kColumnWords),
      m_lists(lines * merges),
      m_notes(sources * tags) {}

void LineAnswers::offer() {
    bool queued = m_left;
    for (const Answer& answer : m_queue) queued |= answer.line == m_note.line;
    m_held = m_note.fill && !m_number && queued;
    const bool passes = !m_note.fill || (m_note.direct && (m_number >= m_note.first || m_beat.last));
    const bool forward = m_valid && !m_held && passes;
    m_from_memory = forward && !m_line_holds && (m_memory_holds || !(m_line_valid && m_line_next));
    m_from_line = m_line_valid && !m_memory_holds && !m_from_memory;
    m_take = m_valid && !m_held && !passes;
}

void LineAnswers::look(bool taken) {
    m_forward_take = m_from_memory && taken;
    m_line_take = m_from_line && taken;
    m_take |= m_forward_take;
}

void LineAnswers::edge(const Answer* hit, const ResponseBeat* arrival, uint32_t finish_waiting) {
    const bool finished = finish(), ready = memory_ready(), line_last = m_line_beat.last;
    const uint32_t finished_line = m_note.line;
    // Words of the head.
    const bool push = m_queue.size() != kQueue && (m_replay_valid || hit);
    const Answer entering = m_replay_valid ? m_replay : hit ? *hit : Answer{};
    bool pop = false;
    if (!m_queue.empty() && (!m_line_valid || m_line_take)) {
        const Answer& head = m_queue.front();
        const uint32_t word = (head.first + m_done) % kColumnWords;
        pop = word == head.last;
        m_line_beat = {m_words[head.line * kColumnWords + word], head.tag, head.source, pop,
                       head.failed};
        m_line_valid = true;
        m_done = pop ? 0 : (m_done + 1) % kColumnWords;
    } else if (m_line_take) {
        m_line_valid = false;
    }
    if (pop) m_queue.erase(m_queue.begin());
    if (push) m_queue.push_back(entering);
    // Reads that waited.
    const bool reads = m_left && !m_replay_valid;
    if (reads) m_replay = m_lists[m_busy_line * m_merges + m_place];
    const bool entered = m_replay_valid && push;
    m_replay_valid = m_replay_valid ? !push : m_left != 0;
    if (finished) {
        m_left = finish_waiting;
        m_busy_line = finished_line;
        m_place = 0;
        m_replay_failed = m_beat.error;
    } else if (entered) {
        --m_left;
        m_place = (m_place + 1) % m_merges;
    }
    m_replay.failed = m_replay_failed;
    // The memory's response.
    if (m_valid && !m_held && m_note.fill)
        m_words[m_note.line * kColumnWords + m_number] = m_beat.data;
    if (m_take) m_number = m_beat.last ? 0 : (m_number + 1) % kColumnWords;
    if (m_from_memory) m_memory_holds = !(m_forward_take && m_beat.last);
    if (m_from_line) m_line_holds = !(m_line_take && line_last);
    if (m_forward_take || m_line_take) m_line_next = m_forward_take;
    if (ready) {
        m_valid = arrival;
        if (arrival) {
            m_beat = *arrival;
            m_note = m_notes[arrival->source * m_tags + arrival->tag];
        }
    }
    offer();
}

LineBuffer::LineBuffer(const LineSizes& sizes)
    : m_sizes(sizes),
      m_directory(sizes.lines, sizes.merges),
      m_answers(sizes.lines, sizes.merges, sizes.sources, sizes.tags) {}

bool LineBuffer::direct() const {
    return first_word(m_beat.beat) + m_beat.beat.words == kColumnWords - 1;
}

LineAnswers::Answer LineBuffer::answer(uint32_t line) const {
    const uint32_t first = first_word(m_beat.beat);
    return {m_beat.beat.tag, m_beat.source, line, first,
            (first + m_beat.beat.words) % kColumnWords, false};
}

const Crossbar::Beat* LineBuffer::look(bool taken) {
    m_answers.look(taken);
    m_leaves = m_fetch = m_misses = false;
    m_events = {};
    if (!m_valid) return nullptr;
    const RequestBeat& beat = m_beat.beat;
    const bool present = m_directory.present();
    const uint32_t line = m_directory.line();
    if (m_within || m_passing) {
        m_leaves = true;
    } else if (beat.write) {
        m_leaves = m_events.kill = true;
    } else if (beat.address >> m_sizes.memory_bits) {
        m_leaves = true;
    } else if (present && !m_directory.filling()) {
        m_events.use = m_answers.room();
    } else if (present && m_answers.finish() && m_answers.finish_line() == line) {
        // In the next cycle the line is complete or removed.
    } else if (present && !m_directory.full()) {
        m_events.merge = true;
    } else {
        m_leaves = m_misses = true;
        m_fetch = !present && m_directory.free();
    }
    if (!m_leaves) return nullptr;
    m_out = m_beat;
    if (m_fetch) {
        m_out.beat.address &= ~uint64_t{kColumnBytes - 1};
        m_out.beat.words = kColumnWords - 1;
    }
    return &m_out;
}

bool LineBuffer::edge(const Crossbar::Beat* beat, bool accepted, const ResponseBeat* arrival,
                      uint64_t* counters) {
    const uint32_t line = m_directory.line(), next = m_directory.next_line();
    const LineAnswers::Answer hit = answer(line);
    LineDirectory::Events& events = m_events;
    counters[kLineHits] += events.use;
    counters[kLineMerged] += events.merge;
    counters[kLineKilled] += events.kill && m_directory.present();
    if (events.merge) m_answers.wait(m_directory.waiting(line), hit);
    if (m_leaves && accepted) {
        if (!m_within) {
            m_answers.note(m_beat.source, m_beat.beat.tag,
                           {m_fetch, direct(), next, first_word(m_beat.beat)});
            counters[kLineFills] += m_fetch;
            counters[kLinePassed] += !m_beat.beat.write && !m_fetch;
        }
        events.allocate = m_fetch;
        events.first_waits = !direct();
        if (m_fetch && !direct()) m_answers.wait(0, answer(next));
        m_passing = false;
    } else if (m_misses) {
        m_passing = !m_fetch;
    }
    const bool leaves = events.use || events.merge || (m_leaves && accepted);
    if (leaves) m_within = !m_beat.beat.last;
    const bool takes = !m_valid || leaves;
    events.finish = m_answers.finish();
    events.finish_line = m_answers.finish_line();
    events.failed = m_answers.failed();
    events.busy = m_answers.busy();
    events.busy_line = m_answers.busy_line();
    events.lookup = beat && takes;
    if (events.lookup)
        events.column = beat->beat.address % (uint64_t{1} << m_sizes.memory_bits) / kColumnBytes;
    m_answers.edge(events.use ? &hit : nullptr, arrival,
                   m_directory.waiting(events.finish_line));
    m_directory.edge(events);
    if (takes) {
        m_valid = beat;
        if (beat) m_beat = *beat;
    }
    return events.lookup;
}

}  // namespace vip::timed
