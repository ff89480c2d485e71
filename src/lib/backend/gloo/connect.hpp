// Lets the ranks of a group meet, and find each other later.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <col/request.hpp>

#include "backend/capabilities.hpp"

#include "backend/gloo/transport.hpp"

namespace col::gloo_backend {

// Lets this rank meet all others. Blocking and collective. Ranks form a tree (kinship.hpp): each publishes its address
// in request.store under "address/<rank>", and reads that of its parent, which it calls. The addresses of all go up the
// tree and down again. So all ranks have come when one returns, nobody looks for the keys any more, and they are
// removed. Small groups are connected whole; otherwise, other connections are made when two ranks first talk. A rank
// that fails writes "failed", so that all ranks report the same cause at once.
//
// The two ends of every connection first prove that they know request.token and the secret that the listening rank has
// published with its address (introduction.hpp, lobby.hpp).
//
// Any number of groups may connect at once, also in one process.
std::shared_ptr<Mesh> connect_mesh(const ConnectRequest& request, HeartbeatSpec heartbeat, WaitContext& wait);
// For a rank that cannot even begin: tells the others, which wait for it. Returns the error to throw.
Error refuse_mesh(const ConnectRequest& request, const Error& error, WaitContext& wait);

// Lets ranks meet that another group connects: their words are their addresses, and they need no store. A rank returns
// when it is connected to its parent and children in the tree, or to all in a small group. `old` connects the old
// group, in which the ranks are called `ranks`: it knows if one of them dies meanwhile. Throws as connect_mesh().
std::unique_ptr<backend::Draft> draft_mesh(const ConnectRequest& request, std::span<const int> ranks,
                                           std::shared_ptr<Mesh> old);

}  // namespace col::gloo_backend
