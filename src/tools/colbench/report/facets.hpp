// What tells one row of a report from another: each facet of a cell, in the short form of a column and in words.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "colbench/cell/results.hpp"

namespace col::colbench {

enum class Facet : std::uint8_t {
  operation,
  algorithm,
  backend,
  device,
  dtype,
  op,
  ranks,
  root,
  size,
  place,
  cadence,
  cache,
  groups,
  pair,
  order
};
inline constexpr std::array kFacets = {Facet::operation, Facet::algorithm, Facet::backend, Facet::device, Facet::dtype,
                                       Facet::op,        Facet::ranks,     Facet::root,    Facet::size,   Facet::place,
                                       Facet::cadence,   Facet::cache,     Facet::groups,  Facet::pair,   Facet::order};

// Whether nobody named the algorithm that ran.
bool was_chosen(const Cell& cell);

// "cuda", "cpu-cuda", and "fake cuda" of stand-ins for GPUs.
std::string device_text(const Cell& cell);

// The cell's value in a column: "in", "32M", "3", "ring"; "-" if it has no meaning. The algorithm is the one that ran;
// "ring*" was the library's choice.
std::string value_of(const Cell& cell, Facet facet);
// The same without a column: "in place", "32M", "3 ranks", "root 0"; empty if it has no meaning.
std::string words_of(const Cell& cell, Facet facet);
// Whether two of the cells differ in it. A cell in which it has no meaning equals all others.
bool varies(std::span<const Cell> cells, Facet facet);
// The words of every facet that all cells share; without "cpu" and "hot caches", which a reader takes for granted, and
// without operation, algorithm and size, which name the rows.
std::vector<std::string> shared_words(std::span<const Cell> cells);

}  // namespace col::colbench
