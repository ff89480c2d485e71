#include "simulation/job.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/clock/clock.hpp"
#include "simulation/fine_channel.hpp"
#include "simulation/network.hpp"
#include "simulation/rank.hpp"
#include "simulation/streams.hpp"

namespace col::test {
namespace {

std::vector<int> ranks_in_order(int ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

class Job {
 public:
  Job(std::uint64_t seed, int draws, std::FILE* file)
      : plan_(choose_plan(seed, draws)),
        trace_(file),
        simulator_(seed, trace_),
        truth_(simulator_, plan_.faults, plan_.ranks, plan_.processes()),
        checks_(simulator_, truth_, plan_.mistake, plan_.timeout),
        network_(simulator_, truth_, plan_.longest_delay),
        holders_(ranks_in_order(plan_.ranks)),
        muster_(simulator_, truth_, holders_),
        streams_(simulator_, truth_, network_) {
    simulator_.connect_by(streams_);
    if (draws < 3) simulator_.pass_over_free_locks();
  }

  JobReport run();
  Network& network() { return network_; }

 private:
  void add_rank(int rank, int process);
  void serve_store();
  std::size_t keys_that_stay() const;
  void check_keys();
  void check_what_is_left();
  core::Host host(int rank) const {
    const int number = plan_.host_of(rank);
    return {fmt::format("host{}", number), fmt::format("boot{}", number), "pids", "net"};
  }

  const JobPlan plan_;
  Trace trace_;
  Simulator simulator_;
  Truth truth_;
  Checks checks_;
  SimulatedNetwork network_;
  std::vector<int> holders_;
  Muster muster_;
  Streams streams_;
  std::size_t keys_left_ = 0;
  Surroundings around_{plan_, simulator_, truth_, checks_, muster_, holders_};
};

// A process of its own, as the launcher is one.
void Job::serve_store() {
  StoreServer server({.host = kStoreHost, .port = kStorePort, .token = kStoreToken});
  const auto ranks_are_left = [&] {
    for (int process = 0; process < plan_.processes(); ++process) {
      const bool is_gone = simulator_.state_of(process) == core::ProcessCondition::gone;
      if (!is_gone && process != plan_.process_of_store()) return true;
    }
    return false;
  };
  while (ranks_are_left()) core::sleep_for(std::chrono::milliseconds(100));
  keys_left_ = make_tcp_store(kStoreHost, kStorePort, kStoreToken, std::chrono::seconds(1))->num_keys();
}

// The records of groups, and that of a job that has met.
std::size_t Job::keys_that_stay() const {
  // Groups that the program has named have a record, too. One that was renewed has its register, and the last values of
  // that, by which ranks were woken.
  const std::size_t meetings = plan_.meets ? 1 : 0;
  const std::size_t renewals = plan_.renewals.size();
  const std::size_t epochs = renewals == 0 ? 0 : renewals == 1 ? 4 : 5;
  return 1 + meetings + epochs +
         static_cast<std::size_t>(std::ranges::count_if(plan_.program.steps, [](const Step& step) {
           return step.kind == Step::Kind::subgroup && step.keys.size() > 1;
         }));
}

// After a job in which all went well, if late.
void Job::check_keys() {
  simulator_.note("keys", std::to_string(keys_left_));
  if (keys_left_ != keys_that_stay())
    checks_.problem(fmt::format("{} keys are left in the store instead of {}", keys_left_, keys_that_stay()));
}

// After a job without faults.
void Job::check_what_is_left() {
  // The progress thread never ends.
  const int most = plan_.starts_progress_thread() ? 1 : 0;
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    if (const int left = simulator_.left_threads(rank); left > most)
      checks_.problem(fmt::format("rank {} has left {} threads behind", rank, left));
  }
}

// Requires: the processes are added in the order of their numbers.
void Job::add_rank(int rank, int process) {
  simulator_.add_process(
      [this, rank, process] {
        auto* const one = new SimulatedRank(around_, rank, process);  // never destroyed if it is killed
        one->live();
        delete one;
      },
      host(rank));
}

JobReport Job::run() {
  for (int rank = 0; rank < plan_.ranks; ++rank) add_rank(rank, rank);
  simulator_.add_process([this] { serve_store(); }, {"host of the store", "boot of the store", "pids", "net"});
  for (int newcomer = 0; newcomer < static_cast<int>(plan_.newcomers.size()); ++newcomer)
    add_rank(plan_.newcomers[static_cast<std::size_t>(newcomer)], plan_.process_of_newcomer(newcomer));
  if (plan_.has_progress_thread) simulator_.set_environment("COL_PROGRESS", "thread");
  if (plan_.is_strict) simulator_.set_environment("COL_CHECK", "strict");
  const Simulator::End end = simulator_.run();
  streams_.close();
  const bool all_went_well = end == Simulator::End::all_ended && !checks_.had_errors() && truth_.kills() == 0;
  if (all_went_well && !truth_.was_store_mute_since(Simulator::kBegin)) check_keys();
  if (!truth_.any()) check_what_is_left();
  if (end == Simulator::End::stuck) checks_.problem("all wait for ever:\n" + simulator_.places());
  if (end == Simulator::End::endless) checks_.problem("it does not end:\n" + simulator_.places());
  return {.trace_hash = trace_.hash(),
          .trace_lines = trace_.lines(),
          .switches = simulator_.switches(),
          .simulated_ns = Simulator::ns_of(simulator_.now()),
          .had_faults = truth_.any() || plan_.mistake,
          .had_errors = checks_.had_errors(),
          .plan = describe(plan_),
          .problems = checks_.problems()};
}

Job* current_job = nullptr;

}  // namespace

JobReport simulate_job(std::uint64_t seed, int draws, std::FILE* trace) {
  register_simulated_backends([] { return &current_job->network(); });
  current_job = new Job(seed, draws, trace);  // threads of killed ranks may stand in it for ever
  return current_job->run();
}

}  // namespace col::test
