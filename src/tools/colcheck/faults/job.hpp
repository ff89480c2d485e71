// A job of rank processes that are harmed deliberately, and its result.
//
//   Job job({.ranks = 3, .arguments = {"--fault-rank", token}, .environment = {"COL_FAULT=kill:rank=2,op=2"}});
//   const JobEnd end = job.finish();
//
// The job does not see the launcher of the calling process: its processes get their own environment, and nobody but its
// ranks notices that one of them is lost. So its processes are started as launch starts ranks
// (launch/processes/program.hpp), but not supervised by launch: a launcher would end the others, or tell them what the
// drill wants them to find out.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <col/types.hpp>

#include "colcheck/faults/processes.hpp"
#include "launch/processes/job_directory.hpp"

namespace col::colcheck {

// From now on, ranks of jobs are started by `program`, with the rank and the command to execute as its arguments: on
// other hosts, say, which see the job's directory and the place of this program. It has to become that command, as
// exec() does it. Empty: directly. Not while a job is being started.
void start_ranks_by(std::string program);
// Whether ranks are started so.
bool are_ranks_elsewhere();

struct JobSpec {
  int ranks = 2;
  std::string program = "/proc/self/exe";
  std::vector<std::string> arguments = {};     // after the program's name
  Duration timeout = std::chrono::seconds(5);  // COL_TIMEOUT
  std::vector<std::string> environment = {};   // more variables: "NAME=value"
  const PrivateShm* shm = nullptr;             // that the ranks enter; must outlive the job; null: none
  Duration limit = std::chrono::seconds(15);   // processes that have not ended by then are killed
};

// The code of a rank whose system does not let it do its part.
inline constexpr const char* kNotHere = "skipped";
// A rank's report about itself.
struct Report {
  std::string code = {};       // of the error that ended it, by col::to_string; "wrong_data"; empty if all went well
  int error_rank = -1;         // col::Error::rank()
  std::string message = {};    // of that error, or what is wrong with the data
  std::string doing = {};      // "start", "join", "call 2", "barrier": what ended in this way
  double seconds = 0;          // the time that this took
  std::string later = {};      // the code of the error of a call after the first error; empty if there was none
  std::string regrouped = {};  // "success", or what went wrong in a new group of the remaining ranks; empty: not tried
  std::uint64_t at_ns = 0;     // when it ended, by core::clock_ns()
  bool good() const { return code.empty(); }
};
// One line of JSON, without its end.
std::string encode(const Report& report);
// Nothing if the text is not a report.
std::optional<Report> decode_report(std::string_view line);

// How a rank ended. Times are seconds since the job's start.
struct RankEnd {
  Ending ending = {};
  double ended_at = 0;
  bool overdue = false;  // it still ran at the limit, and was killed
  std::optional<Report> report = {};
  double reported_at = 0;   // the moment that the report is about
  std::string output = {};  // the end of what it printed
};

struct JobEnd {
  std::vector<RankEnd> ranks;
  std::string left_behind = {};  // the first one that was found when all had ended: leftover()
  const RankEnd& of(int rank) const { return ranks[static_cast<std::size_t>(rank)]; }
};

// Not thread safe. A program may have several, in one thread each. Everything that blocks ends at the limit. If the
// calling process ignores SIGCHLD, it gets the default action from then on, because nobody could wait for children
// otherwise. Requires: nobody else waits for children of this process.
class Job {
 public:
  // Starts the ranks. Throws std::system_error or LaunchError if not all can be started; then none is left.
  explicit Job(JobSpec spec);
  // Kills and reaps what is left, and removes the job's directory.
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Blocks until the rank has said "at POINT", or, if the point is "report", has reported, or, if it is "stopped", has
  // been stopped by a signal. Returns false if the rank ended before that, or at the limit.
  bool await(int rank, std::string_view point);
  // Waits for this time.
  void pause(Duration length);
  // Lets a rank that waits at a point go on.
  void go_on(int rank);
  void signal(int rank, int number);
  double now() const;
  int size() const { return spec_.ranks; }

  // The job's directory of keys, so that it can be harmed.
  std::string store_directory() const { return directory_.store(); }

  // Blocks until all have ended, or until the limit. Removes the job's directory. Call it once.
  JobEnd finish();

 private:
  struct RankSide;
  void start(int rank);
  RankSide& side(int rank) const { return *sides_[static_cast<std::size_t>(rank)]; }
  std::vector<std::string> environment_of(int rank) const;
  // Handles events until `done`. Returns false if that moment, the limit, or the end of all ranks came first.
  bool pump(const std::function<bool()>& done, Duration longest_nap, double until);
  void wait_for_events(Duration at_most);
  bool all_ended() const;

  const JobSpec spec_;
  const std::uint64_t started_ns_;
  const std::chrono::system_clock::time_point started_;
  const std::string id_;
  const launch::JobDirectory directory_;
  std::vector<std::unique_ptr<RankSide>> sides_;
};

}  // namespace col::colcheck
