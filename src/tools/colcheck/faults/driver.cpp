// Runs a row of the table of drills, and judges what the ranks have said.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <numeric>
#include <regex>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>  // join

#include <col/job.hpp>
#include <col/store.hpp>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/hangs.hpp"
#include "colcheck/faults/job.hpp"
#include "colcheck/faults/rows.hpp"
#include "launch/processes/signals.hpp"
#include "launch/report/look.hpp"

namespace col::colcheck {
namespace {

using launch::Why;

// Jobs of a case at a time: most of a drill is waiting.
constexpr std::size_t kAtOnce = 4;

// A wait that has lasted for so long is no chance; and a rank that a busy machine lets wait may be blamed before the
// right one has come to its place, so a wrong answer may be corrected for a while.
constexpr double kHangSeconds = 0.25, kPatienceSeconds = 15;
constexpr double kMostSeconds = 1;  // for an answer
constexpr Duration kPauseToAsk = std::chrono::milliseconds(20);

// ---- Words

std::string about(int rank) {
  return rank < 0 ? "about no rank" : fmt::format("about rank {}", rank);
}

// The end of what a rank printed, as one line.
std::string last_words(const RankEnd& end) {
  std::string text = end.output;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  constexpr std::size_t kMost = 300;
  if (text.size() > kMost) text = "…" + text.substr(text.size() - kMost);
  return text.empty() ? "" : fmt::format(" (it printed: {})", text);
}

// "rank 2 got timeout (about no rank) in call 2 after 1.02 s: …"
std::string describe(const RankEnd& end, int rank) {
  std::string text = fmt::format("rank {} ", rank);
  if (end.report && end.report->good())
    text += "noticed nothing";
  else if (end.report)
    text += fmt::format("got {} ({}) in {} after {:.2f} s: {}", end.report->code, about(end.report->error_rank),
                        end.report->doing, end.report->seconds, end.report->message);
  if (end.report && (end.overdue || end.ending.signal != 0)) text += "; then it ";
  if (end.overdue)
    text += fmt::format("did not end in {:.1f} s and was killed", end.ended_at);
  else if (end.ending.signal != 0)
    text += fmt::format("was killed by {}{}", launch::signal_name(end.ending.signal), last_words(end));
  else if (!end.report)
    text += fmt::format("exited with {} and reported nothing{}", end.ending.exit_code, last_words(end));
  return text;
}

std::string describe(const Said& said, int odd) {
  if (said.end == Said::End::killed) return "to be killed";
  if (said.end == Said::End::leaves) return "to leave with exit code 0, without a word";
  std::vector<std::string> all;
  for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
    const auto one = static_cast<ErrorCode>(code);
    if ((said.codes & any_of(one)) != 0) all.emplace_back(to_string(one));
  }
  if ((said.codes & kAnyError) == kAnyError) all = {"an error"};
  if ((said.codes & kWell) != 0) all.emplace_back("success");
  return fmt::format("{}{}", fmt::join(all, " or "), said.names_odd ? " " + about(odd) : "");
}

// ---- What must be said. Each returns what is wrong, in one line; empty if nothing is.

class Judge {
 public:
  Judge(const Way& way, int odd, const JobEnd& end, double noted) : way_(way), odd_(odd), end_(end), noted_(noted) {}

  std::string problem() const {
    std::string problem = first_problem([this](int rank) { return problem_with(rank, way_.of(rank, odd_)); });
    const auto told = [](const RankEnd& one) { return one.report && !one.report->good(); };
    if (problem.empty() && way_.somebody && std::ranges::none_of(end_.ranks, told))
      problem = "no rank noticed anything";
    if (problem.empty() || !way_.or_well) return problem;
    return first_problem([this](int rank) { return problem_with(rank, {}); }).empty() ? "" : problem;
  }

 private:
  template <class Look>
  std::string first_problem(Look look) const {
    for (int rank = 0; rank < static_cast<int>(end_.ranks.size()); ++rank) {
      if (std::string problem = look(rank); !problem.empty()) return problem;
    }
    return {};
  }

  std::string problem_with(int rank, const Said& said) const {
    const RankEnd& one = end_.of(rank);
    if (said.end == Said::End::any) return {};
    if (!is_as_said(one, said)) return describe(one, rank) + "; expected " + describe(said, odd_);
    if (one.report && !one.report->good()) return problem_with_error(one, rank);
    const bool lasted = rank != odd_ || one.ended_at >= way_.not_before;
    return lasted || said.codes != kWell ? "" : "the delay did not happen";
  }

  bool is_as_said(const RankEnd& one, const Said& said) const {
    if (said.end == Said::End::killed) return one.ending.signal == SIGKILL && !one.overdue && !one.report;
    if (said.end == Said::End::leaves) return one.ending.exit_code == 0 && !one.report;
    if (!one.report || one.overdue || one.ending.signal != 0) return false;
    const Report& report = *one.report;
    if (report.good()) return (said.codes & kWell) != 0;
    // The second rank may hear it from the first: "rank 3 ended the group (resource: …".
    const bool is_told = report.code == to_string(ErrorCode::aborted) &&
                         report.message.find("(resource: ") != std::string::npos &&
                         (said.codes & any_of(ErrorCode::resource)) != 0;
    return (is_told || has(said.codes, report.code)) && (!said.names_odd || report.error_rank == odd_);
  }

