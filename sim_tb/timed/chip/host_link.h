// The host's side of the memory port that a tile has for it.
#pragma once

#include <optional>

#include "../engine/load_store.h"

namespace vip::timed {

class HostLink {
  public:
    // Of this cycle: the request that is offered, or null; whether a response is taken.
    const RequestBeat* request = nullptr;
    virtual bool takes(const ResponseBeat& response) = 0;
    // What the tile says: whether the request is taken; the response that was.
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
