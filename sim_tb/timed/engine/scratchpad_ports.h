// Prototype: the ports of the scratchpad's banks, for which beats, loads and stores wait.
//
// Numbers in the environment variable VIP_PORTS, by commas; without it the model is the usual one:
//   sets       1: eight banks; 2: banks of even and of odd rows; 4: of every fourth row
//   reads, writes  ports of a bank
//   shared     0, or that number of ports for reads and writes instead
//   ahead      beats that an operand may be read before its beat begins
//   buffer     words of a matrix's vector that are read for its first row only
//   patience   cycles after which a load or store goes before operands
//   latency    cycles from a beat to its result's write
//   hash       0: a row's set is the row modulo sets; 1, 2: the sum, XOR of its digits
//   sets_only  1: an access takes a port of whole sets, not of the banks with its bytes
//   assigned   0, or a digit for first, second, store, result, load: 1, 2: that port alone; 3: any
//   delay      cycles that a result may wait
// A line of JSON for each run of an engine goes to the file in VIP_PORTS_OUT. `early` counts reads,
// stores and loads before the result that they follow; results later than `delay` count 10^9 there.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace vip::timed {

struct PortCommand {
    uint64_t result = 0, first = 0, second = 0, words = 0, rows = 0, passes = 1, beats = 0, row_bytes = 0;
    uint32_t width = 0;
    bool matrix = false, scalar = false, unary = false;
};

struct ScratchpadPorts {
    bool on = false;
    int sets = 1, reads = 3, writes = 2, shared = 0, ahead = 0, buffer = 0, patience = 4, latency = 8, hash = 0, sets_only = 0, assigned = 0, delay = 0;
    uint64_t size = 4096;
    uint8_t rd[64] = {}, wr[64] = {};
    uint64_t due[64] = {};
    uint64_t time = 0;
    PortCommand cmd[2];
    bool running = false, waits = false, retire = false;
    uint64_t e = 0, a = 0, b = 0;
    int load_wait = 0, store_wait = 0;
    bool load_granted = false, store_granted = false;
    // statistics
    uint64_t n_a = 0, n_b = 0, n_store = 0, n_result = 0, n_load = 0, b_result = 0, b_load = 0, cycles = 0,
             beats = 0, stalls = 0, load_blocked = 0, store_blocked = 0, hist_r[8] = {}, hist_w[8] = {},
             hist_t[8] = {}, stalls_a = 0, stalls_b = 0, un_a = 0, un_b = 0;

