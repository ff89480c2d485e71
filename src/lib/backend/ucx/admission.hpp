// Who may connect to a listening socket, as the kernel decides it.
//
// UCX believes whoever connects to it over TCP: a process that speaks its protocol can send it what only a peer should,
// and may write into the memory of this one. UCX has no proof of its own and no place for one of ours. So its listeners
// hear only the hosts of the group.
#pragma once

#include <string>
#include <vector>

namespace col::ucx_backend {

// From now on, the kernel drops what comes to `listener`, and to the connections that it will accept, from any address
// that is not one of `hosts` (in digits). Returns whether it could be arranged.
bool admit_only(int listener, const std::vector<std::string>& hosts) noexcept;

}  // namespace col::ucx_backend
