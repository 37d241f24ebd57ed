// The tiles of a chip, their DRAM, the control bus and the host, in one library. See chip_model.py.
// Host, DRAM and memories on AXI buses are those of the cosimulation.

#include <atomic>
#include <thread>

#include "../../../memory/model/device_model.cpp"
#include "../engine/arc.cpp"
#include "../engine/load_store.cpp"
#include "../engine/pe_model.cpp"
#include "../engine/program.cpp"
#include "../engine/range_check.cpp"
#include "../engine/sequencer.cpp"
#include "../vault/axi_backend.cpp"
#include "../vault/banks.cpp"
#include "../vault/queue.cpp"
#include "../vault/controller.cpp"
#include "../vault/line_buffer.cpp"
#include "router.cpp"
#include "node.cpp"
#include "tile.cpp"
#include "control.cpp"
#include "host_data.cpp"

namespace {

using namespace vip::timed;

constexpr int32_t kTheHost = 0;

// What a launched engine begins with.
struct Launched {
    const Sizes* sizes;
    vip::Engine* engine;
    const Word* buffer;
};

// Fills `launched` for an engine that starts a program of `words`; 0, or another value where it
// fails.
using Launcher = int32_t (*)(uint32_t engine, const uint32_t* program, uint32_t words,
                             uint64_t parameters, Launched* launched);

// Threads meet here at the end of each cycle.
class Barrier {
  public:
    explicit Barrier(uint32_t threads) : m_threads(threads) {}

    void wait() {
        const uint32_t phase = m_phase.load(std::memory_order_relaxed);
        if (m_arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == m_threads) {
            m_arrived.store(0, std::memory_order_relaxed);
            m_phase.store(phase + 1, std::memory_order_release);
            return;
        }
        // Where another thread has no processor, it gets this one.
        for (uint32_t tries = 0; m_phase.load(std::memory_order_acquire) == phase; ++tries)
            if (tries > kTries) std::this_thread::yield();
    }

  private:
    static constexpr uint32_t kTries = 2000;
    const uint32_t m_threads;
    std::atomic<uint32_t> m_arrived{0}, m_phase{0};
};

class Chip {
  public:
    // Of `vault` and `axi` one is null.
    Chip(const ChipSizes& sizes, const NetworkSizes& network, const VaultSizes* vault,
         const AxiSizes* axi, const LineSizes& lines, const HostSizes& host, const RegisterMap& map,
         Launcher launcher)
        : m_sizes(sizes), m_network(network), m_lines(lines), m_host(host), m_map(map),
          m_launcher(launcher),
          m_barrier(static_cast<uint32_t>(sizes.threads)) {
        if (vault) m_vault = *vault;
        if (axi) m_axi = *axi;
        reset();
        for (uint32_t thread = 1; thread < sizes.threads; ++thread)
            m_threads.emplace_back([this, thread] { follow(thread); });
    }

    ~Chip() {
        m_ends = true;
        m_stretch.fetch_add(1, std::memory_order_seq_cst);
        m_stretch.notify_all();
        for (std::thread& thread : m_threads) thread.join();
    }

    // Goes on until the host's operation ends, or for `cycles`. Returns whether it ended.
    bool run(uint64_t cycles) {
        m_broken = false;
        do {
            if (quiet()) {
                cycles -= run_quiet(cycles);
            } else {
                cycle();
                --cycles;
            }
        } while (!m_out.idle && cycles && !m_broken);
        for (const auto& tile : m_tiles) tile->wake();
        return m_out.idle || m_broken;
    }

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
    std::vector<std::unique_ptr<HostPlace>> m_places;  // of each tile, if accesses pass along them
    std::vector<std::unique_ptr<ChipTile>> m_tiles;
    std::vector<ChipTile*> m_tile_pointers;
    std::vector<uint8_t> m_busy[2];  // of each tile, of which the links carry something
    std::vector<std::unique_ptr<TileControl>> m_controls;
    std::vector<Summary> m_summaries[2];
    std::vector<Order> m_orders;
    uint32_t m_now = 0;    // parity of the cycle
    uint32_t m_begin = 0;  // of the first one of a stretch
    std::atomic<bool> m_failed{false};  // a rule of the DRAM is broken
    VipChipIn m_in = {};
    VipChipOut m_out = {};

    std::vector<std::thread> m_threads;
    Barrier m_barrier;
    std::atomic<uint32_t> m_stretch{0};  // stretches of cycles that the threads share
    uint64_t m_cycles = 0, m_passed = 0;
    uint32_t m_turn = 0;  // cycles of all stretches
    bool m_goes_on[2] = {}, m_ends = false;

