// The DRAM of a vault: its contents in a file mapped into memory, and a check that each command
// comes when memory.timing.DramTiming allows it.
//
// The first broken rule is kept, with bank and cycle; cycle 0 is the first after reset. A device
// goes on after it, so that the controller's state stays readable, but its data is no longer worth
// anything.
//
// A command checks all rules at once; only a violation is looked up. A cycle without a command and
// without data on the bus costs two comparisons.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "device_model.h"
#include "mapped_file.h"

namespace vip {

class Dram {
  public:
    static constexpr int64_t kBurst = 4;  // clocks and words of a column on the data bus

    // The functions of device_model.h.
    int64_t open_image(const char* path);
    bool configure(const VipDramSetup& setup);
    void reset();
    const std::string& violation() const { return m_violation; }
    VipDramCounts counts() const;
    void record(uint32_t cycles);
    const std::vector<VipDramWindow>& recorded();

    // Whether a rule is broken.
    bool failed() const { return m_failed; }

    // Ends the current cycle. Returns what is on the bus in the next one.
    uint64_t cycle(bool valid, uint32_t kind, uint32_t bank, uint32_t row, uint32_t column,
                   uint64_t write_data, uint32_t write_strobe) {
        begin(valid, kind, bank, row, column);
        if (m_now >= m_writes.next) write(write_data, write_strobe);
        ++m_now;
        m_random = m_random * kFactor + kSummand;
        return m_now >= m_reads.next ? read() : m_random ^ m_random >> 31;
    }
    // The same if all columns are read by `take` and written by `put`.
    void drive(bool valid, uint32_t kind, uint32_t bank, uint32_t row, uint32_t column) {
        begin(valid, kind, bank, row, column);
        ++m_now;
    }
    struct Word {
        uint64_t data;
        uint32_t strobe;
    };
    // Writes the next column; called once for each, one cycle before its last word is on the bus.
    void put(const Word (&words)[kBurst]) {
        store_put(kNever);
        const Column& column = m_writes.at(m_writes.first);
        m_put = {column.start, column.address};
        std::copy(words, words + kBurst, m_put_words);
        m_writes.passed(kBurst - 1);
    }
    // Reads the next column; called once for each, while it is on the bus.
    const uint64_t* take() {
        const Column& column = m_reads.at(m_reads.first);
        m_reads.passed(kBurst - 1);
        return column.data;
    }
    // Whether it has a WRITE command whose column is yet to be written.
    bool knows_write() const { return m_writes.first != m_writes.end; }
    // Writes all words that have been on the bus to the memory, including those of `next`, the next
    // column to be written, or null.
    void settle(const Word* next) {
        store_put(m_now);
        if (!next) return;
        const Column& column = m_writes.at(m_writes.first);
        store_before({column.start, column.address}, next, m_now);
    }
    // Does `count` cycles without commands. Returns what is on the bus after them.
    uint64_t pass(uint64_t count);

    // Prefetches the column at an address of the vault.
    void expect(uint64_t address) const { __builtin_prefetch(m_memory.data + m_setup.base + address); }

  private:
    static constexpr uint64_t kWordBytes = 8, kColumnBytes = kBurst * kWordBytes;
    static constexpr int64_t kLongAgo = INT64_MIN / 2, kNever = INT64_MAX;
    static constexpr uint64_t kFactor = 6364136223846793005, kSummand = 1442695040888963407;
    enum Command : uint32_t { kOpens, kReads, kWrites, kCloses, kRefreshes, kCommands };

    struct alignas(64) Bank {
        // Cycle of the last command of each kind.
        int64_t last[kCommands] = {kLongAgo, kLongAgo, kLongAgo, kLongAgo, kLongAgo};
        int64_t refreshes = 0;
        uint32_t row = 0;
        bool open = false;
    };
    struct Burst {
        int64_t start;
        uint32_t bank;
        bool write;
    };
    // Columns in flight in one direction, in order; `next`: cycle of the next word; `over`: the cycle
    // after the last word.
    struct Column {
        int64_t start;
        uint64_t address;
        uint64_t data[kBurst];  // of a read
    };
    struct Columns {
        std::vector<Column> ring;
        uint64_t last = 0, first = 0, end = 0;  // mask of the ring; columns
        int64_t next = kNever, over = kLongAgo;

