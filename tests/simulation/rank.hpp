// One rank of a simulated job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <col/group.hpp>

#include "simulation/checks.hpp"
#include "simulation/muster.hpp"
#include "simulation/plan.hpp"
#include "simulation/program.hpp"
#include "simulation/simulator.hpp"
#include "simulation/wide_call.hpp"

namespace col::test {

// Where its store is.
inline constexpr const char* kStoreHost = "127.0.0.1";
inline constexpr const char* kStoreToken = "token";
inline constexpr int kStorePort = 4711;

// All ranks share this, beside the library: the page of each host is memory that they have in common.
struct Surroundings {
  const JobPlan& plan;
  Simulator& simulator;
  Truth& truth;
  Checks& checks;
  Muster& muster;
  std::vector<int>& holders;  // by rank of the job, the process that has its place
  std::map<std::pair<std::string, int>, std::shared_ptr<ControlPage>> pages = {};  // by job and host
  // A try of that renewal of the plan. All ranks meet at its end.
  struct Try {
    Try(std::size_t number, const Surroundings& in) : renewal(number), end(in.simulator, in.truth, in.holders) {}
    const std::size_t renewal;
    Muster end;
  };
  std::vector<std::unique_ptr<Try>> tries = {};
};

class SimulatedRank {
 public:
  // `process`: the number of its process; that of the rank, unless it is a newcomer.
  SimulatedRank(Surroundings& around, int rank, int process);

  // Its whole life. Whatever is thrown is a problem.
  void live() noexcept;

 private:
  struct Started {
    Work work;
    std::unique_ptr<CallData> data;
    std::string what;
    bool is_tested = false;
  };

  void run();
  // Its place, as it believes.
  struct Told {
    int rank = 0, size = 1;
  };
  bool is_wrong(Mistake::Kind kind) const;
  // Its place in the first job, with its mistake if it makes one; and in any job of these ranks.
  ContextSpec first_spec();
  ContextSpec spec(const std::string& job, const std::vector<int>& ranks, Told told, Duration timeout);
  void run_program(Context& context);
  void run_step(int number);
  Work continued(Work work);
  void run_wide(const Step& step, int number, const std::string& what, Group& group);
  void await_started();
  bool await_several();
  void await(Started& one);
  void leave(Context& context);
  void destroy_groups(Context& context);
  void shrink_world(const std::vector<int>& survivors);
  // The world goes on without those who are gone, and goes on once more for each renewal of the plan. A newcomer
  // begins at the end of the try in which it has got in.
  void renew_world(const std::vector<int>& survivors);
  void begin_try(std::size_t renewal);
  void end_tries(std::size_t number, bool has_failed);
  bool renew_once(const std::vector<int>& survivors, std::uint64_t progress);
  // Looks at the world of a new epoch, and uses it.
  void check_epoch(Group world, const std::vector<int>& before);
  static bool have_right_numbers(const std::vector<int>& before, const std::vector<int>& ranks,
                                 const std::vector<int>& survivors);
  bool is_newcomer() const { return process_ != rank_; }
  void run_as_newcomer();
  bool await_place();
  void begin_anew(const std::vector<int>& survivors);
  std::int64_t use(Group group);

  // Makes a call that has this long. What it throws is looked at, and passed on. `is_in_group`: it is a call of a
  // group.
  void call(const std::string& what, Duration budget, const std::function<void()>& act, bool is_in_group = false);

  Surroundings& around_;
  const int rank_, process_;
  std::vector<Group> groups_;
  std::list<Started> started_;
  std::list<std::unique_ptr<CallData>> kept_;  // until the groups are destroyed
  std::list<std::unique_ptr<WideCall>> wide_;  // likewise
  int at_step_ = -1;
  std::string broken_;                // the group that has failed
  Simulator::Time counts_from_ = {};  // since then, the call that goes on has its budget
};

}  // namespace col::test
