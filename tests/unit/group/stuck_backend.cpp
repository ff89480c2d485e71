#include "unit/group/stuck_backend.hpp"

#include <array>
#include <mutex>
#include <numeric>
#include <thread>

#include <col/channel.hpp>

#include "support/catch.hpp"

namespace col::test {
namespace {

class StuckChannel final : public Channel {
 public:
  Ticket post_send(int, std::uint64_t, ConstTensorView) override { return {1}; }
  Ticket post_recv(int, std::uint64_t, TensorView) override { return {1}; }
  std::optional<int> test(Ticket) override { return std::nullopt; }
  int wait(Ticket, WaitContext& wait) override { never(wait); }
  std::span<const NativeEntry> native_entries() const override { return kEntries; }
  Ticket start_native(const Request&, WaitContext& wait) override { never(wait); }
  void abort(const Error&) noexcept override {}

 private:
  static constexpr std::array kEntries = {NativeEntry{Collective::allreduce, "stuck"}};

  [[noreturn]] static void never(WaitContext& wait) {
    for (;;) {
      wait.check();
      std::this_thread::sleep_for(wait.slice());  // the wait itself is the subject: nothing ever happens
    }
  }
};

class StuckBackend final : public BackendFactory {
 public:
  std::string_view name() const override { return "stuck"; }
  std::optional<std::string> unavailable_reason() const override { return std::nullopt; }
  std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) override {
    request.store->set(std::to_string(request.rank), "here");
    for (int rank = 0; rank < request.size; ++rank) request.store->wait(std::to_string(rank), wait);
    return std::make_unique<StuckChannel>();
  }
  std::string describe(const ConnectRequest&) const override { return "no interface"; }
};

}  // namespace

void register_stuck_backend() {
  static std::once_flag once;  // ranks that are threads come here at once
  std::call_once(once, [] { register_backend(std::make_unique<StuckBackend>()); });
}

void check_ended(const std::vector<Outcome>& outcomes, const GroupEnding& ending, std::vector<int> ranks) {
  INFO(show(outcomes));
  if (ranks.empty()) {
    ranks.resize(outcomes.size());
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  for (const int rank : ranks) {
    INFO("rank " << rank);
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    CHECK(outcome.code == ending.code);
    if (ending.culprit) CHECK(outcome.error_rank == *ending.culprit);
    for (const std::string& words : ending.words) CHECK(outcome.text.find(words) != std::string::npos);
    CHECK(outcome.text.find('\n') == std::string::npos);
    if (ending.code != ErrorCode::timeout) CHECK(outcome.seconds < kPromptSeconds);
  }
}

void check_all_good(const std::vector<Outcome>& outcomes) {
  INFO(show(outcomes));
  CHECK(all_good(outcomes));
}

}  // namespace col::test