  static bool has(Codes codes, const std::string& name) {
    for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
      const auto one = static_cast<ErrorCode>(code);
      if (to_string(one) == name) return (codes & any_of(one)) != 0;
    }
    return false;
  }

  std::string problem_with_error(const RankEnd& one, int rank) const {
    const Report& report = *one.report;
    const double late = way_.since == Way::Since::noted       ? one.reported_at - noted_
                        : way_.since == Way::Since::odd_ended ? one.reported_at - end_.of(odd_).ended_at
                                                              : report.seconds;
    if (rank == odd_ && way_.odd && way_.since != Way::Since::called) return {};  // it may be late itself
    if (late > way_.within)
      return fmt::format("{}; that is {:.2f} s after the fault, and at most {:.2f} s are allowed", describe(one, rank),
                         late, way_.within);
    if (report.seconds < way_.not_before)
      return fmt::format("{}; it gave up before {:.2f} s had passed", describe(one, rank), way_.not_before);
    if (!report.later.empty() && !way_.later.empty() && report.later != way_.later)
      return fmt::format("{}; the next call ended with {}, not with {}", describe(one, rank), report.later, way_.later);
    if (way_.regroups && report.regrouped != "success")
      return fmt::format("rank {} in a new group of the others: {}", rank, report.regrouped);
    return {};
  }

  const Way& way_;
  const int odd_;
  const JobEnd& end_;
  const double noted_;
};

// ---- What coljob says

// A control page beside the keys of the job's store says it.
std::optional<launch::JobStory> look_at_job_of(const Job& job) {
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(job.store_directory(), failed)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(".control.") || name.find(".tmp.") != std::string::npos) continue;
    try {
      return launch::look_at_job(*ControlPage::look_at(entry.path()), "drill", launch::kReportedCalls);
    } catch (const Error&) {  // it is being made
    }
  }
  return std::nullopt;
}

struct Expected {
  std::vector<Why::Cause> causes;  // one of these
  std::vector<int> culprits;
  std::string words = {};  // a regular expression

  bool is(Why found) const {
    std::ranges::sort(found.culprits);
    return std::ranges::find(causes, found.cause) != causes.end() && found.culprits == culprits &&
           std::regex_search(found.sentence, std::regex(words));
  }
};

Expected expected_answer(const Way& way, const Case& c, int odd) {
  if (way.act == Act::hangs) {
    const Hang& hang = hangs()[c.variant - way.variant];
    std::vector<int> culprits = hang.culprits;
    for (int rank = 0; hang.culprits.empty() && rank < c.ranks; ++rank) culprits.push_back(rank);
    return {{hang.cause}, culprits, std::string(hang.words)};
  }
  if (way.act == Act::tangles) return {{Why::Cause::own_code, Why::Cause::not_waited}, {odd}};
  const bool stands = std::ranges::any_of(way.script, [](const Step& step) { return step.signal == SIGSTOP; });
  return {{stands ? Why::Cause::stopped : Why::Cause::own_code}, {odd}};
}

// Asks until the answer is right. What is wrong with the last one otherwise.
std::string problem_with_answers(Job& job, const Expected& expected) {
  Why found;
  double slowest = 0;
  for (const double until = job.now() + kPatienceSeconds; job.now() < until; job.pause(kPauseToAsk)) {
    const double asked = job.now();
    const std::optional<launch::JobStory> story = look_at_job_of(job);
    if (!story) continue;
    found = launch::why(*story);
    slowest = std::max(slowest, job.now() - asked);
    if (!expected.is(found) || found.seconds < kHangSeconds) continue;
    if (slowest <= kMostSeconds) return {};
    return fmt::format("an answer has taken {:.2f} s, and at most {:.2f} s are allowed", slowest, kMostSeconds);
  }
  std::vector<std::string_view> names;
  for (const Why::Cause cause : expected.causes) names.push_back(to_string(cause));
  return fmt::format("why says: {} (cause {}, to blame: {}); expected {}, to blame: {}; {}", found.sentence,
                     to_string(found.cause), fmt::join(found.culprits, ", "), fmt::join(names, " or "),
                     fmt::join(expected.culprits, ", "), expected.words);
}

// ---- The script

// The mistake in it: a point that a rank never comes to, or what coljob says.
struct Played {
  std::string missed = {};
  double noted = 0;
};

