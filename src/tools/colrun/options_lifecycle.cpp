// When a job ends, and how.
#include "colrun/option_groups.hpp"
#include "colrun/read_value.hpp"

namespace col::colrun {
namespace {

using launch::JobSpec;

constexpr launch::Milliseconds kNone{0};
constexpr launch::Milliseconds kShortest{1};

}  // namespace

std::vector<OptionRow> lifecycle_rows() {
  using enum OptionRow::Takes;
  using enum OptionRow::Shown;
  using launch::ExitPolicy;
  return {
      {"--timeout", "TIME", value, everyday, "end the job after 90, 90s, 5m or 1h; exit code 124",
       [](const Given& given, JobSpec& job) { job.lifecycle.timeout = read_time(given, kShortest); }},
      {"--start-timeout", "TIME", value, all, "end it when not all ranks have been started by then",
       [](const Given& given, JobSpec& job) { job.lifecycle.start_timeout = read_time(given, kShortest); }},
      {"--exit-timeout", "TIME", value, all, "end it so long after the first rank returned 0",
       [](const Given& given, JobSpec& job) { job.lifecycle.exit_timeout = read_time(given, kShortest); }},
      {"--grace", "TIME", value, everyday, "from SIGTERM to SIGKILL when a job is ended; default: 5s",
       [](const Given& given, JobSpec& job) { job.lifecycle.grace = read_time(given, kNone); }},
      {"--term-grace", "TIME", value, all, "the same when colrun itself was told to end; default: 25s",
       [](const Given& given, JobSpec& job) { job.lifecycle.term_grace = read_time(given, kNone); }},
      {"--max-restarts", "N", value, everyday, "start all ranks again when one fails, up to N times",
       [](const Given& given, JobSpec& job) { job.lifecycle.max_restarts = read_number(given, 0, 1'000'000); }},
      {"--keep-going", "", nothing, all, "a rank that fails does not end the others",
       [](const Given&, JobSpec& job) { job.lifecycle.keep_going = true; }},
      {"--exit-policy", "WHOSE", value, all, "exit code: of the first rank to fail, max, or rank0",
       [](const Given& given, JobSpec& job) {
         job.lifecycle.exit_policy = read_one_of<ExitPolicy>(
             given, {{"first", ExitPolicy::first}, {"max", ExitPolicy::max}, {"rank0", ExitPolicy::rank0}});
       }},
  };
}

}  // namespace col::colrun
