// The tiles of a chip, their DRAM, the control bus and the host in one library. See chip_model.py.
// The host and memories on AXI buses are those of cosimulation.

#include <algorithm>
#include <atomic>
#include <cassert>

#include "../engine/catch_up.cpp"
#include "../engine/flow.cpp"
#include "../engine/history.cpp"
#include "../engine/load_store.cpp"
#include "../engine/pe_model.cpp"
#include "../engine/front_end.cpp"
#include "../vault/axi_backend.cpp"
#include "../vault/banks.cpp"
#include "../vault/controller.cpp"
#include "../../../memory/model/dram.cpp"
#include "../vault/line_buffer.cpp"
#include "node.cpp"
#include "tile.cpp"
#include "control.cpp"
#include "host_data.cpp"
#include "crew.h"
#include "launched.inc"

namespace {

using namespace vip::timed;

constexpr int32_t kTheHost = 0;

// Fills `launched` for an engine that starts a program of `words`. Returns 0 on success.
using Launcher = int32_t (*)(uint32_t engine, const uint32_t* program, uint32_t words,
                             uint64_t parameters, Launched* launched);

// The host may end its operation at an interrupt. So a tile must not be further ahead of the host than
// the host's next action takes to reach it on the control bus or over the network from tile 0.
constexpr uint32_t kWayFromHost = 3, kWayOverNetwork = 7;
// Otherwise a tile may be this many cycles ahead.
constexpr uint32_t kAhead = 64;

class Chip {
  public:
    // One of `vault` and `axi` is null.
    Chip(const ChipSizes& sizes, const NetworkSizes& network, const VaultSizes* vault,
         const AxiSizes* axi, const LineSizes& lines, const HostSizes& host, const RegisterMap& map,
         Launcher launcher)
        : m_sizes(sizes), m_network(network), m_lines(lines), m_host(host), m_map(map),
          m_launcher(launcher),
          m_seen(sizes.threads),
          m_crew(static_cast<uint32_t>(sizes.threads),
                 [this](uint32_t thread, uint32_t threads) { work(thread, threads); }) {
        if (vault) m_vault = *vault;
        if (axi) m_axi = *axi;
        for (uint32_t threads = 1; threads <= sizes.threads; ++threads)
            m_sharings.emplace_back(m_network, threads);
        reset();
    }

    // Called before the first `run` of a host operation that lets `cycles` pass, and that may end at
    // an interrupt if it `stops`.
    void expect(uint64_t cycles, bool stops) { m_expected = cycles + 1, m_stops = stops; }

    // Runs until the host's operation ends, for `cycles`, or until one of `threads` has waited for
    // others longer than `patience` nanoseconds. Returns whether the operation ended.
    bool run(uint64_t cycles, uint32_t threads, int64_t patience) {
        m_broken = false;
        m_patience = patience;
        m_waited = 0;
        do {
            uint64_t passed = 1;
            if (m_expected && !m_out.idle && quiet()) {
                passed = run_quiet(std::min(cycles, m_expected), threads);
            } else {
                cycle();
            }
            cycles -= passed;
            m_expected -= std::min(m_expected, passed);
        } while (!m_out.idle && cycles && !m_broken && !m_waited);
        m_expected = m_out.idle ? 0 : m_expected;
        for (const auto& tile : m_tiles) {
            assert(tile->time() >= m_time);
            tile->settle();
        }
        return m_out.idle || m_broken;
    }

    // How long that thread waited, in nanoseconds; 0 if none did.
    int64_t waited() const { return m_waited; }

  private:
    const ChipSizes m_sizes;
    const NetworkSizes m_network;
    std::optional<VaultSizes> m_vault;
    std::optional<AxiSizes> m_axi;
    const LineSizes m_lines;
    const HostSizes m_host;
    const RegisterMap m_map;
    const Launcher m_launcher;
    bool m_broken = false;  // a launch failed

