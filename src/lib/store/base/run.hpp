// Several calls of a store in one trip to it.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <col/job.hpp>
#include <col/store.hpp>

#include "core/export/module_export.hpp"

namespace col::store {

struct Call {
  enum class Kind { set, get, wait, compare_set, erase };
  Kind kind = Kind::get;
  std::string key = {};
  std::string value = {};                    // set, compare_set: what is desired
  std::optional<std::string> expected = {};  // compare_set
  // get, wait: the value. compare_set: the value from before. erase: an empty text if the key was set.
  std::optional<std::string> answer = {};

  static Call set(std::string_view key, std::string value) {
    return {.kind = Kind::set, .key = std::string(key), .value = std::move(value)};
  }
  static Call get(std::string_view key) { return {.kind = Kind::get, .key = std::string(key)}; }
  static Call wait(std::string_view key) { return {.kind = Kind::wait, .key = std::string(key)}; }
  static Call erase(std::string_view key) { return {.kind = Kind::erase, .key = std::string(key)}; }
  static Call compare_set(std::string_view key, std::optional<std::string> expected, std::string desired) {
    return {.kind = Kind::compare_set,
            .key = std::string(key),
            .value = std::move(desired),
            .expected = std::move(expected)};
  }
};

// Told of each call that has its answer. If it returns false, run() returns, and calls that still wait are given up.
using Answered = std::function<bool(std::size_t index)>;

// Makes the calls in their order, and does not wait for one answer before it asks for the next. A call that waits holds
// up none of the others. The answers come in any order, and run() returns when all are there. It does not describe the
// wait. A call that fails ends it: then nobody knows which of the others have been made, except those with an answer.
// Meant for small values.
COL_MODULE_EXPORT void run(Store& store, std::span<Call> calls, WaitContext& wait, const Answered& answered = {});

// A store that can do so in one trip, whatever the number of calls. In another, run() makes one call after the other.
class RunExtension {
 public:
  virtual ~RunExtension() = default;
  virtual void run(std::span<Call> calls, WaitContext& wait, const Answered& answered) = 0;
};

}  // namespace col::store
