// The command line of colcheck.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <col/types.hpp>

#include "colcheck/engine/case.hpp"
#include "colcheck/properties/list.hpp"
#include "common/command_line.hpp"

namespace col::colcheck {

struct Options {
  enum class Device : std::uint8_t { all, cpu, cuda };

  Effort effort = Effort::quick;
  Duration soak = {};                      // --soak: for how long; zero: the cases once
  std::vector<std::string> backends = {};  // empty: all
  std::vector<std::string> require = {};   // backends and devices
  Device device = Device::all;
  std::optional<std::vector<int>> ranks = {};     // ascending; not given: default_ranks(effort)
  std::vector<std::string> only = {}, skip = {};  // names of properties
  std::vector<std::string> algorithms = {};       // in the right form, but see unknown_algorithms()
  std::optional<std::uint64_t> seed = {};         // not given: a new one
  std::optional<Case> repro = {};
  std::string junit = {}, json = {}, html = {};  // paths; empty: no such report
  bool faults = false;
  std::string fault_start = {};  // the program that starts ranks of drills; see start_ranks_by()
  bool self_test = false;
  Duration timeout = std::chrono::seconds(20);  // of one call
  bool verbose = false;
  bool progress = true;
  std::string spawned = {};  // the text for ranks that colcheck starts itself
};

using tools::UsageError;

// What to do: check, or print a text (--help, --version, --list) and end.
using Request = std::variant<Options, std::string>;

// Throws UsageError. Uses nothing except its arguments. `known` are all existing properties.
Request parse_command_line(const std::vector<std::string>& arguments,
                           std::span<const Property* const> known = properties());

// The properties that --only, --skip and --faults leave, in the order of `known`.
std::vector<const Property*> chosen_properties(const Options& options,
                                               std::span<const Property* const> known = properties());

// 1 to 9; full: also 16.
std::vector<int> default_ranks(const Options& options);

// The names in --algo that are neither a built-in algorithm nor one of the natives (as in Selection), for any
// collective.
std::vector<std::string> unknown_algorithms(const Options& options, const decltype(Selection::natives)& natives);
// Throws UsageError that names the first of them and says what to write instead.
void check_algorithms(const Options& options, const decltype(Selection::natives)& natives);

// Throws UsageError if a report could not be written to its path. Does not change what is there. For a FIFO or a
// device, it only checks the permission to write.
void check_report_paths(const Options& options);

}  // namespace col::colcheck
