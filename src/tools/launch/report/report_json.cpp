#include "launch/report/report_json.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/text.hpp"
#include "json/json_fields.hpp"
#include "json/json_text.hpp"
#include "launch/place/topology.hpp"
#include "launch/processes/signals.hpp"
#include "launch/report/rank_words.hpp"
#include "launch/report/report.hpp"
#include "launch/report/why.hpp"

namespace col::launch {
namespace {

using core::JsonBuilder;
using core::JsonPlace;
using core::within;
using Json = nlohmann::ordered_json;

constexpr int kMostRanks = 1 << 20;
constexpr std::size_t kMostSites = 1 << 16;
constexpr core::Within kRank = within(0, kMostRanks);
constexpr core::ShortText kName = {512};
constexpr core::ShortText kLine = {16 * 1024};
constexpr core::ShortText kWord = {1 << 20};
constexpr core::ShortList<core::ShortText> kLines = {256, kLine};
constexpr core::ShortList<core::Within> kCpus = {kMaxCpus, within(0, kMaxCpus - 1)};
constexpr core::ShortList<core::ShortText> kWords = {1 << 16, kWord};  // a command line
// At most a million years, so that what is computed from it is still a number.
constexpr core::Within kSeconds = within(-30'000'000'000'000, 30'000'000'000'000);

constexpr std::array<std::string_view, 8> kCauses = {"none",      "rank_failed",    "interrupted",
                                                     "timed_out", "exit_timed_out", "output_closed",
                                                     "node_lost", "launcher_failed"};

std::string_view state_name(RankActivity::State state) {
  constexpr std::array<std::string_view, 5> kStates = {"absent", "joined", "running", "waiting", "finished"};
  return kStates[std::min<std::size_t>(static_cast<std::size_t>(state), kStates.size() - 1)];
}

// "exited", "signalled", and what else there is.
std::string_view outcome_of(const RankStatus& status) {
  if (status.pid == 0) return "not_started";
  if (!status.exited) return "not_ended";
  return WIFSIGNALED(status.wait_status) ? "signalled" : "exited";
}

// "2026-08-01T10:00:00.123456789Z"
struct UtcTime {
  using Time = std::chrono::system_clock::time_point;

  void write(JsonBuilder& out, Time time) const {
    const auto whole = std::chrono::floor<std::chrono::seconds>(time);
    const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(time - whole).count();
    const std::time_t seconds = std::chrono::system_clock::to_time_t(whole);
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    out.add(fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                        parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, rest));
  }

  void read(const JsonPlace& place, Time& time) const {
    const std::string& text = place.text();
    std::tm parts{};
    long nanoseconds = 0;
    char zone = 0;
    int length = 0;
    const int read =
        std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%9ld%c%n", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
                    &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &nanoseconds, &zone, &length);
    const bool whole = read == 8 && zone == 'Z' && static_cast<std::size_t>(length) == text.size();
    // A clock of nanoseconds ends in the year 2262.
    if (!whole || parts.tm_year < 1970 || parts.tm_year > 2200 || nanoseconds < 0)
      place.fail("should be a time in UTC as text: \"2026-08-01T10:00:00.123456789Z\"");
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    time = std::chrono::system_clock::from_time_t(::timegm(&parts)) +
           std::chrono::duration_cast<std::chrono::system_clock::duration>(std::chrono::nanoseconds(nanoseconds));
  }
};

}  // namespace
}  // namespace col::launch

