// How the ranks of a group meet in the store. Three calls a rank: its record, its place in the count of those that have
// entered, and the wait for the word that all have. The last one reads all records, and says with that word from where
// ranks may connect. What a rank needs of a peer, it reads when it first needs it.
#pragma once

#include <memory>

#include <col/backend.hpp>

#include "backend/ucx/engine.hpp"

namespace col::ucx_backend {

// Blocking; see BackendFactory::connect(). A rank that fails leaves its reason in place of the word, so that all report
// the same cause at once.
std::unique_ptr<Engine> meet(const ConnectRequest& request, WaitContext& wait,
                             const BackendModule::Environment& environment);

// The rank leaves in good order: nobody can connect to it any more. The last one removes what is left in the store.
// Never fails: a store that has gone has nothing left.
void leave(Store& store, int rank, int size) noexcept;

}  // namespace col::ucx_backend
