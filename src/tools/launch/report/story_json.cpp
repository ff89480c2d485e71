#include "launch/report/story_json.hpp"

#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>  // join
#include <nlohmann/json.hpp>

#include "common/text.hpp"
#include "launch/processes/signals.hpp"
#include "launch/report/hung_rank.hpp"
#include "launch/report/json_fields.hpp"

namespace col::launch {
namespace {

using Json = nlohmann::ordered_json;
using State = RankActivity::State;

constexpr int kMostRanks = 1 << 20;
constexpr std::size_t kMostLines = 256;
constexpr std::size_t kMostLineBytes = 16 * 1024;
constexpr std::size_t kMostNameBytes = 512;
constexpr std::size_t kMostWords = 1 << 16;  // of a command line
constexpr std::size_t kMostWordBytes = 1 << 20;

constexpr std::array<std::string_view, 8> kCauses = {"none",      "rank_failed",    "interrupted",
                                                     "timed_out", "exit_timed_out", "output_closed",
                                                     "node_lost", "launcher_failed"};
constexpr std::array<std::string_view, 5> kStates = {"absent", "joined", "running", "waiting", "finished"};

// The number of `name` in `names`.
template <std::size_t N>
std::size_t index_of(const std::array<std::string_view, N>& names, const JsonFields& fields, const char* member) {
  const std::string name = fields.text(member, kMostNameBytes);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) fields.fail(member, fmt::format("must be one of {}", fmt::join(names, ", ")));
  return static_cast<std::size_t>(found - names.begin());
}

// What a writer of JSON makes of it, so that what is read again is the same.
std::string valid(const std::string& text) {
  const std::string quoted = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  return Json::parse(quoted).get<std::string>();
}

Json valid(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push_back(valid(text));
  return list;
}

Json call_to_json(const std::optional<RankActivity>& last) {
  if (!last) return nullptr;
  return {{"state", kStates[std::min<std::size_t>(static_cast<std::size_t>(last->state), kStates.size() - 1)]},
          {"group", valid(last->group)},
          {"sequence", last->sequence},
          {"op", valid(last->op)},
          {"fingerprint", fmt::format("{:#x}", last->fingerprint)},
          {"step", last->step},
          {"peer", last->peer},
          {"rank", last->rank},
          {"pid", last->pid},
          {"pid_start", last->pid_start},
          {"since_ns", last->since_ns},
          {"held_up_by", last->held_up_by},
          {"stopped", last->stopped}};
}

std::optional<RankActivity> call_from_json(const JsonFields& story) {
  if (story.is_null("last_call")) return std::nullopt;
  const JsonFields fields = story.object("last_call");
  RankActivity last;
  last.state = static_cast<State>(index_of(kStates, fields, "state"));
  last.group = fields.text("group", kMostNameBytes);
  last.sequence = fields.whole<std::uint64_t>("sequence");
  last.op = fields.text("op", kMostNameBytes);
  const std::string fingerprint = fields.text("fingerprint", 18);
  const char* end = fingerprint.data() + fingerprint.size();
  if (!fingerprint.starts_with("0x") || std::from_chars(fingerprint.data() + 2, end, last.fingerprint, 16).ptr != end ||
      fingerprint.size() < 3)
    fields.fail("fingerprint", "must be a hexadecimal number as text: \"0x2a\"");
  last.step = fields.whole<std::int32_t>("step", -1);
  last.peer = fields.whole<std::int32_t>("peer", -1);
  last.rank = fields.whole<int>("rank", -1, kMostRanks);
  last.pid = fields.whole<std::int64_t>("pid");
  last.pid_start = fields.whole<std::uint64_t>("pid_start");
  last.since_ns = fields.whole<std::uint64_t>("since_ns");
  last.held_up_by = fields.whole<std::int32_t>("held_up_by", -1);
  last.stopped = fields.flag("stopped");
  return last;
}

// "exited", "signalled", and what else there is.
std::string_view outcome_of(const RankStatus& status) {
  if (status.pid == 0) return "not_started";
  if (!status.exited) return "not_ended";
  return WIFSIGNALED(status.wait_status) ? "signalled" : "exited";
}

void add_status(const RankStatus& status, Json& rank) {
  const bool signalled = status.exited && WIFSIGNALED(status.wait_status);
  const bool returned = status.exited && WIFEXITED(status.wait_status);
  rank["pid"] = status.pid;
  rank["outcome"] = outcome_of(status);
  rank["exit_code"] = returned ? Json(WEXITSTATUS(status.wait_status)) : Json();
  rank["signal"] = signalled ? Json(signal_name(WTERMSIG(status.wait_status))) : Json();
  rank["wait_status"] = status.wait_status;
  rank["started"] = status.started;
  rank["seconds"] = status.seconds;
  rank["cpu_seconds"] = status.cpu_seconds;
  rank["peak_rss_bytes"] = status.peak_rss_bytes;
  rank["exited"] = status.exited;
  rank["collateral"] = status.collateral;
  rank["told_to_end"] = status.told_to_end;
  rank["needed_kill"] = status.needed_kill;
  rank["walked_out"] = status.walked_out;
  rank["out_of_memory"] = status.out_of_memory;
}

RankStatus status_from_json(const JsonFields& fields) {
  RankStatus status;
  status.pid = fields.whole<pid_t>("pid");
  status.wait_status = fields.whole<int>("wait_status", 0, 0xffff);
  status.started = fields.seconds("started");
  status.seconds = fields.seconds("seconds");
  status.cpu_seconds = fields.seconds("cpu_seconds");
  status.peak_rss_bytes = fields.whole<std::uint64_t>("peak_rss_bytes");
  status.exited = fields.flag("exited");
  status.collateral = fields.flag("collateral");
  status.told_to_end = fields.flag("told_to_end");
  status.needed_kill = fields.flag("needed_kill");
  status.walked_out = fields.flag("walked_out");
  status.out_of_memory = fields.flag("out_of_memory");
  return status;
}

// "2026-08-01T10:00:00.123456789Z"
std::string time_to_text(std::chrono::system_clock::time_point time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(time - whole).count();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(whole);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, rest);
}

