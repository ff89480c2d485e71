// The command line that all programs of the contest take.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "cell.hpp"
#include "start_line.hpp"

namespace contest {

struct Options {
  struct Asked {
    Operation operation = Operation::barrier;
    std::size_t bytes = 0;
  };
  std::vector<Asked> cells;
  double seconds = 0.1;       // measured per cell, if that gives samples enough
  double most_seconds = 0.2;  // after which fewer samples will do
  StartLine::Place start_line;
  std::string wire;  // the interface whose bytes are counted; empty: none
};

// Throws std::invalid_argument when it is not set.
inline std::string from_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) throw std::invalid_argument(std::string(name) + " is not set: start this with run.py");
  return text;
}

namespace detail {

inline std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

inline Options::Asked parse_cell(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto operation = operation_from_string(text.substr(0, colon));
  if (!operation || colon == std::string::npos)
    throw std::invalid_argument("'" + text + "' is no cell: write it as allreduce:1024");
  return {*operation, std::stoull(text.substr(colon + 1))};
}

}  // namespace detail

inline std::size_t largest(const Options& options) {
  std::size_t most = 0;
  for (const auto& cell : options.cells) most = std::max(most, cell.bytes);
  return most;
}

// Throws std::invalid_argument that says what is wrong.
inline Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--cells") {
      for (const std::string& word : detail::split(value)) options.cells.push_back(detail::parse_cell(word));
    } else if (name == "--seconds") {
      options.seconds = std::stod(value);
    } else if (name == "--most-seconds") {
      options.most_seconds = std::stod(value);
    } else {
      throw std::invalid_argument("what is '" + name + "'?");
    }
  }
  if (argc % 2 == 0 || options.cells.empty())
    throw std::invalid_argument("usage: --cells OPERATION:BYTES,… [--seconds S] [--most-seconds S]");
  options.start_line.path = from_environment("CONTEST_START_LINE");
  options.start_line.processors = std::stoi(from_environment("CONTEST_PROCESSORS"));
  if (const char* wire = std::getenv("CONTEST_WIRE")) options.wire = wire;
  return options;
}

}  // namespace contest
