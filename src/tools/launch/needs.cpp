#include "launch/needs.hpp"

#include <algorithm>
#include <cstddef>

#include "launch/output/output.hpp"

namespace col::launch {
namespace {

// By the launcher itself: standard streams, signals, epoll, what is open while a rank is started, and who asks by
// coljob or --metrics.
constexpr int kOwnFiles = 32;
constexpr int kFilesPerHost = 5;  // the streams of its ssh, and both ends of its share of the input

int files_of_ranks(const JobSpec& spec, int ranks) {
  const bool all_read = spec.input.to == InputSpec::To::all || spec.output.pty;
  const int pidfd = 1;
  return ranks *
         (Output::files_per_rank(spec.output, ranks) + (all_read ? 1 : 0) + (spec.environment.pmi ? 1 : 0) + pidfd);
}

}  // namespace

Needs needs_of(const JobSpec& spec, const Rendezvous& meeting) {
  const int ranks = spec.local_places();
  const auto hosts = static_cast<int>(meeting.remotes.size());
  int world = ranks, most_elsewhere = 0;
  for (const HostSpec& host : meeting.remotes) {
    int there = 0;
    for (std::size_t program = 0; program < spec.programs.size(); ++program)
      there += remote_ranks(meeting, host, program);
    world += there;
    most_elsewhere = std::max(most_elsewhere, files_of_ranks(spec, there));
  }
  // Where the nodes meet, each has a connection, and so may each rank to its store.
  const int of_meeting = meeting.alone ? 0 : meeting.max_nodes + 1 + (hosts > 0 ? world : 0);
  const int own = kOwnFiles + static_cast<int>(spec.keep_fds.size());
  const int files = own + std::max(files_of_ranks(spec, ranks) + hosts * kFilesPerHost, of_meeting);
  // The process of the meeting, and the thread of its store.
  const int meeting_here = hosts > 0 || meeting.may_serve ? 2 : 0;
  const int watcher = 1, view = spec.inspect.watch ? 1 : 0;
  return {.ranks = ranks,
          .hosts = hosts,
          .files = static_cast<rlim_t>(files),
          .files_of_all = static_cast<rlim_t>(std::max(files, kOwnFiles + most_elsewhere)),
          .processes = ranks + hosts + watcher + meeting_here + view};
}

}  // namespace col::launch
