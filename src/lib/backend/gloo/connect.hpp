// Makes the connections of one rank to all others of its group.
#pragma once

#include <memory>

#include <col/backend.hpp>

#include "backend/gloo/transport.hpp"

namespace col::gloo_backend {

// Connects this rank to all others. Blocking and collective. Ranks find each other through request.store. The key
// "address/<rank>" is removed when the mesh is complete. A rank that fails writes "failed" before it closes its
// connections, so that all ranks report the same cause at once.
//
// Gloo has no handshake: it accepts the first process that connects to a rank's port as the peer. So the two ends of
// every connection first prove that they know request.token and the secret that the listening rank has published with
// its address (introduction.hpp). A stranger is dropped and logged once, and the rank goes on listening.
//
// Any number of groups may connect at once, also in one process.
std::shared_ptr<Mesh> connect_mesh(const ConnectRequest& request, WaitContext& wait);

}  // namespace col::gloo_backend
