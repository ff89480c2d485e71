// The properties of the library that colcheck checks. Each is defined in properties/, or is a row of faults/drills.cpp,
// and listed in properties/list.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <col/group.hpp>

#include "colcheck/engine/case.hpp"

namespace col::colcheck {

enum class Effort : std::uint8_t {
  quick,  // all cases of all properties together: a few thousand, in ten seconds on two cores
  full,   // in five minutes
};

// What a property checks if there are GPUs.
enum class OnGpus : std::uint8_t {
  nothing,  // it is not about data, or its data is on the host for every backend
  results,  // its buffers are on the host, but groups over NCCL compute on GPUs, and their results are checked
  buffers,  // its buffers can be in GPU memory, over every backend
};

// An algorithm that a backend offers in addition to the built-in ones.
struct Native {
  std::string name;
  bool starts = false;  // whether i-forms may ask for it
};
using Natives = std::map<Collective, std::vector<Native>>;

// Whether the backend is for worlds over hosts. Between ranks of one host, it is another name of shm.
inline bool is_over_hosts(std::string_view backend) {
  return backend == "hosts" || backend == "hosts_ucx";
}

// What the cases should cover.
struct Selection {
  Effort effort = Effort::quick;
  std::uint64_t seed = 0;
  std::vector<std::string> backends = {};  // usable ones, by name
  std::vector<int> ranks = {};             // numbers of ranks, ascending, no two equal
  // The kinds of memory of the buffers. Unless this is only host memory, the selection is about GPUs: then
  // Property::on_gpus matters.
  std::vector<Devices> devices = {Devices::cpu};
  std::vector<std::string> algorithms = {};  // of --algo; empty: all
  // What each backend offers in addition to the built-in algorithms: "ring" is here only if the backend has its own.
  std::map<std::string, Natives> natives = {};

  // Whether --algo accepts this one. Empty means the default algorithm.
  bool wants_algorithm(std::string_view algorithm) const;
  bool is_about_gpus() const { return devices != std::vector{Devices::cpu}; }
};

// A rank's result for a case.
struct Finding {
  enum class Verdict : std::uint8_t { pass, skip, fail };
  Verdict verdict = Verdict::pass;
  std::string text = {};  // why it was skipped, or what is wrong, in one line
  // A hash of what must be equal on all ranks; the lead compares it. Nothing if there is no such thing.
  std::optional<std::uint64_t> digest = {};
  // The error blames another rank. If that one has failed, too, its own finding says more.
  bool blames_another = false;

  static Finding pass() { return {}; }
  static Finding skip(std::string why) { return {Verdict::skip, std::move(why)}; }
  static Finding fail(std::string what) { return {Verdict::fail, std::move(what)}; }
  // Fails unless `problem` is empty.
  static Finding of(std::string problem) { return problem.empty() ? pass() : fail(std::move(problem)); }
};

// One rank of a case's group. Not thread safe.
class Rank {
 public:
  // A null `group` is for properties that need none.
  Rank(Context& context, Group group, const std::string& backend, Duration timeout)
      : context_(&context), group_(std::move(group)), backend_(backend), timeout_(timeout) {}

  // All ranks of the case. A property may use it, but must not leave anything in flight, and must not break it on
  // purpose.
  Group& group() { return group_; }
  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }
  Context& context() { return *context_; }
  // For one call.
  Duration timeout() const { return timeout_; }

  // A new group of those ranks of group(), in that order, over the same backend. On other ranks, it converts to false.
  // It is not collective over these. But all ranks of the case must ask for groups in the same order, because the names
  // are counted. A property that breaks a group on purpose breaks one of these. The group lives until drop() or the end
  // of the context.
  Group make_group(std::span<const int> ranks, Duration timeout = {});
  // A group of all ranks.
  Group make_group(Duration timeout = {});
  // Of a group of all ranks, for a property that makes it itself.
  GroupSpec spec_of_all(const std::string& name) const;
  void drop(Group& group);
  // Drops what a property has left; returns the first error of it. Called after every case.
  std::optional<Error> drop_all();

 private:
  Context* context_;
  Group group_;
  std::string backend_;
  Duration timeout_;
  int made_ = 0;
  std::vector<std::string> kept_ = {};  // names of groups that have been made and not dropped
};

class Draw;

struct Property {
  // What runs a case.
  enum class Kind : std::uint8_t {
    group,  // Case::ranks ranks, in a group over Case::backend
    alone,  // one process without a group
    fault,  // one process, which starts other processes and harms them; only with --faults
  };
  std::string_view name;     // "exact"
  std::string_view summary;  // one line, for --list and docs/checking.md: what holds if it passes
  Kind kind;
  // Adds the cases for the draw's selection, in any order. Deterministic. No two are equal.
  std::function<void(Draw& draw)> add;
  // One rank's part. It is called on all ranks of the case's group at about the same time, in a group that may have
  // served other cases before. Throws col::Error if a call fails that should not: the case has then failed, and the
  // group is not used again. Other exceptions make the case fail too.
  Finding (*run)(Rank& rank, const Case& c);
  OnGpus on_gpus = OnGpus::nothing;
  int fewest_ranks = 1;           // in a smaller group there is nothing to see
  bool draws_primitives = false;  // which calls its cases make depends on the seed
};

// All cases of the property for `selection`.
std::vector<Case> cases_of(const Property& property, const Selection& selection);

}  // namespace col::colcheck
