// Names that other launchers use for options of colrun.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace col::colrun {

// `argument` in colrun's spelling: "-np" is "--np", "--nproc_per_node=4" is "--nproc-per-node=4". Other arguments are
// unchanged.
std::string own_spelling(const std::string& argument);

// What to do instead of an option of another launcher that colrun does not have; nothing if the option is unknown.
std::optional<std::string_view> instead_of(std::string_view name);

}  // namespace col::colrun
