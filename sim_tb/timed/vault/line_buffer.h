// Timing model of a vault's line buffer (memory/line_buffer/), between crossbar and back end.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "crossbar.h"
#include "vault.inc"

namespace vip::timed {

// One bit per line.
__extension__ typedef unsigned __int128 Lines;

// Columns, states, and the line to be replaced next (directory.py).
class LineDirectory {
  public:
    LineDirectory(uint64_t lines, uint64_t merges);

    // Result of the last lookup.
    bool present() const { return m_hit & m_present; }
    uint32_t line() const { return m_line; }
    bool filling() const { return present() && m_filling >> m_line & 1; }
    uint32_t waiting(uint32_t line) const { return m_waiting[line]; }
    bool full() const { return m_waiting[m_line] == m_merges; }
    bool free() const { return m_found; }
    uint32_t next_line() const { return m_next; }

    // What happens in a cycle.
    struct Events {
        bool use, merge, kill, allocate, first_waits, finish, failed, busy, lookup;
        uint32_t finish_line, busy_line;
        uint64_t column;  // of the lookup
    };
    void edge(const Events& events);

  private:
    const uint64_t m_merges;
    const Lines m_all;
    std::vector<uint64_t> m_columns;
    std::vector<uint32_t> m_waiting;
    uint64_t m_looked_up = 0;
    Lines m_present = 0, m_filling = 0, m_used = 0, m_hit = 0;
    uint32_t m_line = 0, m_next = 0, m_hand = 0;
    bool m_found = false;

    void turn(const Events& events);
};

// Merges the memory's responses with those of lines (answers.py).
class LineAnswers {
  public:
    // A read that a line answers.
    struct Answer {
        uint32_t tag, source, line, first, last;
        bool failed;
    };
    // A request in flight.
    struct Note {
        bool fill, direct;
        uint32_t line, first;
    };

    LineAnswers(uint64_t lines, uint64_t merges, uint64_t sources, uint64_t tags);

    // The response offered in this cycle, or null; depends only on registers.
    const ResponseBeat* response() const {
        return m_from_memory ? &m_beat : m_from_line ? &m_line_beat : nullptr;
    }
    bool room() const { return !m_replay_valid && m_queue.size() != kQueue; }
    bool busy() const { return m_left; }
    uint32_t busy_line() const { return m_busy_line; }
    // Works out what happens in this cycle, given whether the response is taken.
    void look(bool taken);
    bool memory_ready() const { return !m_valid || m_take; }
    bool finish() const { return m_take && m_note.fill && m_beat.last; }
    uint32_t finish_line() const { return m_note.line; }
    bool failed() const { return m_beat.error; }

    // Called before `edge`: a request leaves; a read waits for its line.
    void note(uint32_t source, uint32_t tag, const Note& note) {
        m_notes[source * m_tags + tag] = note;
    }
    void wait(uint32_t place, const Answer& answer) {
        m_lists[answer.line * m_merges + place] = answer;
    }
    // Advances to the next cycle: a read of a line, or null; the memory's response, or null; number of
    // reads that wait for the line just completed.
    void edge(const Answer* hit, const ResponseBeat* arrival, uint32_t finish_waiting);

  private:
    static constexpr size_t kQueue = 4;
    const uint64_t m_merges, m_tags;
    std::vector<uint64_t> m_words;
    std::vector<Answer> m_lists;
    std::vector<Note> m_notes;

    // Reads of lines, and the word offered.
    std::vector<Answer> m_queue;
    uint32_t m_done = 0;
    bool m_line_valid = false;
    ResponseBeat m_line_beat = {};
    // Reads that waited and now enter the queue.
    bool m_replay_valid = false, m_replay_failed = false;
    Answer m_replay = {};
    uint32_t m_left = 0, m_place = 0, m_busy_line = 0;
    // Response of the memory.
    bool m_valid = false;
    ResponseBeat m_beat = {};
    Note m_note = {};
    uint32_t m_number = 0;
    // Which side uses the response path.
    bool m_memory_holds = false, m_line_holds = false, m_line_next = false;
    // Events of this cycle.
    bool m_held = false, m_from_memory = false, m_from_line = false;
    bool m_take = false, m_forward_take = false, m_line_take = false;

    void offer();
};

class LineBuffer {
  public:
    explicit LineBuffer(const LineSizes& sizes);

    // The response offered to the crossbar in this cycle, or null; called before `look`. It remains
    // valid during the cycle.
    const ResponseBeat* offer() {
        const ResponseBeat* const response = m_answers.response();
        if (!response) return nullptr;
        m_offered = *response;
        return &m_offered;
    }
    // Given whether the crossbar accepts it: the request to the memory, or null. Then `memory_ready`
    // says whether the memory's response is accepted.
    const Crossbar::Beat* look(bool taken);
    bool memory_ready() const { return m_answers.memory_ready(); }
    // Advances to the next cycle: the crossbar's beat, or null; whether the memory accepted the
    // request; its response, or null. Returns whether the crossbar's beat is accepted. Counts events.
    bool edge(const Crossbar::Beat* beat, bool accepted, const ResponseBeat* arrival,
              uint64_t* counters);

  private:
    const LineSizes m_sizes;
    LineDirectory m_directory;
    LineAnswers m_answers;
    bool m_valid = false, m_within = false, m_passing = false;
    Crossbar::Beat m_beat = {}, m_out = {};
    ResponseBeat m_offered = {};
    // Events of this cycle.
    bool m_leaves = false, m_fetch = false, m_misses = false;
    LineDirectory::Events m_events = {};

    bool direct() const;
    LineAnswers::Answer answer(uint32_t line) const;
};

// What a crossbar and its memory exchange in a cycle.
struct Passage {
    bool took;                   // whether the crossbar's beat was accepted
    const ResponseBeat* answer;  // or null
};

// Does a cycle of a back end, through a line buffer if there is one. `arrival`: the back end's
// response, or null, valid during the cycle. `access` does the back end's cycle: it gets the beat
// offered, or null, and whether the response is accepted, and returns whether the beat is accepted.
template <typename Access>
Passage pass(std::optional<LineBuffer>& lines, const Crossbar& crossbar,
             const ResponseBeat* arrival, uint64_t* counters, Access access) {
    const Crossbar::Beat* const asked = crossbar.request();
    if (!lines) return {access(asked, arrival && crossbar.takes(*arrival)), arrival};
    const ResponseBeat* const answer = lines->offer();
    const Crossbar::Beat* const out = lines->look(answer && crossbar.takes(*answer));
    const bool accepted = access(out, arrival && lines->memory_ready());
    return {lines->edge(asked, accepted, arrival, counters), answer};
}

}  // namespace vip::timed
