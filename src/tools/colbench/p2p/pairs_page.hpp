// The heat maps of `colbench pairs` as a page that needs no network.
#pragma once

#include <span>
#include <string>

#include "colbench/p2p/heat_map.hpp"

namespace col::colbench {

// `sentences`: what stands out, one on each line. Pure.
std::string pairs_page(const Results& results, std::span<const HeatMap> maps, const std::string& sentences);

}  // namespace col::colbench
