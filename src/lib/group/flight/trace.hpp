// The steps that the collectives of a group have executed, if its user asked for that: Group::trace().
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <col/group.hpp>

#include "group/flight/pending.hpp"

namespace col::group {

class Trace {
 public:
  void record(bool on);
  bool is_on() const { return on_; }
  std::vector<TraceEntry> take();
  // For a collective that has ended: the steps of its plan, or one entry for a native one.
  void add(Pending& ended) {
    if (on_ || !ended.run.executed.empty()) add_steps(ended);
  }
  void add(std::uint64_t sequence, Collective collective, std::string_view algorithm);

 private:
  void add_steps(Pending& ended);
  std::string_view kept(const std::string& algorithm) { return *names_.insert(algorithm).first; }

  bool on_ = false;
  std::vector<TraceEntry> entries_;
  std::set<std::string, std::less<>> names_;  // of the algorithms in the entries
};

}  // namespace col::group
