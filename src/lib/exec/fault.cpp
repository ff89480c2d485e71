#include "exec/fault.hpp"

#include <unistd.h>
#include <csignal>

#include <charconv>
#include <limits>

#include <fmt/format.h>

#include <col/error.hpp>

#include "core/clock/clock.hpp"

namespace col::exec {
namespace {

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("COL_FAULT={}: {}; the form is kill|stop|exit|delay:rank=R[,op=N][,step=N][,group=NAME]"
                          "[,ms=N][,code=N], for example kill:rank=2,op=17,step=3, or start:op=N[,group=NAME]",
                          text, why));
}

std::int64_t number(std::string_view text, std::string_view key, std::string_view value,
                    std::int64_t most = 1'000'000'000) {
  std::int64_t result = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (error != std::errc() || end != value.data() + value.size() || result < 0 || result > most)
    refuse(text, fmt::format("{} must be a whole number, not '{}'", key, value));
  return result;
}

Fault::Kind kind_of(std::string_view text, std::string_view name) {
  if (name == "kill") return Fault::Kind::kill;
  if (name == "stop") return Fault::Kind::stop;
  if (name == "exit") return Fault::Kind::exit;
  if (name == "delay") return Fault::Kind::delay;
  if (name == "start") return Fault::Kind::start;
  refuse(text, fmt::format("there is no fault '{}'", name));
}

}  // namespace

Fault Fault::parse(std::string_view text) {
  const std::size_t colon = text.find(':');
  Fault fault;
  fault.kind = kind_of(text, text.substr(0, colon));
  bool aimed = false;
  std::string_view rest = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) refuse(text, fmt::format("'{}' has no value", item));
    const std::string_view key = item.substr(0, equals);
    const std::string_view value = item.substr(equals + 1);
    if (key == "group") {
      fault.group = value;
    } else if (key == "op" && fault.kind == Kind::start) {
      fault.op = static_cast<std::uint64_t>(number(text, key, value, std::numeric_limits<std::int64_t>::max()));
      if (fault.op == 0) refuse(text, "collectives are counted from 1");
      aimed = true;
    } else if (fault.kind == Kind::start) {
      refuse(text, fmt::format("'{}' means nothing here", key));
    } else if (key == "rank") {
      fault.rank = static_cast<int>(number(text, key, value));
      aimed = true;
    } else if (key == "op") {
      fault.op = static_cast<std::uint64_t>(number(text, key, value));
    } else if (key == "step") {
      fault.step = static_cast<int>(number(text, key, value));
    } else if (key == "ms" && fault.kind == Kind::delay) {
      fault.delay = std::chrono::milliseconds(number(text, key, value));
    } else if (key == "code" && fault.kind == Kind::exit) {
      fault.exit_code = static_cast<int>(number(text, key, value));
    } else {
      refuse(text, fmt::format("'{}' means nothing here", key));
    }
  }
  if (!aimed) refuse(text, fault.kind == Kind::start ? "it does not say op=N" : "it does not say which rank");
  if (fault.kind == Kind::delay && fault.delay == Duration::zero()) refuse(text, "a delay needs ms=N");
  return fault;
}

const Fault* FaultHook::meant(const std::optional<Fault>& fault, int rank, std::string_view group) noexcept {
  const bool everybody = fault && fault->kind == Fault::Kind::start;
  const bool ours = fault && (everybody || fault->rank == rank) && (fault->group.empty() || fault->group == group);
  return ours ? &*fault : nullptr;
}

void FaultHook::strike(const Fault& fault) {
  switch (fault.kind) {
    case Fault::Kind::kill:
      ::kill(getpid(), SIGKILL);
      break;
    case Fault::Kind::stop:
      ::kill(getpid(), SIGSTOP);
      break;
    case Fault::Kind::exit:
      ::_exit(fault.exit_code);
    case Fault::Kind::delay:
      core::sleep_for(fault.delay);
      break;
    case Fault::Kind::start:
      break;  // has had its effect when the group was made
  }
}

}  // namespace col::exec