    ScratchpadPorts() {
        const char* text = std::getenv("VIP_PORTS");
        if (!text || !*text) return;
        on = true;
        std::sscanf(text, "%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d", &sets, &reads, &writes, &shared, &ahead, &buffer, &patience, &latency, &hash, &sets_only, &assigned, &delay);
        for (int i = 5, n = assigned; i--; n /= 10) assign[i] = n % 10;
    }
    uint64_t set_of(uint64_t row) const {
        if (!hash) return row % sets;
        uint64_t found = 0;
        for (uint64_t r = row; r; r /= sets) found = hash == 1 ? found + r % sets : hash == 2 ? found ^ r % sets : found + (r == row ? r : r & 1 ? 1 : 0);
        return found % sets;
    }
    uint64_t mask(uint64_t address, uint64_t bytes) const {
        uint64_t found = 0;
        for (uint64_t i = 0; i < bytes; ++i) {
            const uint64_t at = (address + i) % size;
            found |= uint64_t{1} << (at % 8 + 8 * set_of(at / 8));
        }
        return found;
    }
    // kinds: 0 first, 1 second, 2 store, 3 result, 4 load. assign: for each a digit: 1 port 0, 2 port 1, 3 any.
    int assign[5] = {0, 0, 0, 0, 0};
    uint64_t port[2] = {};
    uint64_t whole(uint64_t m) const {
        if (!sets_only) return m;
        uint64_t found = 0;
        for (int i = 0; i < sets; ++i)
            if (m >> (8 * i) & 255) found |= uint64_t{255} << (8 * i);
        return found;
    }
    bool try_take(uint64_t m, int kind) {
        m = whole(m);
        const bool write = kind >= 3;
        if (assign[0]) {
            for (int p = 0; p < 2; ++p)
                if (assign[kind] >> p & 1 && !(port[p] & m)) {
                    port[p] |= m;
                    return true;
                }
            return false;
        }
        for (uint64_t n = m; n; n &= n - 1) {
            const int i = __builtin_ctzll(n);
            if (shared ? rd[i] + wr[i] >= shared : write ? wr[i] >= writes : rd[i] >= reads) return false;
        }
        for (uint64_t n = m; n; n &= n - 1) ++(write ? wr : rd)[__builtin_ctzll(n)];
        return true;
    }
    // Beat i of stream, which may lie in the waiting command; null: there is none.
    const PortCommand* locate(uint64_t& i) const {
        if (!running) return nullptr;
        if (i < cmd[0].beats) return &cmd[0];
        i -= cmd[0].beats;
        return waits && i < cmd[1].beats ? &cmd[1] : nullptr;
    }
    // 0: no read.
    uint64_t read_of(const PortCommand& c, uint64_t i, bool second, uint64_t& address) const {
        if (i % c.passes) return 0;
        const uint64_t word = i / c.passes % c.words, row = i / c.passes / c.words;
        if (!second) return address = c.first + row * c.row_bytes + 8 * word, 8;
        if (c.unary) return 0;
        if (c.scalar) return word ? 0 : (address = c.second, 8);
        if (c.matrix && row && static_cast<int>(word) < buffer) return 0;
        return address = c.second + 8 * word, 8;
    }
    uint64_t until[4096] = {};  // cycle in which a result is written there
    uint64_t early_reads = 0, early_stores = 0, early_loads = 0;
    // Bytes that beat i writes, or 0.
    uint64_t write_of(const PortCommand& c, uint64_t i, uint64_t& address) const {
        const uint64_t pass = i % c.passes, word = i / c.passes % c.words, row = i / c.passes / c.words;
        if (pass != c.passes - 1) return 0;
        if (!c.matrix) {
            const uint64_t left = c.row_bytes - 8 * word;
            return address = c.result + 8 * word, left < 8 ? left : 8;
        }
        if (word != c.words - 1) return 0;
        return address = c.result + (row << c.width), 1u << c.width;
    }
    bool pending(uint64_t address, uint64_t bytes, uint64_t before) const {
        for (uint64_t i = 0; i < bytes; ++i)
            if (until[(address + i) % size] > time || (until[(address + i) % size] == time && time)) return true;
        for (uint64_t j = e; j < before; ++j) {
            uint64_t i = j, at;
            const PortCommand* c = locate(i);
            if (!c) break;
            if (const uint64_t n = write_of(*c, i, at))
                if (at < address + bytes && address < at + n) return true;
        }
        return false;
    }
    void skip(uint64_t& p, bool second) const {
        for (;;) {
            if (p > e + ahead) return;
            uint64_t i = p, address;
            const PortCommand* c = locate(i);
            if (!c || read_of(*c, i, second, address)) return;
            ++p;
        }
    }
    void fetch(uint64_t& p, bool second) {
        skip(p, second);
        if (p > e + ahead) return;
        uint64_t i = p, address;
        const PortCommand* c = locate(i);
        if (!c) return;
        read_of(*c, i, second, address);
        if (!try_take(mask(address, 8), second)) return;
        ++(second ? n_b : n_a);
        const uint64_t left = c->row_bytes - 8 * (i / c->passes % c->words);
        if (pending(address, second && c->scalar ? 1u << c->width : left < 8 ? left : 8, p)) ++early_reads;
        if (address % 8) ++(second ? un_b : un_a);
        ++p;
        skip(p, second);
    }
    struct Late { uint64_t m, deadline; } queue[64] = {};
    uint64_t head = 0, tail = 0, failed = 0;
    void write_result() {
        const uint64_t m = queue[head % 64].m;
        if (!try_take(m, 3)) { failed += queue[head % 64].deadline <= time; return; }
        ++n_result, b_result += __builtin_popcountll(m), ++head;
    }
    void begin(uint64_t load_mask, uint64_t store_mask) {
        std::memset(rd, 0, sizeof rd), std::memset(wr, 0, sizeof wr);
        retire = load_granted = store_granted = false;
        port[0] = port[1] = 0;
        uint64_t& now = due[time % 64];
        if (now) queue[tail++ % 64] = {now, time + delay};
        now = 0;
        if (head != tail && queue[head % 64].deadline <= time) write_result();
        if (load_mask && load_wait >= patience) load_granted = try_take(load_mask, 4);
        if (store_mask && store_wait >= patience) store_granted = try_take(store_mask, 2);
        if (running) {
            if (a <= b) fetch(a, false), fetch(b, true);
            else fetch(b, true), fetch(a, false);
            if (a > e && b > e) {
                const PortCommand& c = cmd[0];
                uint64_t at;
                if (const uint64_t n = write_of(c, e, at)) {
                    due[(time + latency) % 64] |= mask(at, n);
                    for (uint64_t k = 0; k < n; ++k) until[(at + k) % size] = time + latency + delay;
                }
                ++beats;
                if (++e == c.beats) retire = true;
            } else {
                ++stalls;
                stalls_a += a <= e, stalls_b += b <= e;
            }
        }
        if (head != tail) write_result();
    }
    // Whether the load's word is written in this cycle.
    bool load(uint64_t m, uint64_t address, uint64_t bytes) {
        if (!load_granted && !try_take(m, 4)) return ++load_wait, ++load_blocked, false;
        // Nothing may still be written or read there.
        bool early = pending(address, bytes, e + 100000);
        for (uint64_t k = 0; k < 2; ++k)
            for (uint64_t p = k ? b : a; !early; ++p) {
                uint64_t i = p, at;
                const PortCommand* c = locate(i);
                if (!c) break;
                const uint64_t left = c->row_bytes - 8 * (i / c->passes % c->words);
                if (read_of(*c, i, k, at))
                    early |= at < address + bytes && address < at + (k && c->scalar ? 1u << c->width : left < 8 ? left : 8);
            }
        early_loads += early;
        load_wait = 0, ++n_load, b_load += __builtin_popcountll(m);
        return load_granted = true;
    }
    bool store(uint64_t m, uint64_t address, uint64_t bytes) {
        if (!store_granted && !try_take(m, 2)) return ++store_wait, ++store_blocked, false;
        early_stores += pending(address, bytes, e);  // due results only
        store_wait = 0, ++n_store;
        return store_granted = true;
    }
    void end(bool handed_on, const PortCommand& given) {
        if (running && !retire) {
            if (handed_on) waits = true, cmd[1] = given;
        } else {
            if (running) a -= cmd[0].beats, b -= cmd[0].beats, e = 0;
            running = waits || handed_on;
            if (waits) cmd[0] = cmd[1];
            else if (handed_on) cmd[0] = given;
            if (!running) a = b = e = 0;
            waits = false;
        }
        int r = 0, w = 0, t = 0;
        for (int i = 0; i < 8 * sets; ++i) {
            if (rd[i] > r) r = rd[i];
            if (wr[i] > w) w = wr[i];
            if (rd[i] + wr[i] > t) t = rd[i] + wr[i];
        }
        ++hist_r[r], ++hist_w[w], ++hist_t[t];
        ++time, ++cycles;
    }
    void report() const {
        const char* path = std::getenv("VIP_PORTS_OUT");
        if (!on || !path) return;
        std::FILE* f = std::fopen(path, "a");
        std::fprintf(f,
                     "{\"cycles\":%lu,\"beats\":%lu,\"stalls\":%lu,\"stalls_a\":%lu,\"stalls_b\":%lu,\"a\":%lu,\"b\":%lu,\"un_a\":%lu,\"un_b\":%lu,\"store\":%lu,\"result\":%lu,"
                     "\"load\":%lu,\"bytes_result\":%lu,\"bytes_load\":%lu,\"load_blocked\":%lu,\"store_blocked\":%lu,\"early\":[%lu,%lu,%lu],"
                     "\"r\":[%lu,%lu,%lu,%lu],\"w\":[%lu,%lu,%lu],\"t\":[%lu,%lu,%lu,%lu,%lu,%lu]}\n",
                     cycles, beats, stalls, stalls_a, stalls_b, n_a, n_b, un_a, un_b, n_store, n_result, n_load, b_result, b_load, load_blocked,
                     store_blocked, early_reads, early_stores, early_loads + 1000000000 * failed, hist_r[0], hist_r[1], hist_r[2], hist_r[3], hist_w[0], hist_w[1], hist_w[2],
                     hist_t[0], hist_t[1], hist_t[2], hist_t[3], hist_t[4], hist_t[5]);
        std::fclose(f);
    }
};

}  // namespace vip::timed
