// The host's side of a tile's memory port for the host.
#pragma once

#include <optional>

#include "../engine/load_store.h"

namespace vip::timed {

class HostLink {
  public:
    // The request offered in this cycle, or null; whether a response is accepted.
    const RequestBeat* request = nullptr;
    virtual bool takes(const ResponseBeat& response) = 0;
    // Set by the tile: whether the request is accepted; the response that was.
    bool taken = false;
    std::optional<ResponseBeat> response;

  protected:
    ~HostLink() = default;

    void begin(const RequestBeat* offered) {
        request = offered;
        taken = false;
        response.reset();
    }
};

}  // namespace vip::timed
