// How other launchers write what colrun has under another name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace col::colrun {

// `argument` as colrun writes it: "-np" is "--np", "--nproc_per_node=4" is "--nproc-per-node=4". Others are unchanged.
std::string own_spelling(const std::string& argument);

// What to do about an option of another launcher that colrun does not have; nothing when it is not known either.
std::optional<std::string_view> instead_of(std::string_view name);

}  // namespace col::colrun