namespace col {

namespace {

// Element types by their names; opaque elements are null.
struct NamedType {
  void write(core::JsonBuilder& out, DType dtype) const {
    if (dtype == DType::bytes)
      out.add(nullptr);
    else
      out.add(to_string(dtype));
  }
  void read(const core::JsonPlace& place, DType& dtype) const {
    dtype = DType::bytes;
    if (place.is_null()) return;
    try {
      dtype = dtype_from_string(place.text());
    } catch (const Error& error) {
      place.fail(error.message());
    }
  }
};

}  // namespace

template <class Visit>
void fields(CallDetails& details, Visit& visit) {
  auto& [dtype, count, partner, tag, reduction, algorithm, label] = details;
  visit("dtype", dtype, NamedType());
  visit("count", count);
  visit("partner", partner, core::within(-1));
  visit("tag", tag);                         // any number is a tag
  core::stays(reduction, algorithm, label);  // CallNames has what they mean
}

template <class Visit>
void fields(CallNames& names, Visit& visit) {
  auto& [reduction, algorithm, label] = names;
  visit("reduction", reduction, launch::kName);
  visit("algorithm", algorithm, launch::kName);
  visit("label", label, launch::kName);
}

template <class Visit>
void fields(CallProgress& progress, Visit& visit) {
  auto& [round, rounds, bytes] = progress;
  visit("round", round, core::within(-1));
  visit("rounds", rounds, core::within(-1));
  visit("bytes", bytes);
}

template <class Visit>
void fields(RecordedCall& call, Visit& visit) {
  auto& [op, ended, group, sequence, at_ns, details, names] = call;
  visit("op", op, core::Named{Collective::recv, to_string});
  visit("ended", ended);
  visit("group", group, launch::kName);
  visit("sequence", sequence);
  visit("at_ns", at_ns);
  visit("details", details);
  visit("names", names);
}

template <class Visit>
void fields(RecordedGroup& group, Visit& visit) {
  auto& [name, token, last] = group;
  visit("name", name, launch::kName);
  visit("token", token, core::Hexadecimal());
  visit("last", last);
}

template <class Visit>
void fields(RankHistory& history, Visit& visit) {
  auto& [groups, calls] = history;
  visit("groups", groups, core::ShortList<>{RankRecord::kRecordedCalls});
  visit("calls", calls, core::ShortList<>{RankRecord::kRecordedCalls});
}

template <class Visit>
void fields(RankActivity& last, Visit& visit) {
  auto& [state, rank, pid, pid_start, group, sequence, op, fingerprint, step, peer, progress, since_ns, held_up_by,
         stopped, gone, details, names, place] = last;
  visit("state", state, core::Named{RankActivity::State::finished, launch::state_name});
  visit("group", group, launch::kName);
  visit("sequence", sequence);
  visit("op", op, launch::kName);
  visit("fingerprint", fingerprint, core::Hexadecimal());
  visit("step", step, core::within(-1));
  visit("peer", peer, core::within(-1));
  visit("progress", progress);
  visit("rank", rank, core::within(-1, launch::kMostRanks));
  visit("pid", pid, core::within(0));
  visit("pid_start", pid_start);
  visit("since_ns", since_ns);
  visit("held_up_by", held_up_by, core::within(-1));
  visit("stopped", stopped);
  visit("gone", gone);
  visit("details", details);
  visit("names", names);
  visit("place", place, launch::kName);
}

}  // namespace col

