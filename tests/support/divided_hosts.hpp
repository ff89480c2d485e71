// Groups over hosts without hosts: the ranks of one host, threads as well, are told that they are on several.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <col/channel.hpp>

namespace col::test {

// A backend of that name which is `backend` with rank r of a group on the made-up host host_of(r). It is there if
// `backend` can be used.
std::unique_ptr<BackendFactory> make_divided_hosts(std::string name, std::function<int(int rank)> host_of,
                                                   const std::string& backend = "hosts");

// Registers four, once per process: "hosts_of_two" (ranks 0 and 1, 2 and 3, ...), "hosts_in_turn" (even and odd
// ranks), and "hosts_uneven" (rank 0 alone, the others together), with "hosts_uneven_ucx" over UCX.
void register_divided_hosts();

}  // namespace col::test
