// Which backend serves a group, by name and by where its ranks are: all ranks come to the same.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <col/channel.hpp>

namespace col::group {

// The backend of that name, ready to use. Otherwise throws `unavailable`, which says why and which backends there are.
BackendFactory& usable_backend(std::string_view name, const std::string& group);
bool is_usable(std::string_view name);

// Where ranks are on several hosts and two of them share one, these share memory, and a wire is for the others: hosts
// with Gloo as the wire, and hosts_ucx with UCX.
bool is_wire(std::string_view name);

// What serves ranks on the hosts of `peers`, of what `usable` says yes to.
//   automatic              shm on one host; hosts, or gloo if no two ranks share a host
//   hosts, hosts_ucx       the same with their wire
//   gloo, ucx              nothing else; but where `names_wire`, on several hosts as by hosts and hosts_ucx
//   others                 nothing else
std::string_view fitting_backend(std::string_view wanted, bool names_wire, std::span<const PeerInfo> peers,
                                 const std::function<bool(std::string_view name)>& usable = is_usable);

}  // namespace col::group
