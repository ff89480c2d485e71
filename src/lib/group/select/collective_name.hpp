// Names of the collectives for which an algorithm can be chosen: all except send and recv.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <col/types.hpp>

namespace col::group {

std::optional<Collective> find_collective(std::string_view name);
// "; did you mean 'allreduce'?", or the list of all names: the end of a message.
std::string collective_hint(std::string_view misspelt);

}  // namespace col::group
