// Names of the collectives that an algorithm can be chosen for: all but send and recv.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <col/types.hpp>

namespace col::group {

std::optional<Collective> find_collective(std::string_view name);
// "; did you mean 'allreduce'?", or the list of all: to be put behind a message.
std::string collective_hint(std::string_view misspelt);

}  // namespace col::group