std::chrono::system_clock::time_point time_from_json(const JsonFields& fields, const char* name) {
  const std::string text = fields.text(name, kMostNameBytes);
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
    fields.fail(name, "must be a time in UTC as text: \"2026-08-01T10:00:00.123456789Z\"");
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return std::chrono::system_clock::from_time_t(::timegm(&parts)) +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(std::chrono::nanoseconds(nanoseconds));
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-";
  return !word.empty() && word.find_first_not_of(kPlain) == std::string::npos ? word : tools::shell_quoted(word);
}

// The command line as a shell takes it.
std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

}  // namespace

std::string_view to_string(EndCause cause) noexcept {
  return kCauses[std::min<std::size_t>(static_cast<std::size_t>(cause), kCauses.size() - 1)];
}

Json rank_story_to_json(const RankStory& story) {
  Json rank = {{"rank", story.rank},
               {"local_rank", story.local_rank},
               {"node_rank", story.node_rank},
               {"host", valid(story.host)}};
  add_status(story.status, rank);
  rank["said"] = story.said ? Json{{"code", valid(story.said->code)}, {"message", valid(story.said->message)}} : Json();
  rank["last_call"] = call_to_json(story.last);
  rank["stack"] =
      story.stack ? Json{{"source", valid(story.stack->source)}, {"lines", valid(story.stack->lines)}} : Json();
  rank["last_stderr"] = valid(story.last_stderr);
  return rank;
}