Played play_script(const Way& way, const Case& c, int odd, Job& job) {
  using Does = Step::Does;
  Played played;
  for (const Step& step : way.script) {
    if (step.does == Does::note) played.noted = job.now();
    if (step.does == Does::pause)
      job.pause(step.length > Duration::zero() ? step.length : std::chrono::microseconds(c.variant));
    if (step.does == Does::explain) played.missed = problem_with_answers(job, expected_answer(way, c, odd));
    std::error_code ignored;  // somebody else's doing, in the middle of the job
    if (step.does == Does::remove_store) std::filesystem::remove_all(job.store_directory(), ignored);
    for (int rank = 0; rank < job.size(); ++rank) {
      if (step.who != Who::all && (rank == odd) != (step.who == Who::odd)) continue;
      if (step.does == Does::go_on) job.go_on(rank);
      if (step.does == Does::strike) job.signal(rank, step.signal);
      if (step.does == Does::release && job.await(rank, step.point)) job.go_on(rank);
      if (step.does == Does::await && !job.await(rank, step.point) && played.missed.empty())
        played.missed = fmt::format("rank {} has not come to '{}'", rank, step.point);
    }
  }
  return played;
}

// ---- What is planted around the ranks

// Accepts at a port of this host, and never says a word: the kernel does it.
class Stranger {
 public:
  Stranger() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    constexpr int kBacklog = 64;
    if (!socket_ || ::bind(socket_.get(), generic, length) != 0 || ::listen(socket_.get(), kBacklog) != 0 ||
        ::getsockname(socket_.get(), generic, &length) != 0)
      throw std::system_error(errno, std::generic_category(), "cannot listen on 127.0.0.1");
    port_ = ntohs(address.sin_port);
  }
  int port() const { return port_; }

 private:
  tools::UniqueFd socket_;
  int port_ = 0;
};

// COL_FAULT. Without a named algorithm, the first step is the only one that is there for certain.
std::string fault_of(const Way& way, const Case& c, int odd) {
  const int steps = std::max(1, c.algorithm.empty() ? 1 : count_steps(numbered(c, way.calls), odd));
  return fmt::format(fmt::runtime(way.fault), fmt::arg("odd", odd), fmt::arg("next", (odd + 1) % c.ranks),
                     fmt::arg("step", mix(c.seed, 3) % static_cast<std::uint64_t>(steps)),
                     fmt::arg("planned", planned_step(c)));
}

Finding run_drill(Rank& /*rank*/, const Case& c) {
  const Drill& drill = drill_of(c);
  const std::vector<Case> parts = drill.parts != nullptr ? drill.parts(c) : std::vector{c};
  if (parts.empty()) return Finding::skip(fmt::format("rank {} has nothing to do in this call", drill.odd(c)));
  std::vector<Finding> findings(parts.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < parts.size(); i = next++) {
      try {
        findings[i] = play(drill, parts[i], {.arguments = {"--fault-rank", token_of(parts[i])}});
      } catch (const std::exception& error) {  // no process or descriptor left
        findings[i] = Finding::fail(error.what());
      }
      if (parts.size() > 1 && !findings[i].text.empty())
        findings[i].text = fmt::format("{}: {}", token_of(parts[i]), findings[i].text);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < std::min(kAtOnce, parts.size()); ++i) threads.emplace_back(work);
  }
  return *std::ranges::max_element(findings, {}, &Finding::verdict);
}

}  // namespace

Finding play(const Drill& drill, const Case& c, JobSpec spec) {
  const Way& way = drill.way_of(c);
  const int odd = drill.odd(c);
  spec.ranks = c.ranks;
  spec.timeout = way.timeout;
  spec.limit = way.limit;
  const auto set = [&](const std::string& variable) { spec.environment.push_back(variable); };
  if (*way.environment != '\0') set(way.environment);
  if (*way.fault != '\0') set("COL_FAULT=" + fault_of(way, c, odd));
  std::optional<Stranger> stranger;
  if (way.store == std::string_view("stranger")) {
    set(fmt::format("COL_STORE=tcp://127.0.0.1:{}", stranger.emplace().port()));
    set("COL_STORE_TOKEN=" + make_store_token());
  } else if (*way.store != '\0') {
    set(std::string("COL_STORE=") + way.store);
  }
  std::optional<PrivateShm> shm;
  try {
    if (way.shm_bytes > 0) spec.shm = &shm.emplace(way.shm_bytes);
  } catch (const std::exception& error) {
    return Finding::skip(error.what());
  }
  Job job(std::move(spec));
  const Played played = play_script(way, c, odd, job);
  const JobEnd end = job.finish();
  for (const RankEnd& one : end.ranks) {
    if (one.report && one.report->code == kNotHere) return Finding::skip(one.report->message);
  }
  std::string problem = Judge(way, odd, end, played.noted).problem();
  if (problem.empty()) problem = played.missed;
  if (problem.empty() && !end.left_behind.empty()) problem = fmt::format("the job has left {} behind", end.left_behind);
  return Finding::of(std::move(problem));
}

std::span<const Property> drill_properties() {
  static const std::vector<Property> all = [] {
    std::vector<Property> properties;
    for (const Drill& drill : drills())
      properties.push_back({drill.name, drill.summary, Property::Kind::fault,
                            [&drill](Draw& draw) { add_cases(drill.draw, draw); }, &run_drill, drill.on_gpus});
    return properties;
  }();
  return all;
}

}  // namespace col::colcheck
