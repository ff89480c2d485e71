#include "launch/supervise/traces.hpp"

#include <exception>
#include <limits>
#include <string>

#include "common/write_file.hpp"

namespace col::launch {
void Traces::take() {
  if (job_.parts.spec.inspect.trace_path.empty()) return;
  try {
    forget(job_.attempt->assignment().restart);
    Timeline own;
    job_.attempt->add_traces(own);
    if (job_.link) send(own);
    if (!writes()) return;
    for (const std::string& part : own.pack(std::numeric_limits<std::size_t>::max())) timeline_.add_packed(part);
  } catch (const std::exception& error) {
    job_.say("cannot read a rank's part of the trace: {}", error.what());
  }
}

// As for the report.
bool Traces::writes() const {
  const Rendezvous& meeting = job_.parts.rendezvous;
  return meeting.alone || job_.starts_others() || (job_.node_rank <= 0 && meeting.reports);
}

// Nothing is wanted of a start that has been followed by another one.
void Traces::forget(int restart) {
  if (restart <= restart_) return;
  timeline_ = Timeline();
  restart_ = restart;
}

void Traces::add(const LinkEvent& event) {
  forget(event.restart);
  if (event.restart < restart_) return;
  try {
    timeline_.add_packed(event.part);
  } catch (const Error& error) {
    job_.say("another host's part of the trace: {}", error.message());
  }
  job_.link->tick(NodeJob::Clock::now());  // there may be many, and each takes its time
}

// To the node that writes it, by the clock of the meeting.
void Traces::send(Timeline& own) {
  if (const auto clock = job_.link->clock()) own.shift(*clock);
  if (writes()) return;
  // A queue to be sent has a limit, and a host that says nothing for long is lost.
  constexpr std::size_t kPartBytes = 4 * 1024 * 1024, kMostBytes = 96 * 1024 * 1024;
  std::size_t sent = 0;
  for (const std::string& part : own.pack(kPartBytes)) {
    if (sent += part.size(); sent > kMostBytes) {
      job_.say("this host's part of the trace is too large to be sent whole; take a smaller --trace-limit");
      return;
    }
    job_.link->tell(Traced{.restart = restart_, .part = part});
    job_.link->tick(NodeJob::Clock::now());
  }
}

void Traces::write(const JobStory& story) {
  const InspectSpec& inspect = job_.parts.spec.inspect;
  if (inspect.trace_path.empty() || !writes()) return;
  try {
    tools::write_file(inspect.trace_path, timeline_.json(story.job_id, inspect.trace_bytes));
    if (!job_.parts.spec.output.quiet)
      job_.say("{} has {} events; open it in https://ui.perfetto.dev or chrome://tracing", inspect.trace_path,
               timeline_.events());
  } catch (const std::exception& error) {
    job_.say("cannot write the trace: {}", error.what());
  }
}

}  // namespace col::launch
