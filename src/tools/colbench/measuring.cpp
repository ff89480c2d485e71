#include "colbench/measuring.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "colbench/facts.hpp"
#include "colbench/launching.hpp"
#include "colbench/merge.hpp"
#include "colbench/rank/lead.hpp"
#include "colbench/report/json.hpp"
#include "colbench/report/progress.hpp"
#include "colbench/selftest/idle_backend.hpp"
#include "common/command_line.hpp"
#include "common/exit_codes.hpp"
#include "common/numbers.hpp"
#include "common/unique_fd.hpp"
#include "launch/own_ranks.hpp"
#include "launch/processes/signals.hpp"

namespace col::colbench {
namespace {

namespace exit_code = tools::exit_code;

// Ranks wait for each other's next step; whatever is measured has a deadline of its own.
constexpr Duration kPatience = std::chrono::minutes(10);

// A text that two processes share, without a name and gone with the last of them.
class SharedText {
 public:
  explicit SharedText(const char* name) : file_(::memfd_create(name, 0)) {
    if (!file_) throw std::system_error(errno, std::generic_category(), "cannot make a file in memory");
  }
  explicit SharedText(int inherited) : file_(inherited) {}

  int fd() const { return file_.get(); }
  void write(const std::string& text) const {
    if (::ftruncate(fd(), 0) != 0) return;
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t done = ::pwrite(fd(), text.data() + at, text.size() - at, static_cast<off_t>(at));
      if (done <= 0) return;  // the reader sees that it is cut short
      at += static_cast<std::size_t>(done);
    }
  }
  std::string read() const {
    std::string text(static_cast<std::size_t>(std::max<off_t>(0, ::lseek(fd(), 0, SEEK_END))), '\0');
    const ssize_t size = ::pread(fd(), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, size)));
    return text;
  }

 private:
  tools::UniqueFd file_;
};

void begin_facts(Results& results, const Method& method, std::vector<std::string> command) {
  RunFacts& facts = results.run;
  describe_host(facts);
  facts.version = COL_TOOLS_VERSION;
  facts.command = std::move(command);
  facts.ranks = method.ranks;
  facts.seed = method.seed;
  facts.target_interval = method.target_interval;
}

// Rank 0's part in one launch.
Results lead_launch(Player& player, const ContextSpec& spec, const Order& order, const tools::Screen& screen,
                    std::function<void(const Results&)> on_checkpoint) {
  Progress progress(screen.progress_fd, screen.columns, screen.utf8);
  Lead lead(player, spec,
            {.on_cell =
                 [&](std::size_t done, std::size_t total, const CellSpec& cell) {
                   progress.show({.done = done,
                                  .total = total,
                                  .launch = order.launch,
                                  .launches = next_look(order.method, order.launch),
                                  .activity = activity_of(cell)});
                 },
             .on_checkpoint = std::move(on_checkpoint)});
  return lead.run(order);
}

}  // namespace

Measure measure_in_own_ranks(const tools::Screen& screen, std::vector<std::string> command, std::span<char> title) {
  return [=](const Method& method, std::span<const CellSpec> cells) {
    const std::int64_t begin = now_ns();
    Results all;
    begin_facts(all, method, command);
    all.run.launcher = "colbench";
    const HostWatch watch;
    int signal = 0;
    run_launches(all, method, cells, [&](const Order& asked) {
      const SharedText order("colbench-order"), found("colbench-results");
      order.write(encode(asked));
      const launch::OwnResult ended =
          launch::run_own_ranks({.tool = "colbench",
                                 .arguments = {std::to_string(order.fd()), std::to_string(found.fd())},
                                 .ranks = method.ranks,
                                 .screen = screen,
                                 .keep_fds = {order.fd(), found.fd()},
                                 .title = title});
      Results one;
      try {
        const std::string text = found.read();
        if (!text.empty()) one = parse_json_results(text, "what the ranks have found");
      } catch (const tools::UsageError&) {  // rank 0 died while it wrote
        one.ended_early = "rank 0 died";
      }
      if (ended.exit_code != exit_code::kSuccess) one.exit_code = ended.exit_code;
      if (ended.exit_code == exit_code::kRankDied && one.ended_early.empty()) one.ended_early = "a rank died";
      if (ended.exit_code == exit_code::kLauncher && one.ended_early.empty())
        one.ended_early = "the ranks could not be started";
      if (ended.signal != 0) {
        signal = ended.signal;
        one.ended_early = "interrupted";
      }
      return one;
    });
    all.run.seconds = static_cast<double>(now_ns() - begin) * 1e-9;
    for (const std::string& warning : watch.warnings(all.run)) all.warnings.push_back(warning);
    conclude(all, method);
    if (signal != 0) all.exit_code = exit_code::kSignalBase + signal;
    return all;
  };
}