        // `size` is a power of two.
        void resize(uint64_t size) {
            ring.resize(size);
            last = size - 1;
        }
        Column& at(uint64_t place) { return ring[place & last]; }
        Column& add(int64_t start) {
            if (first == end) next = start;
            over = start + kBurst;
            Column& column = at(end++);
            column.start = start;
            return column;
        }
        // Updates after a word of the first column.
        void passed(int64_t word) {
            ++next;
            if (word == kBurst - 1) next = ++first == end ? kNever : at(first).start;
        }
        void clear() { first = end = 0, next = kNever, over = kLongAgo; }
    };

    int64_t m_now = 0;
    int64_t m_deadline = kNever;  // cycle in which a bank has missed too many refreshes
    uint64_t m_random = 0;
    Columns m_reads, m_writes;
    // The last column put; some of its words may not be in the memory yet.
    struct Put {
        int64_t start;
        uint64_t address;
    };
    Put m_put = {kNever, 0};
    Word m_put_words[kBurst];
    MappedFile m_memory;
    VipDramSetup m_setup = {};
    std::vector<Bank> m_banks;
    // The last bursts in the order of their commands, at least those that may be too near to a new
    // one. Their number is a power of two.
    std::vector<Burst> m_bursts;
    uint64_t m_accessed = 0;
    int64_t m_acts[4] = {};  // the last ACTs of any banks
    uint64_t m_activated = 0;
    uint64_t m_commands[kCommands] = {};
    int64_t m_window = 0;  // in cycles; 0: no recording
    int64_t m_recorded_from = 0;
    std::vector<VipDramWindow> m_windows;
    bool m_failed = false;
    std::string m_violation;

    Burst& burst(uint64_t place) { return m_bursts[place & (m_bursts.size() - 1)]; }
    void begin(bool valid, uint32_t kind, uint32_t bank, uint32_t row, uint32_t column) {
        if (valid) command(kind, bank, row, column);
        if (m_now >= m_deadline) [[unlikely]] late_refresh();
    }
    void write(uint64_t data, uint32_t strobe);
    // Stores the words that are on the bus before `cycle`.
    void store_before(const Put& put, const Word* words, int64_t cycle) {
        for (int64_t word = 0; word < kBurst && put.start < cycle - word; ++word)
            store(put.address + static_cast<uint64_t>(word) * kWordBytes, words[word].data,
                  words[word].strobe);
    }
    void store_put(int64_t cycle) {
        if (m_put.start == kNever) return;
        store_before(m_put, m_put_words, cycle);
        if (cycle >= m_put.start + kBurst) m_put.start = kNever;
    }
    void store(uint64_t address, uint64_t data, uint32_t strobe) {
        if (!strobe || address + kWordBytes > m_memory.size) [[unlikely]] return;
        uint64_t merged = data;
        if (strobe != 0xff) [[unlikely]] {
            memcpy(&merged, m_memory.data + address, kWordBytes);
            for (uint64_t byte = 0; byte < kWordBytes; ++byte) {
                if (!(strobe >> byte & 1)) continue;
                const uint64_t mask = uint64_t{0xff} << 8 * byte;
                merged = (merged & ~mask) | (data & mask);
            }
        }
        memcpy(m_memory.data + address, &merged, kWordBytes);
    }
    uint64_t read();
    void command(uint32_t kind, uint32_t bank, uint32_t row, uint32_t column);
    void activate(uint32_t bank, uint32_t row);
    void access(Command kind, uint32_t bank, uint32_t column);
    void precharge(uint32_t bank);
    [[gnu::cold]] void refresh(uint32_t bank);
    [[gnu::cold]] void check_bus(const Burst& fresh);
    VipDramWindow& window();
    int64_t missed(const Bank& bank) const;
    [[gnu::cold]] void find_deadline();
    [[gnu::cold]] void late_refresh();
    // Whether a command now is less than `least` cycles after the bank's last `before`.
    bool near(const Bank& bank, Command before, int64_t least) const {
        return m_now - bank.last[before] < least;
    }
    [[gnu::cold]] void apart(const char* rule, uint32_t bank, Command before, Command kind, int64_t least);
    [[gnu::cold]] void violate(const char* rule, uint32_t bank, const char* format, ...)
        __attribute__((format(printf, 4, 5)));
};

// The DRAM with a number; created on first use.
Dram& dram_device(int32_t number);

}  // namespace vip