namespace col::launch {

template <class Visit>
void fields(RankError& error, Visit& visit) {
  auto& [code, message] = error;
  visit("code", code, kName);
  visit("message", message, kLine);
}

template <class Visit>
void fields(SampledCalls& sampled, Visit& visit) {
  auto& [token, stride, members, calls] = sampled;
  visit("token", token, core::Hexadecimal());
  visit("stride", stride);
  visit("members", members, within(0, kMostRanks));
  visit("calls", calls, core::ShortList<>{SampledCalls::kMost});
  visit.require(stride > 0, "stride", "should be one or more");
}

template <class Visit>
void fields(CallSite& site, Visit& visit) {
  auto& [group, op, calls, bytes, seconds, compared, waited, last, late, sampled, hosts, doubt] = site;
  visit("group", group, kName);
  visit("op", op, kName);
  visit("calls", calls);
  visit("bytes", bytes);
  visit("seconds", seconds, kSeconds);
  visit("compared", compared);
  visit("waited_seconds", waited, kSeconds);
  visit("last", last);
  visit("late_seconds", late, kSeconds);
  visit.if_set("sampled", sampled, sampled.token != 0);
  visit.if_set("hosts", hosts, hosts > 1, within(1, kMostRanks));
  visit.if_set("doubt_seconds", doubt, hosts > 1, kSeconds);
}

template <class Visit>
void fields(OwnTime& own, Visit& visit) {
  auto& [seconds, outside, cpu, queued] = own;
  visit("seconds", seconds, kSeconds);
  visit("outside_seconds", outside, kSeconds);
  visit("cpu_seconds", cpu, kSeconds);
  visit("queued_seconds", queued, kSeconds);
}

template <class Visit>
void fields(CallTimes& times, Visit& visit) {
  auto& [sites, own, distance] = times;
  visit("calls", sites, core::ShortList<>{kMostSites});
  visit("own", own);
  visit.if_set("distance_seconds", distance, distance.has_value());
}

template <class Visit>
void fields(RankUse& use, Visit& visit) {
  auto& [at_ns, calls, bytes, waited, cpu, queued, rss_bytes] = use;
  visit("at_ns", at_ns);
  visit("calls", calls);
  visit("bytes", bytes);
  visit("waited_seconds", waited, kSeconds);
  visit("cpu_seconds", cpu);
  visit("queued_seconds", queued, kSeconds);
  visit("rss_bytes", rss_bytes);
}

template <class Visit>
void fields(Slow& slow, Visit& visit) {
  auto& [rank, group, op, last, compared, late, sentence] = slow;
  visit("rank", rank, kRank);
  visit("group", group, kName);
  visit("op", op, kName);
  visit("last", last);
  visit("compared", compared);
  visit("late_seconds", late, kSeconds);
  visit("sentence", sentence, kLine);
}

template <class Visit>
void fields(Burden& burden, Visit& visit) {
  auto& [resident_bytes, swapped_bytes, waits_for_disk] = burden;
  visit("resident_bytes", resident_bytes);
  visit("swapped_bytes", swapped_bytes);
  visit("waits_for_disk", waits_for_disk);
}

template <class Visit>
void fields(Stack& stack, Visit& visit) {
  auto& [source, lines] = stack;
  visit("source", source, kName);
  visit("lines", lines, kLines);
}

template <class Visit>
void status_fields(RankStatus& status, Visit& visit) {
  auto& [pid, wait_status, started, seconds, cpu_seconds, peak_rss_bytes, exited, collateral, told_to_end, needed_kill,
         walked_out, out_of_memory] = status;
  visit("pid", pid, within(0));
  visit.derived("outcome", [&] { return outcome_of(status); });
  visit.derived("exit_code", [&] {
    const bool returned = status.exited && WIFEXITED(status.wait_status);
    return returned ? std::optional(WEXITSTATUS(status.wait_status)) : std::nullopt;
  });
  visit.derived("signal", [&] {
    const bool signalled = status.exited && WIFSIGNALED(status.wait_status);
    return signalled ? std::optional(signal_name(WTERMSIG(status.wait_status))) : std::nullopt;
  });
  visit("wait_status", wait_status, within(0, 0xffff));
  visit("started", started, kSeconds);
  visit("seconds", seconds, kSeconds);
  visit("cpu_seconds", cpu_seconds, kSeconds);
  visit("peak_rss_bytes", peak_rss_bytes);
  visit("exited", exited);
  visit("collateral", collateral);
  visit("told_to_end", told_to_end);
  visit("needed_kill", needed_kill);
  visit("walked_out", walked_out);
  visit("out_of_memory", out_of_memory);
}

template <class Visit>
void fields(RankStory& story, Visit& visit) {
  auto& [rank, local_rank, node_rank, host, cpus, why_not, status, epoch, restarts, is_spare, said, last, seen_ns,
         history, burden, stack, times, use, last_stderr] = story;
  visit("rank", rank, kRank);
  visit("local_rank", local_rank, kRank);
  visit("node_rank", node_rank, kRank);
  visit("host", host, kName);
  visit("cpus", cpus, kCpus);
  visit("not_bound", why_not, core::NullFor<std::string, core::ShortText>{{}, kLine});
  status_fields(status, visit);
  visit.if_set("epoch", epoch, epoch.value_or(0) > 0);
  visit.if_set("restarts", restarts, restarts > 0, within(0));
  visit.if_set("spare", is_spare, is_spare);
  visit("said", said);
  visit("last_call", last);
  visit("seen_ns", seen_ns);
  visit("history", history);
  visit.if_set("burden", burden, burden.swapped_bytes > 0 || burden.waits_for_disk);
  visit("stack", stack);
  visit.optional("times", times);
  visit.if_set("use", use, use.has_value());
  visit("last_stderr", last_stderr, kLines);
}

template <class Visit>
void fields(EpochStory& epoch, Visit& visit) {
  visit("at", epoch.at, kSeconds);
  core::fields(epoch.line, visit);
}

template <class Visit>
void fields(SilentNode& node, Visit& visit) {
  auto& [node_rank, host, first_rank, ranks] = node;
  visit("node_rank", node_rank, kRank);
  visit("host", host, kName);
  visit("first_rank", first_rank, kRank);
  visit("ranks", ranks, kRank);
}

template <class Visit>
void fields(Why& found, Visit& visit) {
  auto& [cause, sentence, culprits, waiting, seconds] = found;
  visit("cause", cause, core::Named{Why::Cause::no_answer, to_string});
  visit("sentence", sentence, kLine);
  visit("culprits", culprits);
  visit("waiting", waiting);
  visit("seconds", seconds);
}

// All but the ranks.
template <class Visit>
void job_fields(JobStory& story, Visit& visit) {
  auto& [tool, job_id, command_line, directory, started_at, seconds, nodes, restarts, processes_left, result, ranks,
         silent, epochs] = story;
  auto& [exit_code, signal, cause, culprit, error] = result;
  visit.derived("schema", [] { return kJobSchema; });
  visit("tool", tool, kName);
  visit("job_id", job_id, kName);
  visit.object("command", [&](Visit& command) {
    command("arguments", story.command_line, kWords);
    command.derived("shell", [&] { return tools::shell_line(story.command_line); });
    command("directory", story.directory, kLine);
  });
  core::stays(command_line, directory, ranks);
  visit("started_at", started_at, UtcTime());
  visit("seconds", seconds, kSeconds);
  visit("nodes", nodes, within(1, kMostRanks));
  visit("restarts", restarts, within(0));
  visit("exit_code", exit_code, within(0, 255));
  visit("cause", cause, core::Named{EndCause::launcher_failed, to_string});
  visit.derived("culprit", [&] {
    const int blamed = blamed_rank(story);
    return blamed >= 0 ? std::optional(blamed) : std::nullopt;
  });
  visit("first_failure", culprit, core::NullFor<int, core::Within>{-1, kRank});
  visit.derived("signal", [&] {
    const int number = story.result.signal;
    return number != 0 ? std::optional(signal_name(number)) : std::nullopt;
  });
  visit("signal_number", signal, within(0, 64));
  visit("error", error, core::NullFor<std::string, core::ShortText>{{}, kLine});
  visit("processes_left", processes_left);
  visit.if_set("epochs", epochs, !epochs.empty(), core::ShortList<>{kMostRanks});
  visit.if_set("silent_nodes", silent, !silent.empty(), core::ShortList<>{kMostRanks});
}

template <class Visit>
void fields(JobStory& story, Visit& visit) {
  job_fields(story, visit);
  visit("ranks", story.ranks, core::ShortList<>{kMostRanks});
}

std::string_view to_string(EndCause cause) noexcept {
  return kCauses[std::min<std::size_t>(static_cast<std::size_t>(cause), kCauses.size() - 1)];
}

Json rank_story_to_json(const RankStory& story) {
  return core::json_of(story);
}

RankStory rank_story_from_json(const nlohmann::json& value) {
  RankStory story;
  core::read_json(core::JsonDocument::of(value, "rank story").root(), story);
  return story;
}

Json story_to_json(const JobStory& story) {
  return core::json_of(story);
}

JobStory story_from_json(const nlohmann::json& value) {
  const core::JsonDocument document = core::JsonDocument::of(value, "job story");
  const JsonPlace schema = document.root()["schema"];
  if (schema.text() != kJobSchema) schema.fail(fmt::format("should be \"{}\"", kJobSchema));
  JobStory story;
  core::read_json(document.root(), story);
  return story;
}

namespace {

Why why_cleanly(const JobStory& story) {
  Why found = why(story);
  found.sentence = tools::clean(found.sentence);
  return found;
}

}  // namespace

Json report_json(const JobStory& story) {
  std::vector<std::string> waiting = describe_calls(story);
  for (std::string& line : waiting) line = tools::clean(line);
  JsonBuilder out;
  core::write_object(out, [&](core::JsonWriter& visit) {
    job_fields(const_cast<JobStory&>(story), visit);
    visit("waiting", waiting);
    visit("why", why_cleanly(story));
    visit("slow", find_slow(story));
    visit("ranks", story.ranks);  // what is long comes last
  });
  Json report;
  out.take(report);
  return report;
}

std::string report_json_text(const JobStory& story) {
  return core::json_text(report_json(story), 2) + "\n";
}

}  // namespace col::launch
