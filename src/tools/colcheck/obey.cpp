#include "colcheck/obey.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>

#include <fmt/format.h>

#include "colcheck/engine/forms.hpp"
#include "colcheck/properties/list.hpp"
#include "common/gpu.hpp"
#include "core/clock/clock.hpp"
#include "json/json_fields.hpp"

namespace col::colcheck {
namespace {

// ---- The note of a crash

// Written before a case, read by the handler: both in one process, and a mixed text does no harm.
std::array<char, 64> opening{};
std::array<char, 512> current{};

void put(const char* text) {
  const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(written);  // nothing can be done about it here
}

void on_fatal(int signal) {
  put(opening.data());
  put(current.data());
  put("'\n");
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

// ---- Orders

// A rank waits for its next order while the lead does something long by itself.
constexpr Duration kPatience = std::chrono::hours(24);

// What one rank finds in the cases of an order.
class CaseRunner {
 public:
  CaseRunner(Rank rank, const ObeyOptions& options) : rank_(std::move(rank)), options_(options) {}

  // False when the group cannot be used any more.
  bool run(std::size_t index, const Case& c) {
    if (options_.on_case) options_.on_case(c);
    note_case(token_of(c));
    bool usable = true;
    const auto began = core::Clock::now();
    Finding finding = find_out(c, usable);
    // If the case has failed, this error only follows from it.
    if (const auto error = rank_.drop_all(); error && finding.verdict == Finding::Verdict::pass)
      finding = failed(*error);
    const auto took = core::Clock::now() - began;
    answer_.times.push_back({index, std::chrono::duration_cast<std::chrono::microseconds>(took).count()});
    if (finding.verdict != Finding::Verdict::pass || finding.digest)
      answer_.entries.push_back({index, std::move(finding)});
    answer_.done = index + 1;
    return usable;
  }

  // No case has broken the group, but leaving it has failed: that counts against the last case.
  void fail_at_end(const Error& error) {
    if (answer_.done == 0)
      answer_.trouble = error.what();
    else
      answer_.entries.push_back({answer_.done - 1, failed(error)});
  }

  Answer& answer() { return answer_; }

 private:
  Finding failed(const Error& error) {
    Finding finding = Finding::fail(error.what());
    const int culprit = error.world_rank() >= 0 ? error.world_rank() : error.rank();
    finding.blames_another = culprit >= 0 && culprit != rank_.context().spec().rank;
    return finding;
  }

  Finding find_out(const Case& c, bool& usable) {
    const Property* property = find_property(c.property);
    if (property == nullptr) return Finding::fail(fmt::format("there is no property '{}'", c.property));
    if (c.ranks < property->fewest_ranks)
      return Finding::skip(fmt::format("it takes {} ranks", property->fewest_ranks));
    try {
      return property->run(rank_, c);
    } catch (const Error& error) {
      // These leave a group as it was.
      usable = error.code() == ErrorCode::invalid_argument || error.code() == ErrorCode::unavailable;
      return failed(error);
    } catch (const std::exception& error) {
      usable = false;
      return Finding::fail(error.what());
    }
  }

  Rank rank_;
  const ObeyOptions& options_;
  Answer answer_;
};

Answer run_in_group(Context& context, const Order& order, std::uint64_t number, const ObeyOptions& options) {
  if (context.spec().rank >= order.ranks) return {};
  Answer answer;
  std::shared_ptr<void> gpu;
  Group group;
  try {
    if (needs_gpu(order.devices, order.backend)) gpu = tools::use_gpu(context.spec());
    group = context.init_group({.name = fmt::format("colcheck/{}", number),
                                .rank = context.spec().rank,
                                .world_size = order.ranks,
                                .backend_name = order.backend,
                                .timeout = options.timeout});
    if (order.kind == Order::Kind::probe) {
      group.barrier();
      answer.natives = native_algorithms(group);
      if (is_over_hosts(order.backend) && group.backend() != order.backend) {
        answer.trouble =
            fmt::format("unavailable: {} is for ranks of which some share a host, and not all; these go over {}",
                        order.backend, group.backend());
        context.destroy_group(group.name());
        return answer;
      }
    }
  } catch (const std::exception& error) {
    answer.trouble = error.what();
    return answer;
  }
  CaseRunner runner(Rank(context, group, order.backend, options.timeout), options);
  bool usable = true;
  for (std::size_t i = 0; usable && i < order.cases.size(); ++i) usable = runner.run(i, order.cases[i]);
  try {
    context.destroy_group(group.name());
  } catch (const Error& error) {
    if (usable) runner.fail_at_end(error);
  }
  if (context.spec().rank != 0) runner.answer().times.clear();
  runner.answer().natives = std::move(answer.natives);
  return std::move(runner.answer());
}

Answer run_share(Context& context, const Order& order, const ObeyOptions& options) {
  CaseRunner runner(Rank(context, {}, order.backend, options.timeout), options);
  const auto own = static_cast<std::size_t>(context.spec().rank), ranks = static_cast<std::size_t>(order.ranks);
  for (std::size_t i = own; own < ranks && i < order.cases.size(); i += ranks) runner.run(i, order.cases[i]);
  runner.answer().done = order.cases.size();
  return std::move(runner.answer());
}

}  // namespace

void install_crash_note(int rank) {
  const std::string text = fmt::format("colcheck: rank {} crashed; run: colcheck --repro '", rank);
  std::copy_n(text.data(), std::min(text.size(), opening.size() - 1), opening.data());
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    struct sigaction action {};
    action.sa_handler = &on_fatal;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
  }
}

void note_case(std::string_view token) noexcept {
  const std::size_t length = std::min(token.size(), current.size() - 1);
  std::copy_n(token.data(), length, current.data());
  current[length] = '\0';
}

// ---- Orders and answers as JSON

template <class Visit>
void fields(Order& order, Visit& visit) {
  auto& [kind, devices, backend, ranks, cases] = order;
  visit("kind", kind, core::Numbered{Order::Kind::share});
  visit("devices", devices, core::Named{Devices::mixed, to_string});
  visit("backend", backend);
  visit("ranks", ranks);
  visit("cases", cases, AsToken());
}

template <class Visit>
void fields(Answer::Entry& entry, Visit& visit) {
  auto& [index, finding] = entry;
  auto& [verdict, text, digest, blames_another] = finding;
  visit("index", index);
  visit("verdict", verdict, core::Numbered{Finding::Verdict::fail});
  visit("text", text);
  visit("digest", digest);
  visit("blames_another", blames_another);
}

template <class Visit>
void fields(Answer::Took& took, Visit& visit) {
  auto& [index, us] = took;
  visit("index", index);
  visit("us", us);
}

template <class Visit>
void fields(RankGpu& rank, Visit& visit) {
  auto& [host, gpu, of_host, nccl, why_not, why_no_nccl] = rank;
  auto& [name, bus] = gpu;
  visit("host", host);
  visit("name", name);
  visit("bus", bus);
  visit("of_host", of_host);
  visit("nccl", nccl);
  visit("why_not", why_not);
  visit("why_no_nccl", why_no_nccl);
}

template <class Visit>
void fields(Native& native, Visit& visit) {
  auto& [name, starts] = native;
  visit("name", name);
  visit("starts", starts);
}

template <class Visit>
void fields(Answer& answer, Visit& visit) {
  auto& [entries, times, done, trouble, natives, gpu] = answer;
  visit("entries", entries);
  visit("times", times);
  visit("done", done);
  visit("trouble", trouble);
  visit("natives", natives, core::Named{Collective{kCollectiveCount - 1}, col::to_string});
  visit("gpu", gpu);
}

// A message may quote bytes that are no UTF-8: they are replaced.
std::string encode(const Order& order) {
  return core::json_line(order);
}

std::string encode(const Answer& answer) {
  return core::json_line(answer);
}

Order decode_order(const std::string& text) {
  return core::parsed_json<Order>(text, "order");
}

Answer decode_answer(const std::string& text) {
  return core::parsed_json<Answer>(text, "answer");
}

// ---- What a rank does

Answer carry_out(Context& context, const Order& order, std::uint64_t number, const ObeyOptions& options) {
  if (order.kind == Order::Kind::look) {
    Answer answer;
    answer.gpu = look_for_gpu(context.spec());
    return answer;
  }
  if (order.kind == Order::Kind::share) return run_share(context, order, options);
  return run_in_group(context, order, number, options);
}

void obey(Context& context, tools::Coordinator& lead, const ObeyOptions& options) {
  lead.follow(kPatience, [&](std::uint64_t number, const std::string& order) {
    return encode(carry_out(context, decode_order(order), number, options));
  });
}

}  // namespace col::colcheck