    void reset() {
        m_now = 0;
        m_failed = false;
        m_port = std::make_unique<HostPort>(m_map);
        m_data = std::make_unique<HostData>(m_host);
        m_controls.clear();
        m_tiles.clear();
        m_tile_pointers.clear();
        const auto engines = static_cast<uint32_t>(m_sizes.engines);
        for (uint32_t vault = 0; vault < m_network.vaults; ++vault) {
            m_tiles.push_back(std::make_unique<ChipTile>(m_sizes, m_network,
                                                         m_vault ? &*m_vault : nullptr,
                                                         m_axi ? &*m_axi : nullptr, m_lines,
                                                         vault));
            m_tile_pointers.push_back(m_tiles.back().get());
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
        for (std::vector<uint8_t>& busy : m_busy) busy.assign(m_network.vaults, 0);
        for (std::vector<Summary>& summaries : m_summaries)
            summaries.assign(m_network.vaults, Summary{});
    }

    void reset_memory(uint32_t vault) const {
        const auto number = static_cast<int32_t>(vault);
        uint64_t data;
        if (m_vault) {
            vip_dram_cycle(number, 1, 0, 0, 0, 0, 0, 0, 0, &data);
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

    // Whether no access is on its way, or begins.
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

    void tiles(uint32_t first, uint32_t end, uint32_t now) {
        uint8_t* const busy[2] = {m_busy[0].data(), m_busy[1].data()};
        for (uint32_t vault = first; vault < end; ++vault) {
            const Summary before = vault ? m_summaries[now][vault - 1] : Summary{};
            const Summary summary = m_controls[vault]->summarize(before);
            Summary& kept = m_summaries[1 - now][vault];
            if (kept != summary) kept = summary;
            m_tiles[vault]->cycle(m_tile_pointers.data(), busy, now);
            if (m_tiles[vault]->failed) m_failed.store(true, std::memory_order_relaxed);
        }
    }

    // The host's accesses on their way from vault to vault.
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
            reset();
            for (uint32_t vault = 0; vault < m_network.vaults; ++vault) reset_memory(vault);
            m_in = VipChipIn{};
            m_port->drive(m_in);
            m_data->drive(m_in);
            host_cycle();
            return;
        }
        const auto count = static_cast<uint32_t>(m_network.vaults);
        const Summary last = m_summaries[m_now][count - 1];
        m_port->drive(m_in);
        m_data->drive(m_in);
        messages(last);
        m_port->interrupts(last);
        m_data->look();
        for (const auto& place : m_places) place->look();
        tiles(0, count, m_now);
        if (!m_places.empty()) along_places();
        m_data->edge(m_out);
        // What a message does to an engine is seen in the next cycle.
        for (const Order& order : m_orders)
            if (!m_broken) obey(order);
        m_orders.clear();
        m_now = 1 - m_now;
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
        m_tiles[vault]->launch(slot, std::make_unique<PeModel>(*launched.sizes, *launched.engine,
                                                               launched.buffer));
    }

    // As `cycle`, while time passes without accesses of the host, on all threads. Returns the
    // cycles that passed, at least one.
    uint64_t run_quiet(uint64_t cycles) {
        m_passed = 0;
        m_cycles = cycles;
        m_begin = m_now;
        m_stretch.fetch_add(1, std::memory_order_seq_cst);
        m_stretch.notify_all();
        work(0, m_turn);
        return m_passed;
    }

    // A thread's part of that. `turn`: its cycles so far, in all stretches: a thread may look at what
    // it has missed while the first one is in the next cycle.
    void work(uint32_t thread, uint32_t& turn) {
        const auto count = static_cast<uint32_t>(m_network.vaults);
        const auto threads = static_cast<uint32_t>(m_sizes.threads);
        const uint32_t first = thread * count / threads, end = (thread + 1) * count / threads;
        for (uint32_t now = m_begin;; now = 1 - now) {
            bool& goes_on = m_goes_on[++turn % 2];
            // Nothing that the tiles do in a cycle reaches the host in it.
            if (!thread) {
                m_port->drive(m_in);
                m_data->drive(m_in);
                m_port->interrupts(m_summaries[now][count - 1]);
                host_cycle();
                m_now = 1 - now;
                goes_on = ++m_passed != m_cycles && !m_out.idle && !accesses();
            }
            tiles(first, end, now);
            m_barrier.wait();
            if (!goes_on) return;
        }
    }

    // A thread beside the first: a part of each stretch.
    void follow(uint32_t thread) {
        uint32_t turn = 0;
        for (uint32_t stretch = 0;; ++stretch) {
            m_stretch.wait(stretch, std::memory_order_acquire);
            if (m_ends) return;
            work(thread, turn);
        }
    }
};

}  // namespace

extern "C" {

void* vip_timed_chip_new(const ChipSizes* sizes, const NetworkSizes* network,
                         const VaultSizes* vault, const AxiSizes* axi, const LineSizes* lines,
                         const HostSizes* host, const RegisterMap* map, Launcher launcher) {
    return new Chip(*sizes, *network, vault, axi, *lines, *host, *map, launcher);
}

bool vip_timed_chip_run(void* chip, uint64_t cycles) { return static_cast<Chip*>(chip)->run(cycles); }

void vip_timed_chip_end(void* chip) { delete static_cast<Chip*>(chip); }

}  // extern "C"