RankStory rank_story_from_json(const Json& value) {
  const JsonFields fields(value, "rank story");
  RankStory story;
  story.rank = fields.whole<int>("rank", 0, kMostRanks);
  story.local_rank = fields.whole<int>("local_rank", 0, kMostRanks);
  story.node_rank = fields.whole<int>("node_rank", 0, kMostRanks);
  story.host = fields.text("host", kMostNameBytes);
  story.status = status_from_json(fields);
  if (!fields.is_null("said")) {
    const JsonFields said = fields.object("said");
    story.said = RankError{said.text("code", kMostNameBytes), said.text("message", kMostLineBytes)};
  }
  story.last = call_from_json(fields);
  if (!fields.is_null("stack")) {
    const JsonFields stack = fields.object("stack");
    story.stack = Stack{stack.text("source", kMostNameBytes), stack.texts("lines", kMostLines, kMostLineBytes)};
  }
  story.last_stderr = fields.texts("last_stderr", kMostLines, kMostLineBytes);
  return story;
}

Json story_to_json(const JobStory& story) {
  const JobResult& result = story.result;
  Json job = {{"schema", kJobSchema}, {"tool", valid(story.tool)}, {"job_id", valid(story.job_id)}};
  job["command"] = {{"arguments", valid(story.command_line)},
                    {"shell", valid(shell_line(story.command_line))},
                    {"directory", valid(story.directory)}};
  job["started_at"] = time_to_text(story.started_at);
  job["seconds"] = story.seconds;
  job["nodes"] = story.nodes;
  job["restarts"] = story.restarts;
  job["exit_code"] = result.exit_code;
  job["cause"] = to_string(result.cause);
  const int blamed = blamed_rank(story);
  job["culprit"] = blamed >= 0 ? Json(blamed) : Json();
  job["first_failure"] = result.culprit >= 0 ? Json(result.culprit) : Json();
  job["signal"] = result.signal != 0 ? Json(signal_name(result.signal)) : Json();
  job["signal_number"] = result.signal;
  job["error"] = result.error.empty() ? Json() : Json(valid(result.error));
  job["processes_left"] = story.processes_left;
  job["ranks"] = Json::array();
  for (const RankStory& rank : story.ranks) job["ranks"].push_back(rank_story_to_json(rank));
  return job;
}

JobStory story_from_json(const Json& value) {
  const JsonFields fields(value, "job story");
  if (fields.text("schema", kMostNameBytes) != kJobSchema)
    fields.fail("schema", fmt::format("must be \"{}\"", kJobSchema));
  JobStory story;
  story.tool = fields.text("tool", kMostNameBytes);
  story.job_id = fields.text("job_id", kMostNameBytes);
  const JsonFields command = fields.object("command");
  story.command_line = command.texts("arguments", kMostWords, kMostWordBytes);
  story.directory = command.text("directory", kMostLineBytes);
  story.started_at = time_from_json(fields, "started_at");
  story.seconds = fields.seconds("seconds");
  story.nodes = fields.whole<int>("nodes", 1, kMostRanks);
  story.restarts = fields.whole<int>("restarts");
  story.result.exit_code = fields.whole<int>("exit_code", 0, 255);
  story.result.cause = static_cast<EndCause>(index_of(kCauses, fields, "cause"));
  if (!fields.is_null("first_failure")) story.result.culprit = fields.whole<int>("first_failure", 0, kMostRanks);
  story.result.signal = fields.whole<int>("signal_number", 0, 64);
  if (!fields.is_null("error")) story.result.error = fields.text("error", kMostLineBytes);
  story.processes_left = fields.whole<std::size_t>("processes_left");
  const Json& ranks = fields.at("ranks");
  if (!ranks.is_array() || ranks.size() > static_cast<std::size_t>(kMostRanks))
    fields.fail("ranks", fmt::format("must be a list of at most {} ranks", kMostRanks));
  for (const Json& rank : ranks) story.ranks.push_back(rank_story_from_json(rank));
  return story;
}

}  // namespace col::launch