int run_spawned_rank(const std::vector<std::string>& arguments) {
  const auto order_fd = arguments.size() == 3 ? tools::parse_whole_number<int>(arguments[1], 3, 1 << 20) : std::nullopt;
  const auto found_fd = arguments.size() == 3 ? tools::parse_whole_number<int>(arguments[2], 3, 1 << 20) : std::nullopt;
  if (!order_fd || !found_fd) throw tools::UsageError("--spawned is how colbench starts its own ranks; leave it out");
  const tools::Screen screen = tools::Screen::parse(arguments[0]);
  const SharedText order(*order_fd), found(*found_fd);
  register_idle_backend();
  Context& context = Context::current();
  const ContextSpec& spec = context.spec();
  try {
    Player player(context, kPatience);
    const Order work = decode_order(order.read());
    if (spec.rank != 0) {
      // Between two commands rank 0 thinks for a moment, and measures the machine's latencies.
      player.follow(work.method.timeout + std::chrono::seconds(10));
      finalize();
      return exit_code::kSuccess;
    }
    const auto keep = [&](const Results& results) { found.write(json_results(results)); };
    const Results results = lead_launch(player, spec, work, screen, keep);
    keep(results);
    player.ranks().dismiss();
    launch::leave_verdict(screen, results.exit_code);
    // What ended the run may hold the other ranks too: only a failure makes the launcher end them.
    // (Of a rank that died it knows.)
    if (!results.ended_early.empty() && results.exit_code != exit_code::kRankDied) return results.exit_code;
  } catch (const Error& error) {
    // Rank 0, or the launcher, says what happened.
    const bool known = error.code() == ErrorCode::peer_lost || error.code() == ErrorCode::aborted;
    if (spec.rank != 0 && known) return exit_code::kRankDied;
    throw;
  }
  finalize();
  return exit_code::kSuccess;
}

int measure_in_world(Context& context, const tools::Screen& screen, const std::vector<std::string>& command,
                     const std::function<int(const Measure&)>& work) {
  const ContextSpec& spec = context.spec();
  register_idle_backend();
  Player player(context, kPatience);
  if (spec.rank != 0) {
    player.follow(kPatience);  // rank 0 may be drawing
    return exit_code::kSuccess;
  }
  const tools::Dismissal dismissal{player.ranks()};
  return work([&](const Method& method, std::span<const CellSpec> cells) {
    if (method.ranks != spec.world_size)
      throw tools::UsageError(fmt::format("{} ranks are there, started by {}, not {}; leave -n out", spec.world_size,
                                          spec.launcher, method.ranks));
    const std::int64_t begin = now_ns();
    Results all;
    Method once = method;
    once.launches = 1;  // the ranks are not ours to start again
    begin_facts(all, once, command);
    all.run.launcher = spec.launcher;
    const HostWatch watch;
    run_launches(all, once, cells, [&](const Order& order) { return lead_launch(player, spec, order, screen, {}); });
    all.run.seconds = static_cast<double>(now_ns() - begin) * 1e-9;
    for (const std::string& warning : watch.warnings(all.run)) all.warnings.push_back(warning);
    conclude(all, once);
    return all;
  });
}

}  // namespace col::colbench
