// Sockets of the TCP store: those of net, with the store's words for what goes wrong.
#pragma once

#include <string>

#include "core/unique_fd.hpp"
#include "net/endpoint.hpp"
#include "net/listener.hpp"
#include "store/tcp/patience.hpp"

namespace col::store::tcp {

// "tcp://host:port", for messages too.
std::string url_of(const net::Endpoint& endpoint);

// A connected socket: blocking, with Patience::kLongestSlice as its timeout, and close-on-exec. It tries again until
// `patience` ends, because the server, or the name of its host, may not exist yet. With `once`, every address is tried
// once, and a failure throws io. It blocks longer only in the resolver, as long as the resolver's configuration allows.
// Errors: those of Patience; resource.
core::UniqueFd connect_to(const net::Endpoint& endpoint, Patience& patience, bool once);

// Listens at listen_addresses(host); port 0: one that the kernel chooses. Throws io or resource.
net::Listener listen_on(const std::string& host, int port);

}  // namespace col::store::tcp