    std::unique_ptr<HostPort> m_port;
    std::unique_ptr<HostData> m_data;
    std::vector<std::unique_ptr<HostPlace>> m_places;  // by tile, if accesses pass along them
    std::vector<std::unique_ptr<ChipTile>> m_tiles;
    std::vector<Sharing> m_sharings;  // among one thread, two, and so on
    // For each thread: the first cycle in which the host may not yet know its tiles' state.
    struct alignas(64) Seen {
        std::atomic<uint64_t> until{0};
    };
    std::vector<Seen> m_seen;
    std::vector<std::unique_ptr<TileControl>> m_controls;
    std::optional<Summaries> m_summaries;
    std::vector<Order> m_orders;
    // Cycles until the host's operation ends at the latest, in which no access begins; 0 if unknown.
    uint64_t m_expected = 0;
    bool m_stops = false;  // it may end with an interrupt
    std::atomic<bool> m_failed{false};  // a rule of the DRAM is broken
    VipChipIn m_in = {};
    VipChipOut m_out = {};

    std::atomic<uint64_t> m_time{0};  // the host's next cycle
    std::atomic<uint64_t> m_end{0};   // end of a stretch, exclusive
    int64_t m_patience = 0, m_waited = 0;
    Crew m_crew;

    void reset() {
        m_time = 0;
        for (Seen& seen : m_seen) seen.until = 0;
        m_failed = false;
        m_port = std::make_unique<HostPort>(m_map);
        m_data = std::make_unique<HostData>(m_host);
        m_controls.clear();
        m_tiles.clear();
        m_summaries.emplace(static_cast<uint32_t>(m_network.vaults), kAhead);
        const auto engines = static_cast<uint32_t>(m_sizes.engines);
        for (uint32_t vault = 0; vault < m_network.vaults; ++vault) {
            m_tiles.push_back(std::make_unique<ChipTile>(m_sizes, m_network,
                                                         m_vault ? &*m_vault : nullptr,
                                                         m_axi ? &*m_axi : nullptr, m_lines,
                                                         *m_summaries, vault));
            m_controls.push_back(std::make_unique<TileControl>(
                m_map, *m_tiles.back(), vault, vault * engines,
                static_cast<uint32_t>(m_sizes.instruction_words)));
        }
        m_places.clear();
        if (m_host.chained) m_places.resize(m_network.vaults);
        for (size_t vault = m_places.size(); vault-- > 0;) {
            const HostPlace* const next =
                vault + 1 < m_places.size() ? m_places[vault + 1].get() : nullptr;
            m_places[vault] = std::make_unique<HostPlace>(m_network, vault, next);
            m_tiles[vault]->host = m_places[vault].get();
        }
        if (m_places.empty()) m_tiles[0]->host = m_data.get();
        if (m_sizes.joined)
            for (const auto& tile : m_tiles) tile->connect(m_tiles);
        for (Sharing& sharing : m_sharings) sharing.look_at(m_tiles);
    }

    void reset_memory(uint32_t vault) const {
        const auto number = static_cast<int32_t>(vault);
        if (m_vault) {
            vip::dram_device(number).reset();
        } else {
            VipAxiMemoryIn in = {};
            VipAxiMemoryOut out = {};
            in.reset = true;
            vip_axi_memory_cycle(number, &in, &out);
        }
    }

    // Whether the host resets the chip or begins an access in this cycle.
    bool accesses() const {
        return m_out.reset || m_out.control_awvalid || m_out.control_wvalid ||
               m_out.control_arvalid || m_out.data_awvalid || m_out.data_wvalid ||
               m_out.data_arvalid;
    }

    // Whether no access is in flight or begins.
    bool quiet() const {
        if (accesses()) return false;
        for (const auto& control : m_controls)
            if (!control->idle()) return false;
        for (const auto& place : m_places)
            if (!place->idle()) return false;
        return m_port->idle() && m_data->idle();
    }

