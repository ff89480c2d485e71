// Addresses of sockets: from a name, and in digits.
#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <memory>
#include <string>

#include "core/export/module_export.hpp"

namespace col::net {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;
// The resolver's answer for `host` (all interfaces if it is empty) with these flags. Null if there is none; `why` then
// has the reason. Blocks as long as the resolver's configuration allows.
COL_MODULE_EXPORT Addresses resolve(const std::string& host, int port, int flags, std::string& why);

// An address in digits; that of IPv4 as such, also where a socket takes both kinds. Empty if it is none.
COL_MODULE_EXPORT std::string numeric_address(const sockaddr* address, socklen_t size);
// The address at the other end of a connected socket, in digits; "somewhere" if the other end has left.
COL_MODULE_EXPORT std::string numeric_peer(int fd);
// 0 if it has none.
COL_MODULE_EXPORT int port_of(const sockaddr* address) noexcept;
// The name of this host with its domain, as the name service knows it; `name` if it knows no more, or an alias.
COL_MODULE_EXPORT std::string full_host_name(const std::string& name);

}  // namespace col::net
