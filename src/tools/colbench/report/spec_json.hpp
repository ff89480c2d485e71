// What a row measures, as a member of JSON documents.
#pragma once

#include <nlohmann/json.hpp>

#include "colbench/cell.hpp"

namespace col::colbench {

// The members of "spec" in report/json.hpp. Pure.
nlohmann::ordered_json json_of_spec(const CellSpec& spec);

}  // namespace col::colbench
