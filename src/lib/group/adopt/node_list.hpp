// Slurm's lists of hosts: "n1", "n[01-03,7]", "a1,b[2-4]", "rack[1-2]node[1-8]-ib".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace col::group::adopt {

// The first host of `list`; nothing if `list` is not such a list.
std::optional<std::string> first_of_node_list(std::string_view list);

}  // namespace col::group::adopt
