// Engines, crossbar, controller and DRAM of a vault in one library. See vault_model.py.

#include <memory>

#include "../../models/trace_word.h"

#include "../engine/catch_up.cpp"
#include "../engine/flow.cpp"
#include "../engine/history.cpp"
#include "../engine/load_store.cpp"
#include "../engine/pe_model.cpp"
#include "../engine/front_end.cpp"
#include "banks.cpp"
#include "controller.cpp"
#include "crossbar.h"
#include "../../../memory/model/dram.cpp"
#include "line_buffer.cpp"

namespace {

using namespace vip::timed;

constexpr int32_t kDevice = 0;

// State of a recording: whether a request is offered or some of its beats have been accepted; cycles
// since the last beat was accepted, and until this one was offered.
struct Traced {
    bool offered = false, within = false;
    uint64_t idle = 0, gap = 0;
};

struct Tile {
    std::vector<std::unique_ptr<PeModel>> engines;
    Crossbar crossbar;
    const VaultSizes sizes;
    Controller controller{sizes};
    vip::Dram& device = vip::dram_device(kDevice);
    std::optional<LineBuffer> lines;
    uint64_t window_bits;  // of an engine's addresses; 64: no window
    uint64_t read_data = 0;
    uint64_t before[kVaultCounters] = {};

    bool running() const {
        for (const auto& engine : engines)
            if (engine->running()) return true;
        return false;
    }

    // Record of a request of engine 0 accepted in this cycle, or 0.
    uint64_t traced(Traced& state) const {
        const RequestBeat* beat = engines[0]->request();
        if (beat && !state.offered) state.offered = true, state.gap = state.idle;
        ++state.idle;
        if (!beat || crossbar.selected(1) != 0) return 0;
        const bool first = !state.within;
        state.offered = false;
        state.within = !beat->last;
        state.idle = 0;
        if (!first) return 0;
        return vip::trace_word({.address = beat->address,
                                .gap = state.gap,
                                .words = beat->words + 1,
                                .write = beat->write});
    }

    void cycle() {
        uint64_t requests = 0, took = 0;
        for (size_t number = 0; number < engines.size(); ++number)
            requests |= uint64_t{engines[number]->request() != nullptr} << number;
        const int selected = crossbar.selected(requests);
        const uint64_t answered = crossbar.answered();
        Crossbar::Beat beat;
        const bool passes = selected >= 0 && requests >> selected & 1;
        if (passes) {
            beat = {*engines[selected]->request(), static_cast<uint32_t>(selected)};
            if (window_bits < 64) beat.beat.address |= static_cast<uint64_t>(selected) << window_bits;
        }
        for (size_t number = 0; number < engines.size(); ++number) {
            if (!(answered >> number & 1) && engines[number]->rest()) {
                engines[number]->pass(1);
                continue;
            }
            MemoryPort port = {static_cast<int>(number) == selected, crossbar.response(number), false};
            engines[number]->cycle(port);
            took |= uint64_t{port.response_ready} << number;
        }
        const ResponseBeat* const arrival =
            controller.response_valid() ? &controller.response() : nullptr;
        const auto access = [&](const Crossbar::Beat* asked, bool taken) {
            const DramSignals dram = controller.dram();
            controller.cycle(asked ? &asked->beat : nullptr, asked ? asked->source : 0, taken,
                             read_data);
            read_data = device.cycle(dram.valid, dram.kind, dram.bank, dram.row, dram.column,
                                     dram.write_data, dram.write_strobe);
            return controller.accepted;
        };
        const Passage passage =
            pass(lines, crossbar, arrival, controller.counters, access);
        crossbar.edge(passes ? &beat : nullptr, passage.took, passage.answer, took);
    }
};

}  // namespace

extern "C" {

// Starts engines with their launch, one for each of `engine`, on device 0, which is open.
void* vip_tile_start(const Sizes* sizes, const VaultSizes* vault, const LineSizes* lines,
                     vip::Engine* const* states, uint64_t engines, const Word* buffer,
                     uint64_t window_bits, uint32_t window) {
    Tile* tile = new Tile{.engines = {},
                          .crossbar = Crossbar(engines),
                          .sizes = *vault,
                          .lines = {},
                          .window_bits = window_bits};
    if (lines->lines) tile->lines.emplace(*lines);
    for (uint64_t number = 0; number < engines; ++number)
        tile->engines.push_back(std::make_unique<PeModel>(*sizes, *states[number], buffer));
    // The hosts load the program at one word per cycle, then launch.
    for (uint64_t i = 0; i < sizes->words; ++i) tile->cycle();
    vip_dram_record(kDevice, window);
    tile->cycle();
    for (const auto& engine : tile->engines) engine->launch();
    std::memcpy(tile->before, tile->controller.counters, sizeof tile->before);
    return tile;
}

// Runs for `cycles`, or until the last engine ends. Returns whether any still runs.
bool vip_tile_run(void* started, uint64_t cycles) {
    Tile& tile = *static_cast<Tile*>(started);
    for (; cycles && tile.running(); --cycles) tile.cycle();
    return tile.running();
}

// Runs for `cycles`, or until the only engine ends or `requests` is full. Returns how many it has.
uint64_t vip_tile_trace(void* started, uint64_t cycles, uint64_t* requests, uint64_t room) {
    Tile& tile = *static_cast<Tile*>(started);
    Traced state;
    uint64_t found = 0;
    for (; cycles && found < room && tile.running(); --cycles) {
        requests[found] = tile.traced(state);
        found += requests[found] != 0;
        tile.cycle();
    }
    return found;
}

// Runs for `cycles`, whether or not engines run.
void vip_tile_idle(void* started, uint64_t cycles) {
    while (cycles--) static_cast<Tile*>(started)->cycle();
}

void vip_tile_counters(const void* started, uint64_t* counters) {
    const Tile& tile = *static_cast<const Tile*>(started);
    for (uint32_t i = 0; i < kVaultCounters; ++i)
        counters[i] = tile.controller.counters[i] - tile.before[i];
}

void vip_tile_engine(void* started, uint64_t number, EngineResult* result) {
    *result = static_cast<Tile*>(started)->engines[number]->result();
}

void vip_tile_end(void* started) { delete static_cast<Tile*>(started); }

}  // extern "C"
