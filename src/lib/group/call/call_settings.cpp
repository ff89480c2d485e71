#include "group/call/call_settings.hpp"

#include <string>

#include <fmt/format.h>

#include <col/channel.hpp>

#include "core/env.hpp"
#include "core/joined.hpp"
#include "core/kernels/instructions.hpp"

namespace col::group {
namespace {

// The place of the value of `name` among `words`, 0 when it is unset.
template <std::size_t N>
std::size_t one_of(std::string_view name, const std::string_view (&words)[N]) {
  const auto value = core::env::get(name);
  if (!value) return 0;
  std::string known;
  for (std::size_t i = 0; i < N; ++i) {
    if (*value == words[i]) return i;
    known += fmt::format("{}{}", i == 0 ? "" : ", ", words[i]);
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("{}={} means nothing; use one of {}", name, *value, known));
}

// Whether the enum has a backend of that name.
bool is_public(std::string_view name) {
  try {
    return backend_from_string(name) != Backend::automatic;
  } catch (const Error&) {
    return false;
  }
}

// The name of a backend that this build has, or could have; empty for "automatic".
std::string backend_setting() {
  const std::string name = core::env::get("COL_BACKEND").value_or("automatic");
  if (name == "automatic" || name == "auto") return "";
  if (!is_public(name) && find_backend(name) == nullptr)
    throw Error(ErrorCode::invalid_argument, fmt::format("COL_BACKEND={} is no backend; use one of automatic, {}", name,
                                                         core::joined(backend_names(), ", ")));
  return name;
}

}  // namespace

CallSettings CallSettings::from_environment() {
  CallSettings settings;
  if (const auto text = core::env::get("COL_ALGORITHM")) settings.overrides = parse_overrides(*text);
  if (const auto path = core::env::get("COL_SELECTION")) settings.table = SelectionTable::load(*path);
  settings.numerics = static_cast<Numerics>(one_of("COL_NUMERICS", {"fast", "strict", "deterministic"}));
  settings.order = static_cast<Order>(one_of("COL_ORDER", {"any", "rank", "tree"}));
  if (settings.numerics == Numerics::deterministic && settings.order == Order::tree)
    throw Error(ErrorCode::invalid_argument,
                "COL_NUMERICS=deterministic asks for rank order, and COL_ORDER=tree for another; unset one of them");
  settings.compare_first = one_of("COL_CHECK", {"lazy", "strict"}) == 1;
  settings.progress_thread = one_of("COL_PROGRESS", {"calls", "thread"}) == 1;
  if (const auto text = core::env::get("COL_FAULT")) settings.fault = exec::Fault::parse(*text);
  settings.backend = backend_setting();
  core::chosen_instructions();  // reports a wrong COL_ISA here, and not in the first reduction
  return settings;
}

}  // namespace col::group
