// A job on this node, as all parts of its supervisor know it.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/clock/clock.hpp"
#include "launch/job/job_spec.hpp"
#include "launch/nodes/node_link.hpp"
#include "launch/nodes/rendezvous.hpp"
#include "launch/output/output.hpp"
#include "launch/place/placement.hpp"
#include "launch/processes/events.hpp"
#include "launch/processes/signals.hpp"
#include "launch/supervise/attempt.hpp"
#include "launch/supervise/job_life.hpp"

namespace col::launch {

// All that a job needs before its first rank.
struct JobParts {
  const JobSpec& spec;
  const std::vector<std::string>& programs;  // paths, as many as spec.programs
  const Placement& placement;
  const std::string& job_id;
  const Rendezvous& rendezvous;
  SignalGate& signals;
  int lifeline;  // non-blocking; one byte for each signal that the front got; it ends when the front is gone
};

struct NodeJob {
  using Clock = Ending::Clock;
  using Time = Ending::Time;

  explicit NodeJob(const JobParts& job_parts)
      : parts(job_parts),
        output(events,
               {.stdin_fd = parts.spec.stdin_fd,
                .stdout_fd = parts.spec.stdout_fd,
                .stderr_fd = parts.spec.stderr_fd,
                .ranks = parts.spec.local_places()},
               parts.spec.output) {}

  // A line of the tool's own, with its name before it.
  template <class... Args>
  void say(fmt::format_string<Args...> text, Args&&... args) {
    output.say(fmt::format("{}: {}", parts.spec.tool, fmt::format(text, std::forward<Args>(args)...)));
    has_more = true;  // once the output has had its turn, a line would wait for the next event
  }
  // By a signal, that this launcher or another one has got.
  void end_by(int signal) {
    if (!attempt) return life.on_signal(signal);
    attempt->ending().on_signal(signal, Clock::now());
    if (const int due = attempt->ending().due(Clock::now()); due != 0) attempt->signal_all(due);
  }
  bool is_last_start() const { return restarts >= parts.spec.lifecycle.restarts_of_all() && !link; }
  bool starts_others() const { return !parts.rendezvous.alone && !parts.rendezvous.remotes.empty(); }
  // The beginning of all that is told of the job.
  JobStory story() const {
    JobStory story;
    story.tool = parts.spec.tool;
    story.job_id = attempt ? attempt->assignment().job_id : parts.job_id;
    story.nodes = attempt ? attempt->assignment().nodes : story.nodes;
    story.started_at = began_at;
    story.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    story.restarts = restarts;
    return story;
  }

  const JobParts parts;
  const rlimit open_files = raise_open_files();  // the limit with which the launcher was started
  const std::string host = host_name();
  const Time began = Clock::now();
  const std::chrono::system_clock::time_point began_at = core::wall_now();
  Events events;
  Output output;
  JobLife life;
  std::unique_ptr<NodeLink> link;    // null: this is the only node
  std::unique_ptr<Attempt> attempt;  // null: there are no ranks now
  int restarts = 0;
  int node_rank = 0;
  std::size_t processes_left = 0;  // by the attempt before
  bool has_more = false;           // to do, without a further event
};

// outcome.cpp: everything that is known for the report, and the report itself. Tells of the ranks of this node, which
// have ended. Requires: an attempt.
JobStory story_of(const NodeJob& job);
void say_report(NodeJob& job, const JobStory& story);
// --report-json; does nothing if nobody asked for it, or another node writes it.
void write_json(NodeJob& job, const JobStory& story);
// Output that could not be written decides the exit code of a job that was good otherwise.
void tell_lost_output(const NodeJob& job, JobResult& outcome);

// The first of two times, of which either may be none.
inline std::optional<NodeJob::Time> earlier(std::optional<NodeJob::Time> one, std::optional<NodeJob::Time> other) {
  return one && other ? std::min(one, other) : one ? one : other;
}

}  // namespace col::launch