    void host_cycle() {
        m_in.failed = m_failed.load(std::memory_order_relaxed);
        vip_chip_cycle(kTheHost, &m_in, &m_out);
    }

    void messages(const Summary& last) {
        const size_t count = m_controls.size();
        const auto& outgoing = m_port->outgoing();
        const auto& returning = m_controls[count - 1]->output();
        const bool enters = outgoing.valid() && m_controls[0]->ready();
        const Message first = outgoing.front(), arrived = returning.front();
        const bool arrives = returning.valid();
        m_port->edge(m_out, enters, arrives ? &arrived : nullptr, last);
        bool sent = true;  // the host takes every message
        for (size_t tile = count; tile-- > 0;) {
            TileControl& control = *m_controls[tile];
            const bool given = tile ? m_controls[tile - 1]->output().valid() : enters;
            const bool takes = given && control.ready();
            const Message message = tile ? m_controls[tile - 1]->output().front() : first;
            control.edge(tile == 0 ? (enters ? &message : nullptr) : takes ? &message : nullptr,
                         sent, m_orders);
            sent = takes;
        }
    }

    // Advances a tile; returns whether it did any cycle.
    bool advance(ChipTile& tile, uint64_t limit) {
        if (!tile.advance(limit)) return false;
        if (tile.failed()) m_failed.store(true, std::memory_order_relaxed);
        return true;
    }

    // Passes the host's accesses from vault to vault.
    void along_places() {
        for (const auto& place : m_places) place->pass();
        HostPlace& first = *m_places[0];
        m_data->taken = m_data->request && first.ready();
        const ResponseBeat* const answer = first.answer();
        if (answer && m_data->takes(*answer)) m_data->response = *answer;
        for (size_t vault = m_places.size(); vault-- > 0;) {
            const HostPlace* const before = vault ? m_places[vault - 1].get() : nullptr;
            m_places[vault]->edge(before ? before->passed() : m_data->request,
                                  before ? before->took() : m_data->response.has_value());
        }
    }

    void cycle() {
        if (m_out.reset) {
            for (const auto& tile : m_tiles) tile->finish();
            reset();
            for (uint32_t vault = 0; vault < m_network.vaults; ++vault) reset_memory(vault);
            m_in = VipChipIn{};
            m_port->drive(m_in);
            m_data->drive(m_in);
            host_cycle();
            return;
        }
        const uint64_t now = m_time.load(std::memory_order_relaxed);
        const Summary last = m_summaries->seen(now);
        m_port->drive(m_in);
        m_data->drive(m_in);
        messages(last);
        m_port->interrupts(last);
        m_data->look();
        for (const auto& place : m_places) place->look();
        for (const auto& tile : m_tiles) advance(*tile, now + 1);
        if (!m_places.empty()) along_places();
        m_data->edge(m_out);
        // The effect of a message on an engine is visible in the next cycle.
        for (const Order& order : m_orders)
            if (!m_broken) obey(order);
        m_orders.clear();
        m_time.store(now + 1, std::memory_order_relaxed);
        host_cycle();
    }

    void obey(const Order& order) {
        const auto engines = static_cast<uint32_t>(m_sizes.engines);
        const uint32_t vault = order.engine / engines, slot = order.engine % engines;
        if (order.stops) {
            m_tiles[vault]->stop(slot);
            return;
        }
        TileControl& control = *m_controls[vault];
        Launched launched = {};
        if (m_launcher(order.engine, control.programs[slot].data(), order.words,
                       control.parameters[slot], &launched)) {
            m_broken = true;
            return;
        }
        Sizes sizes = *launched.sizes;
        sizes.history_turn = m_tiles[vault]->result(slot).history_turn;
        m_tiles[vault]->launch(slot, std::make_unique<PeModel>(sizes, *launched.engine,
                                                               launched.buffer));
    }

