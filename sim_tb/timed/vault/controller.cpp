#include "controller.h"

#include <algorithm>
#include <bit>

namespace vip::timed {
namespace {

uint32_t field(uint64_t address, uint64_t low, uint64_t bits) {
    return static_cast<uint32_t>(address >> low & ((uint64_t{1} << bits) - 1));
}

}  // namespace

Controller::Controller(const VaultSizes& sizes)
    : m_sizes(sizes),
      m_free_slots(sizes.write_slots, true),
      m_queue(sizes),
      m_banks(sizes.banks, Bank(m_sizes)),
      m_active((uint64_t{2} << (sizes.banks - 1)) - 1),
      m_pending_reads(sizes.read_columns),
      m_beats(sizes.read_columns * kColumnWords),
      m_pending_writes(sizes.write_depth),
      m_store(sizes.write_slots * kColumnWords),
      m_acknowledgements(kAcknowledgements) {
    for (uint64_t number = 0; number < sizes.banks; ++number)
        m_due.push_back(static_cast<uint32_t>(sizes.trefi * number / sizes.banks));
}

// The entry that goes to its bank's queue, or 0.
uint64_t Controller::pick() {
    if (!m_queue.occupied()) {
        m_patience = 0;
        return 0;
    }
    uint64_t bank_ready = ~uint64_t{0};
    for (uint64_t left = m_active; left; left &= left - 1) {
        const int number = std::countr_zero(left);
        if (!m_banks[number].ready()) bank_ready &= ~(uint64_t{1} << number);
    }
    const uint64_t eligible = m_queue.eligible(bank_ready);
    const uint64_t oldest = m_queue.oldest_of(m_queue.occupied());
    if (m_sizes.scheduler == kInOrder) return oldest & eligible;
    uint64_t candidates = eligible;
    if (m_patience == kPatienceCycles && oldest)
        candidates &= oldest | ~m_queue.of_bank(m_queue.entry(oldest).bank);
    const uint64_t hits = candidates & m_queue.row_hits();
    const uint64_t straight = hits & ~m_queue.turnarounds();
    const uint64_t found = m_queue.oldest_of(straight ? straight : hits ? hits : candidates);
    if (found & oldest || !m_queue.occupied()) {
        m_patience = 0;
    } else if (m_patience != kPatienceCycles) {
        ++m_patience;
    }
    return found;
}

// Of `candidates` the bank with the first stamp; -1 if there is none. As scheduler.py compares, in
// pairs: stamps of banks that hold no request are old.
int Controller::first_stamp(uint64_t candidates) const {
    if (!candidates) return -1;
    if (!(candidates & (candidates - 1))) return std::countr_zero(candidates);
    const uint32_t top = uint32_t{1} << (m_sizes.stamp_bits - 1);
    int nodes[64];
    size_t count = m_sizes.banks;
    for (size_t number = 0; number < count; ++number)
        nodes[number] = candidates >> number & 1 ? static_cast<int>(number) : -1;
    for (; count > 1; count /= 2)
        for (size_t number = 0; number < count / 2; ++number) {
            const int a = nodes[2 * number], b = nodes[2 * number + 1];
            const bool second =
                a < 0 || (b >= 0 && (m_banks[b].head().stamp - m_banks[a].head().stamp) & top);
            nodes[number] = second ? b : a;
        }
    return nodes[0];
}

// The bank whose command is issued, or -1.
int Controller::issue() {
    uint64_t column = 0, row = 0, urgent = 0, hit = 0, write = 0, waiting = 0;
    for (uint64_t left = m_active; left; left &= left - 1) {
        const int number = std::countr_zero(left);
        const Bank& bank = m_banks[number];
        column |= uint64_t{bank.column} << number;
        row |= uint64_t{bank.row} << number;
        urgent |= uint64_t{bank.urgent} << number;
        hit |= uint64_t{bank.hit} << number;
        write |= uint64_t{bank.head().write} << number;
        waiting |= uint64_t{bank.waiting} << number;
    }
    if (m_sizes.scheduler == kInOrder) {
        const int first = first_stamp(waiting);
        if (first >= 0 && column >> first & 1) return first;
        return first_stamp(row & urgent ? row & urgent : row);
    }
    const uint64_t same = m_writing ? write : ~write;
    const bool change = m_count == kGroupBursts && hit & ~same;
    const uint64_t classes[] = {row & urgent, change ? 0 : column & same, column & ~same, row};
    uint64_t candidates = 0;
    for (const uint64_t members : classes)
        if (!candidates) candidates = members;
    const int found = first_stamp(candidates);
    if (found >= 0 && column >> found & 1) {
        if (same >> found & 1) {
            if (m_count != kGroupBursts) ++m_count;
        } else {
            m_writing = !m_writing;
            m_count = 1;
        }
    }
    return found;
}

bool Controller::activate_allowed() const {
    return (m_sizes.trrd <= 1 || m_distance.done()) &&
           (m_sizes.tfaw <= 4 || m_windows[m_oldest_act].done());
}

void Controller::rules(int issued) {
    const DramKind kind = issued < 0 ? kPre : m_banks[issued].kind;
    if (issued >= 0 && kind == kRead) {
        m_reads.wait(kBurstClocks);
        m_writes.wait(m_sizes.turnaround_to_write);
        m_burst.wait(kBurstClocks);
        m_bus_writes = false;
    } else if (issued >= 0 && kind == kWrite) {
        m_reads.wait(m_sizes.turnaround_to_read);
        m_writes.wait(kBurstClocks);
        m_burst.wait(kBurstClocks);
        m_bus_writes = true;
    } else if (issued >= 0 && kind == kAct) {
        m_distance.wait(m_sizes.trrd);
        m_windows[m_oldest_act].wait(m_sizes.tfaw);
        m_oldest_act = (m_oldest_act + 1) % 4;
    }
    for (CountDown* timer : {&m_reads, &m_writes, &m_burst, &m_distance}) timer->edge();
    for (CountDown& timer : m_windows) timer.edge();
}

void Controller::count(int issued, const Request& head) {
    const bool any = issued >= 0;
    const DramKind kind = any ? m_banks[issued].kind : kPre;
    const bool read = any && kind == kRead, write = any && kind == kWrite;
    ++counters[kVaultCycles];
    counters[kVaultReads] += read;
    counters[kVaultWrites] += write;
    counters[kVaultTurnarounds] += (read && m_bus_writes) || (write && !m_bus_writes);
    counters[kVaultBusBusy] += read || write || !m_burst.done();
    counters[kVaultRefreshes] += any && kind == kRefresh;
    if (any) {
        counters[kVaultRowHits] += m_banks[issued].event_hit(true);
        counters[kVaultRowMisses] += m_banks[issued].event_miss(true);
        counters[kVaultRowConflicts] += m_banks[issued].event_conflict(true);
    }
    for (uint64_t left = m_active; left; left &= left - 1)
        counters[kVaultRefreshBlocked] += m_banks[std::countr_zero(left)].refresh_blocked();
    counters[kVaultOccupancy] += m_occupancy;
    m_occupancy = std::popcount(m_queue.occupied());
    if (read || write) {
        const uint64_t age = ((m_now >> kUnitBits) - head.arrival) % (1 << kArrivalBits);
        uint32_t place = 0;
        while (place < kLatencyLimits && age >= kLimits[place] >> kUnitBits) ++place;
        ++counters[kVaultLatency0 + place];
    }
}

void Controller::banks_edge(int issued, uint64_t picked) {
    const Request* const moved = picked ? &m_queue.entry(picked) : nullptr;
    uint64_t due = 0;
    for (; m_next_due < m_due.size() && m_due[m_next_due] == m_refresh_cycle; ++m_next_due)
        due |= uint64_t{1} << m_next_due;
    m_active |= due;
    if (moved) m_active |= uint64_t{1} << moved->bank;
    for (uint64_t left = m_active; left; left &= left - 1) {
        const int number = std::countr_zero(left);
        Bank& bank = m_banks[number];
        bank.edge(number == issued, due >> number & 1,
                  moved && static_cast<int>(moved->bank) == number ? moved : nullptr);
        if (bank.rests()) m_active &= ~(uint64_t{1} << number);
    }
}

void Controller::cycle(const RequestBeat* beat, uint32_t source, bool response_taken,
                       uint64_t read_data, DramSignals& dram) {
    // What the DRAM sees in this cycle.
    dram = m_dram;
    dram.write_data = m_write_data.data;
    dram.write_strobe = m_wanted ? m_write_data.strobe : 0;

    // Commands.
    const bool read_allowed = m_reads.done() && m_reserved != m_sizes.read_columns;
    const bool acknowledges = m_acknowledgements.ready();
    const bool write_allowed = m_writes.done() && acknowledges;
    const bool activates = activate_allowed();
    for (uint64_t left = m_active; left; left &= left - 1)
        m_banks[std::countr_zero(left)].look(read_allowed, write_allowed, activates);
    const int issued = issue();
    const uint64_t picked = pick();
    const Request head = issued < 0 ? Request{} : m_banks[issued].head();
    const bool reads = issued >= 0 && m_banks[issued].kind == kRead;
    const bool writes = issued >= 0 && m_banks[issued].kind == kWrite;
    count(issued, head);

    // The write path frees a slot when its last word is read from the store.
    const bool reading = (m_writes_in_flight >> (m_sizes.tcwl - 1) & 1) || m_write_word;
    const Words sent = m_pending_writes.front();
    const bool freed = reading && m_write_word == kColumnWords - 1;

    // The request decoder.
    bool valid = false, rejected = false;
    Request request = {};
    accepted = false;
    bool slot_used = false;
    if (beat) {
        const uint32_t word = static_cast<uint32_t>(beat->address / kWordBytes % kColumnWords);
        const bool outside = beat->address >> m_sizes.address_bits;
        const bool has_slot = !beat->write || m_slot_valid;
        const bool ends = beat->last && has_slot;
        valid = ends && !outside;
        rejected = ends && outside;
        accepted = beat->last ? (outside ? acknowledges && !writes : m_queue.ready()) && has_slot
                              : m_slot_valid;
        const uint32_t first = m_in_write ? m_write_first : word;
        request = Request{.bank = field(beat->address, m_sizes.bank_low, m_sizes.bank_bits),
                          .row = field(beat->address, m_sizes.row_low, m_sizes.row_bits),
                          .column = field(beat->address, m_sizes.column_low, m_sizes.column_bits),
                          .write = beat->write,
                          .tag = beat->tag,
                          .source = source,
                          .first = first,
                          .last = beat->write ? word : (word + beat->words) % kColumnWords,
                          .slot = m_slot,
                          .stamp = m_stamp,
                          .arrival = static_cast<uint32_t>(m_now >> kUnitBits)};
        if (accepted) {
            if (beat->write) m_store[m_slot * kColumnWords + word] = {beat->data, beat->strobe};
            if (!m_in_write) m_write_first = word;
            m_in_write = !beat->last;
            slot_used = beat->write && beat->last && !outside;
        }
        if (valid && m_queue.ready())
            m_stamp = static_cast<uint32_t>((m_stamp + 1) & ((uint64_t{1} << m_sizes.stamp_bits) - 1));
    }
    // Slots: the next one is reserved a cycle ahead.
    size_t lowest = m_free_slots.size();
    if (!m_slot_valid || slot_used)
        lowest = std::find(m_free_slots.begin(), m_free_slots.end(), true) - m_free_slots.begin();
    if (lowest < m_free_slots.size()) {
        m_slot = static_cast<uint32_t>(lowest);
        m_slot_valid = true;
        m_free_slots[lowest] = false;
    } else if (slot_used) {
        m_slot_valid = false;
    }
    if (freed) m_free_slots[sent.slot] = true;

    // The read path.
    const bool data_valid = (m_reads_in_flight >> m_sizes.tcl & 1) || m_read_word;
    const Words current = m_pending_reads.front();
    const ResponseBeat word = {.data = read_data,
                               .tag = current.tag,
                               .source = current.source,
                               .last = m_read_word == current.last,
                               .error = false};
    const bool wanted = m_read_word >= current.first && m_read_word <= current.last;

    // Responses: those of one beat go before reads, but never into one.
    const bool advance = !m_response_valid || response_taken;
    const bool acknowledged = m_acknowledgements.valid() && !m_in_response;
    const bool beats_taken = advance && !acknowledged;
    const bool released = m_beats.valid() && beats_taken && m_beats.front().last;
    if (advance) {
        m_response_valid = acknowledged || m_beats.valid();
        m_response = acknowledged ? m_acknowledgements.front() : m_beats.front();
        m_response.data = m_beats.front().data;
    }
    const bool was_in_response = m_in_response;
    if (m_beats.valid() && beats_taken) m_in_response = !m_beats.front().last;
    const ResponseBeat short_one = writes ? ResponseBeat{0, head.tag, head.source, true, false}
                                          : ResponseBeat{0, request.tag, source, true, true};
    m_acknowledgements.edge(writes || rejected ? &short_one : nullptr,
                            advance && !was_in_response);
    m_beats.edge(data_valid && wanted ? &word : nullptr, beats_taken);
    const Words words = {head.tag, head.source, head.slot, head.first, head.last};
    m_pending_reads.edge(reads ? &words : nullptr, data_valid && m_read_word == kColumnWords - 1);
    m_reserved += reads;
    m_reserved -= released;
    if (data_valid) m_read_word = (m_read_word + 1) % kColumnWords;
    m_reads_in_flight = m_reads_in_flight << 1 | reads;

    // The write path.
    m_wanted = m_write_word >= sent.first && m_write_word <= sent.last;
    if (reading) m_write_data = m_store[sent.slot * kColumnWords + m_write_word];
    m_pending_writes.edge(writes ? &words : nullptr, freed);
    if (reading) m_write_word = (m_write_word + 1) % kColumnWords;
    m_writes_in_flight = m_writes_in_flight << 1 | writes;

    // Queues and banks.
    m_dram.valid = issued >= 0;
    if (issued >= 0) {
        m_dram.kind = m_banks[issued].kind;
        m_dram.bank = static_cast<uint32_t>(issued);
        m_dram.row = head.row;
        m_dram.column = head.column;
    }
    rules(issued);
    banks_edge(issued, picked);
    m_queue.edge(picked, valid ? &request : nullptr);
    if (++m_refresh_cycle == m_sizes.trefi) m_refresh_cycle = 0, m_next_due = 0;
    ++m_now;
}

}  // namespace vip::timed
