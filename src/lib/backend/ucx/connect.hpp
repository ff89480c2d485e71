// How the ranks of a group meet in the store. Three calls a rank: its record, its place in the count of those that have
// entered, and the wait for the word that all have. The last one reads all records, and says with that word from where
// ranks may connect. What a rank needs of a peer, it reads when it first needs it.
#pragma once

#include <memory>
#include <string_view>

#include <col/channel.hpp>

#include "backend/module.hpp"
#include "backend/ucx/engine.hpp"

namespace col::ucx_backend {

// The backend that watches the hosts.
inline constexpr std::string_view kWatch = "gloo";

struct Meeting {
  std::unique_ptr<Engine> engine;
  // All ranks are to watch the hosts of the others, over a channel of Gloo's (docs/decisions/0029-heartbeat.md): no
  // rank has a launcher that does, and all have Gloo.
  bool is_watched = false;
};
// Blocking; see BackendFactory::connect(). A rank that fails leaves its reason in place of the word, so that all report
// the same cause at once.
Meeting meet(const ConnectRequest& request, WaitContext& wait, const backend::Module::Environment& environment);

// The rank leaves in good order: nobody can connect to it any more. The last one removes what is left in the store.
// Never fails: a store that has gone has nothing left.
void leave(Store& store, int rank, int size) noexcept;

}  // namespace col::ucx_backend