    // Like `cycle`, while the host makes no accesses: until its operation ends, for `cycles`, or until
    // one of `threads` waits too long. Returns the cycles that passed. Tiles may then be some cycles
    // ahead of the host, if it has stopped them or a thread has waited.
    uint64_t run_quiet(uint64_t cycles, uint32_t threads) {
        const uint64_t begin = m_time;
        m_end = begin + cycles;
        m_waited = stretch(threads);
        if (m_waited) {
            // Bring all tiles up to the host's cycle.
            m_end.store(m_time);
            stretch(1);
        }
        return m_time - begin;
    }

    // Does all cycles before the end.
    int64_t stretch(uint32_t threads) {
        for (const auto& tile : m_tiles) tile->forget();
        for (uint32_t thread = 0; thread < m_seen.size(); ++thread)
            m_seen[thread].until = thread < threads ? m_time.load() : kEver;
        return m_crew.share(threads, m_patience);
    }

    // Does a thread's part of a stretch.
    void work(uint32_t thread, uint32_t threads) {
        const Sharing& sharing = m_sharings[threads - 1];
        const uint32_t first = sharing.first(thread), last = sharing.first(thread + 1);
        Crew::Wait wait(m_crew);
        for (bool goes_on = true; goes_on && !m_crew.gives_up();) {
            bool moves = !thread && pass_host();
            uint64_t seen = kEver;
            const uint64_t host = m_time.load(std::memory_order_acquire);
            const uint64_t end = m_end.load(std::memory_order_acquire);
            goes_on = host < end;
            for (uint32_t turn = first; turn < last; ++turn) {
                const uint32_t vault = sharing.vault(turn);
                ChipTile& tile = *m_tiles[vault];
                const uint64_t before =
                    m_stops ? std::min(kWayFromHost + vault, kWayOverNetwork) : kAhead;
                sharing.prefetch(thread, turn);
                moves |= advance(tile, std::min(end, host + before));
                goes_on |= tile.time() < end;
                seen = std::min(seen, tile.time() + m_summaries->way(vault));
            }
            m_seen[thread].until.store(seen, std::memory_order_release);
            if (moves) {
                wait.over();
            } else {
                wait.look();
            }
        }
    }

    // Advances the host as far as it knows what it sees. Nothing that a tile does in a cycle reaches
    // it in that cycle. Returns whether it did any cycle.
    bool pass_host() {
        const uint64_t begin = m_time.load(std::memory_order_relaxed);
        const uint64_t end = m_end.load(std::memory_order_relaxed);
        uint64_t now = begin, limit = end;
        for (const Seen& seen : m_seen)
            limit = std::min(limit, seen.until.load(std::memory_order_acquire));
        while (now < limit) {
            m_port->drive(m_in);
            m_data->drive(m_in);
            m_port->interrupts(m_summaries->seen(now));
            host_cycle();
            ++now;
            if (m_out.idle) limit = now;
        }
        m_time.store(now, std::memory_order_release);
        if (m_out.idle && now != end) m_end.store(now, std::memory_order_release);
        return now != begin;
    }
};

}  // namespace

extern "C" {

void* vip_timed_chip_new(const ChipSizes* sizes, const NetworkSizes* network,
                         const VaultSizes* vault, const AxiSizes* axi, const LineSizes* lines,
                         const HostSizes* host, const RegisterMap* map, Launcher launcher) {
    return new Chip(*sizes, *network, vault, axi, *lines, *host, *map, launcher);
}

void vip_timed_chip_expect(void* chip, uint64_t cycles, bool stops) {
    static_cast<Chip*>(chip)->expect(cycles, stops);
}

bool vip_timed_chip_run(void* chip, uint64_t cycles, uint32_t threads, int64_t patience) {
    return static_cast<Chip*>(chip)->run(cycles, threads, patience);
}

int64_t vip_timed_chip_waited(void* chip) { return static_cast<Chip*>(chip)->waited(); }

void vip_timed_chip_end(void* chip) { delete static_cast<Chip*>(chip); }

}  // extern "C"
