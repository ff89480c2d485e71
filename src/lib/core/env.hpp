// Every variable that the library reads, in four tables: its own, those of other launchers, NCCL's and UCX's. The
// only getenv of the library is here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <col/types.hpp>

#include "core/duration.hpp"

namespace col::core::env {

struct Variable {
  std::string_view name;
  std::string_view values;    // "integer >= 0", "path", "warn | info | debug"
  std::string_view fallback;  // the effect of an unset variable, in words
  std::string_view meaning;
  bool set_by_colrun;
};

// In the order of docs/environment.md.
std::span<const Variable> table() noexcept;

// A variable that another launcher sets for each process, or that its users may set.
struct LauncherVariable {
  std::string_view name;
  std::string_view launcher;
  std::string_view meaning;
};
std::span<const LauncherVariable> launcher_table() noexcept;

// The text of docs/environment.md. A test keeps the file equal to it.
std::string markdown();

// One sentence for each set variable whose name is almost, but not exactly, the name of one of col's variables.
std::vector<std::string> misspelt();

// The value; nothing if the variable is unset or empty. Requires: `name` is in a table; otherwise throws an Error of
// code internal.
std::optional<std::string> get(std::string_view name);
// The same as a whole number in [least, most]. Any other value is invalid_argument, which names the variable, its value
// and the range.
std::optional<std::int64_t> get_int(std::string_view name, std::int64_t least, std::int64_t most);
// What get_int returns for a value that was read before.
std::int64_t parse_int(std::string_view name, std::string_view text, std::int64_t least, std::int64_t most);
// "30s", "500ms", "5m", "2h", or plain seconds ("30", "0.5"); must be above zero. invalid_argument otherwise.
std::optional<Duration> get_duration(std::string_view name);

// Parses what get_duration takes; nothing when malformed.
using core::parse_duration;

}  // namespace col::core::env
