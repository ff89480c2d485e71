// One stage of a job after the other: the nodes meet, ranks run, and run again, and the job ends.
#include <optional>
#include <string>
#include <utility>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/report/report.hpp"
#include "launch/report/report_json.hpp"
#include "launch/supervise/metrics_server.hpp"
#include "launch/supervise/supervisor.hpp"

namespace col::launch {

using tools::exit_code::kLauncher;

JobResult Supervisor::run() {
  for (const std::string& notice : job_.parts.placement.notices) job_.say("{}", notice);
  serve_metrics();
  if (job_.parts.rendezvous.alone) return run_alone();
  meet_nodes();
  return run_with_others();
}

void Supervisor::serve_metrics() {
  const InspectSpec& inspect = job_.parts.spec.inspect;
  if (inspect.metrics_host.empty()) return;
  const Endpoint at{inspect.metrics_host, inspect.metrics_port};
  metrics_ = std::make_unique<MetricsServer>(at, job_.events, [this](MetricsServer::Answer answer) {
    asking_.ask_all({}, [this, answer = std::move(answer)](JobStory story) {
      story.job_id = job_.parts.job_id;
      story.command_line = job_.parts.spec.command_line;
      answer(metrics_text(story));
    });
  });
  if (!job_.parts.spec.output.quiet) job_.say("figures of this job: http://{}/metrics", metrics_->endpoint().text());
}

void Supervisor::meet_nodes() {
  nodes_.begin();
  while (!nodes_.try_to_join()) {
    wait_in(Stage::joining);
    if (job_.life.front_is_gone() || job_.life.signal() != 0) return;
    nodes_.check_patience();
  }
}

JobResult Supervisor::run_alone() {
  const int max_restarts = job_.parts.spec.lifecycle.restarts_of_all();
  for (;;) {
    JobStory story = run_attempt(assignment_alone());
    if (!job_.life.may_start_again(story.result.cause, job_.restarts, max_restarts)) return finish(std::move(story));
    ++job_.restarts;
    say_report(job_, story);
    job_.say("restarting all ranks ({} of {} restarts)", job_.restarts, max_restarts);
    flush();
  }
}

Assignment Supervisor::assignment_alone() const {
  const int ranks = job_.parts.spec.local_ranks();
  const Endpoint master = pick_free_port();
  return {.local_ranks = ranks,
          .world_size = ranks,
          .restart = job_.restarts,
          .job_id = job_.parts.job_id,
          .master_address = master.host,
          .master_port = master.port};
}

JobResult Supervisor::run_with_others() {
  std::optional<JobStory> own;  // of this node's ranks, when they ran last
  if (job_.parts.spec.local_ranks() == 0) watch_only();
  for (;;) {
    LinkEvent event = next_news(own ? &*own : nullptr);
    if (event.kind == LinkEvent::Kind::start) {
      if (event.assignment.restart > 0 && job_.parts.rendezvous.reports) {
        job_.say("{}; starting again with {} nodes, {} ranks", event.why, event.assignment.nodes,
                 event.assignment.world_size);
      }
      job_.restarts = event.assignment.restart;
      end_watching();
      own = try_attempt(event.assignment);
      // A launcher that was killed is a node that is lost, to the others: it has no word of its own in how the job
      // ends.
      if (job_.life.front_is_gone()) return own->result;
      job_.link->tell(Ended{.restart = event.assignment.restart, .story = story_to_json(*own)});
      if (own->result.cause != EndCause::launcher_failed) watch_only();
      continue;
    }
    JobStory outcome = event.kind == LinkEvent::Kind::done ? std::move(event.outcome) : cut_off(event, std::move(own));
    outcome.tool = job_.parts.spec.tool;
    outcome.command_line = job_.parts.spec.command_line;
    leave_others();
    end_watching();
    // Said by the node from which this one was started.
    if (!job_.parts.rendezvous.reports && event.kind == LinkEvent::Kind::done) return outcome.result;
    return finish(std::move(outcome));
  }
}

// Waits for the meeting to say what comes next.
LinkEvent Supervisor::next_news(const JobStory* ended) {
  const std::optional<Milliseconds> exit_timeout = job_.parts.spec.lifecycle.exit_timeout;
  std::optional<Time> limit;
  if (ended != nullptr && ended->result.cause == EndCause::none && exit_timeout) limit = Clock::now() + *exit_timeout;
  for (job_.life.enter(Stage::awaiting, Clock::now(), limit); job_.life.lasts(facts(), Clock::now());) {
    step(job_.life.deadline());
    nodes_.tell_unreachable();
    if (!job_.life.is_late(Clock::now())) continue;
    job_.link->tell(limit_passed(EndCause::exit_timed_out, job_.restarts));
    job_.life.enter(Stage::awaiting, Clock::now());
  }
  if (nodes_.news() != nullptr) return nodes_.take_news();
  LinkEvent nothing;
  nothing.kind = LinkEvent::Kind::done;
  nothing.outcome.result = job_.life.cut_short();
  return nothing;
}

void Supervisor::watch_only() {
  try {
    watching_.emplace(job_.parts.job_id);
    watching_->create();
    asking_.open_desk(watching_->path());
  } catch (const LaunchError& error) {  // the job does not need it
    job_.say("coljob cannot ask here: {}", error.what());
    watching_.reset();
  }
}

void Supervisor::end_watching() {
  if (!watching_) return;
  forget_askers();
  watching_->remove();
  watching_.reset();
}

void Supervisor::forget_askers() {
  asking_.forget();
  survivors_.reset();
}

JobStory Supervisor::try_attempt(const Assignment& assignment) {
  try {
    return run_attempt(assignment);
  } catch (const LaunchError& error) {
    JobStory story;
    story.tool = job_.parts.spec.tool;
    story.job_id = assignment.job_id;
    story.started_at = job_.began_at;
    story.nodes = assignment.nodes;
    story.result = launcher_failure(error.exit_code(), error.what());
    return story;
  }
}

// The others were lost, or do not want this node.
JobStory Supervisor::cut_off(const LinkEvent& event, std::optional<JobStory> own) const {
  JobStory outcome = event.outcome;
  outcome.result.exit_code = kLauncher;
  outcome.result.cause = EndCause::node_lost;
  outcome.result.error = nodes_.describe_lost(event, own.has_value());
  if (own) outcome.ranks = std::move(own->ranks);
  // Told to end, and then cut off: the signal is why.
  const int signal = own && own->result.signal != 0 ? own->result.signal : job_.life.signal();
  if (signal != 0)
    outcome.result = {.exit_code = tools::exit_code::kSignalBase + signal,
                      .signal = signal,
                      .cause = EndCause::interrupted,
                      .error = outcome.result.error};
  return outcome;
}

// The others' launchers are given time to hear it, and to send what their ranks have printed.
void Supervisor::leave_others() {
  nodes_.leave();
  wait_in(Stage::parting);
  wait_in(Stage::collecting);
  job_.output.give_up_pipes(Clock::now());
}

// ---- the end

void Supervisor::flush() {
  job_.life.enter(Stage::writing, Clock::now());
  for (step(Clock::now()); job_.life.lasts(facts(), Clock::now()); step(job_.life.deadline())) {
    if (job_.life.is_late(Clock::now())) job_.output.drop_unwritten();
    // A process that is not of this job holds a pipe: all that the ranks wrote was read.
    if (!job_.has_more && job_.output.all_written()) job_.output.give_up_rank_pipes(Clock::now());
  }
}

JobResult Supervisor::finish(JobStory story) {
  compare_hosts(story);
  if (!job_.life.front_is_gone()) {
    say_report(job_, story);
    write_json(job_, story);
    traces_.write(story);
    flush();
    // Said; what the front would add is what it alone knows.
    if (story.result.cause != EndCause::output_closed) story.result.error.clear();
    if (job_.output.error() != 0) tell_lost_output(job_, story.result);
  }
  return story.result;
}

}  // namespace col::launch
