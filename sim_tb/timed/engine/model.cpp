// An engine and a memory, with the same environment as in RTL, in one library. See pe_model.py.

#include "../../models/image.cpp"
#include "../../models/memory_model.cpp"

#include "catch_up.cpp"
#include "flow.cpp"
#include "history.cpp"
#include "load_store.cpp"
#include "pe_model.cpp"
#include "front_end.cpp"

namespace {

using vip::timed::MemoryPort;
using vip::timed::PeModel;
using vip::timed::RequestBeat;
using vip::timed::ResponseBeat;
using vip::timed::Sizes;

// Cycles in which the host launches, after loading the program at one word per cycle.
constexpr uint64_t kLaunchCycles = 2;

struct Run {
    PeModel model;
    Port port;
    uint64_t stop_after;

    void cycle() {
        if (model.cycles() >= stop_after) model.stop();
        const ResponseBeat response = {.data = port.response().data,
                                       .tag = port.response().tag,
                                       .source = 0,
                                       .last = port.response().last,
                                       .error = port.response_error()};
        MemoryPort signals = {};
        signals.request_ready = port.request_ready();
        if (port.response_valid()) signals.response = &response;
        Beat beat;
        const RequestBeat* request = model.request();
        if (request) {
            beat.address = request->address;
            beat.tag = request->tag;
            beat.words = request->words;
            beat.strobe = request->strobe;
            beat.write = request->write;
            beat.last = request->last;
            beat.data = beat.write ? request->data : 0;
        }
        model.cycle(signals);
        port.cycle(request, beat, signals.response_ready);
    }
};

}  // namespace

extern "C" {

// Starts a run, which begins with the launch. The caller owns the structures pointed to.
void* vip_timed_start(const Sizes* sizes, vip::Engine* engine, const vip::timed::Word* buffer,
                      const VipMemoryBehaviour* behaviour, uint64_t stop_after) {
    Run* run = new Run{PeModel(*sizes, *engine, buffer), Port(), stop_after};
    run->port.configure(*behaviour);
    for (uint64_t i = 0; i < sizes->words + kLaunchCycles; ++i)
        run->port.cycle(false, Beat(), true);
    run->model.launch();
    return run;
}

// Runs until `cycles` after the launch. Returns whether the engine still runs.
bool vip_timed_run(void* started, uint64_t cycles) {
    Run& run = *static_cast<Run*>(started);
    while (run.model.running() && run.model.cycles() < cycles && run.port.violation().empty())
        run.cycle();
    return run.model.running() && run.port.violation().empty();
}

void vip_timed_result(void* started, vip::timed::EngineResult* result) {
    *result = static_cast<Run*>(started)->model.result();
}

// The memory port rule that the engine broke, or "". Valid until the end of the run.
const char* vip_timed_violation(const void* started) {
    return static_cast<const Run*>(started)->port.violation().c_str();
}

void vip_timed_end(void* started) { delete static_cast<Run*>(started); }

}  // extern "C"
