// The cosimulation's requesters around the timing model of a vault's memory instead of its Verilog.
// See sim_tb/timed/vault/traffic_model.py.

#include <memory>
#include <vector>

#include "../../memory/model/dram.cpp"
#include "../timed/vault/banks.cpp"
#include "../timed/vault/controller.cpp"
#include "../timed/vault/crossbar.h"
#include "vip_requester.h"
#include "vip_traffic.h"

namespace {

using namespace vip::timed;

constexpr int32_t kHost = 0, kDevice = 0;

class ModelledVault {
  public:
    // `requesters` at a crossbar; 0: one at the controller.
    ModelledVault(const VaultSizes& sizes, uint32_t requesters, uint32_t tags)
        : m_sizes(sizes), m_ports(requesters ? requesters : 1), m_tags(tags), m_joined(requesters) {
        reset();
    }

    // Runs until the host is idle, for at most `cycles`. Returns whether it is idle.
    bool run(uint64_t cycles) {
        do cycle();
        while (!m_host_out.idle && --cycles);
        return m_host_out.idle;
    }

  private:
    const VaultSizes m_sizes;
    const uint32_t m_ports, m_tags;
    const bool m_joined;
    std::unique_ptr<Controller> m_controller;
    std::unique_ptr<Crossbar> m_crossbar;
    uint64_t m_read_data = 0;

    VipTrafficIn m_host_in = {};
    VipTrafficOut m_host_out = {};
    uint32_t m_index = 0;  // of the counter that is read
    std::vector<VipRequesterIn> m_in = std::vector<VipRequesterIn>(m_ports);
    std::vector<VipRequesterOut> m_out = std::vector<VipRequesterOut>(m_ports);

    void reset() {
        auto controller = std::make_unique<Controller>(m_sizes);
        if (m_controller) controller->keep_heads(*m_controller);
        m_controller = std::move(controller);
        m_crossbar = std::make_unique<Crossbar>(m_ports);
        vip_dram_cycle(kDevice, 1, 0, 0, 0, 0, 0, 0, 0, &m_read_data);
    }

    static void answer(VipRequesterIn& port, const ResponseBeat& beat) {
        port.response_valid = true;
        port.response_data = beat.data;
        port.response_tag = beat.tag;
        port.response_last = beat.last;
        port.response_error = beat.error;
    }

    Crossbar::Beat offered(uint32_t number) const {
        const VipRequesterOut& port = m_out[number];
        return {{.address = port.request_address,
                 .data = port.request_data,
                 .tag = port.request_tag,
                 .words = port.request_words,
                 .strobe = port.request_strobe,
                 .write = static_cast<bool>(port.request_write),
                 .last = static_cast<bool>(port.request_last)},
                number};
    }

    void access(const Crossbar::Beat* beat, bool taken) {
        const DramSignals dram = m_controller->dram();
        m_controller->cycle(beat ? &beat->beat : nullptr, beat ? beat->source : 0, taken,
                            m_read_data);
        m_host_in.failed =
            vip_dram_cycle(kDevice, 0, dram.valid, dram.kind, dram.bank, dram.row, dram.column,
                           dram.write_data, dram.write_strobe, &m_read_data);
    }

    void alone() {
        const Crossbar::Beat beat = offered(0);
        if (m_controller->response_valid()) answer(m_in[0], m_controller->response());
        access(m_out[0].request_valid ? &beat : nullptr, m_out[0].response_ready);
        m_in[0].request_ready = m_controller->accepted;
    }

    void joined() {
        uint64_t requests = 0, took = 0;
        for (uint32_t number = 0; number < m_ports; ++number) {
            requests |= uint64_t{m_out[number].request_valid != 0} << number;
            const ResponseBeat* beat = m_crossbar->response(number);
            if (beat) answer(m_in[number], *beat);
            took |= uint64_t{beat && m_out[number].response_ready} << number;
        }
        const int selected = m_crossbar->selected(requests);
        const bool passes = selected >= 0 && requests >> selected & 1;
        const Crossbar::Beat beat = passes ? offered(static_cast<uint32_t>(selected))
                                           : Crossbar::Beat{};
        if (passes) m_in[selected].request_ready = true;
        const bool answers = m_controller->response_valid();
        const ResponseBeat response = m_controller->response();
        const Crossbar::Beat* asked = m_crossbar->request();
        access(asked, answers && m_crossbar->takes(response));
        m_crossbar->edge(passes ? &beat : nullptr, m_controller->accepted,
                         answers ? &response : nullptr, took);
    }

    void cycle() {
        for (VipRequesterIn& port : m_in) {
            port = {};
            port.reset = m_host_out.reset;
            port.tags = m_tags;
        }
        const uint32_t index = m_index;
        m_index = m_host_out.counter_index;
        m_host_in.counter_value = index < kVaultCounters ? m_controller->counters[index] : 0;
        if (m_host_out.reset) {
            m_host_in.failed = false;
            reset();
        } else if (m_joined) {
            joined();
        } else {
            alone();
        }
        VipTrafficOut host = {};
        vip_traffic_cycle(kHost, &m_host_in, &host);
        m_host_out = host;
        for (uint32_t number = 0; number < m_ports; ++number) {
            m_out[number] = {};
            vip_requester_cycle(static_cast<int32_t>(number), &m_in[number], &m_out[number]);
        }
    }
};

}  // namespace

extern "C" {

void* vip_modelled_vault_new(const VaultSizes* sizes, uint32_t requesters, uint32_t tags) {
    return new ModelledVault(*sizes, requesters, tags);
}

bool vip_modelled_vault_run(void* vault, uint64_t cycles) {
    return static_cast<ModelledVault*>(vault)->run(cycles);
}

void vip_modelled_vault_end(void* vault) { delete static_cast<ModelledVault*>(vault); }

}  // extern "C"
