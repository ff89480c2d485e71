// Deliberate faults, for drills: COL_FAULT=kill:rank=2,op=17,step=3.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <col/types.hpp>

namespace col::exec {

// What should happen to one rank, once; for `start`, to all ranks.
struct Fault {
  enum class Kind { kill, stop, exit, delay, start };
  Kind kind = Kind::kill;
  int rank = 0;  // rank in the job
  // number of the collective in the group, counted from 1; Kind::start: the number of the first one
  std::uint64_t op = 1;
  int step = 0;            // number of the step of its plan on that rank, counted from 0
  std::string group = {};  // empty: any
  Duration delay = {};     // of Kind::delay
  int exit_code = 1;       // of Kind::exit

  // "kill:rank=2,op=17,step=3", "delay:rank=1,ms=200", "exit:rank=0,code=7", "start:op=4294967290", each optionally
  // with group=NAME. Throws invalid_argument that says what is wrong and what form is expected.
  static Fault parse(std::string_view text);
};

// The steps of one collective on one rank pass it. It strikes at the chosen step.
class FaultHook {
 public:
  // Null if `fault` is not for this rank and group.
  static const Fault* meant(const std::optional<Fault>& fault, int rank, std::string_view group) noexcept;

  // How many collectives a group has counted before its first one: none, unless it should start higher.
  static std::uint64_t counted_before(const Fault* fault) noexcept {
    return fault != nullptr && fault->kind == Fault::Kind::start ? fault->op - 1 : 0;
  }

  // Called before step number `step` of collective number `op`.
  static void pass(const Fault* fault, std::uint64_t op, int step) {
    if (fault != nullptr && fault->op == op && fault->step == step) strike(*fault);
  }

 private:
  static void strike(const Fault& fault);
};

}  // namespace col::exec
