#include <memory>

#include <fmt/format.h>

#include <col/channel.hpp>

#include "colbench/commands/command.hpp"
#include "colbench/commands/options.hpp"
#include "common/exit_codes.hpp"

namespace col::colbench {

// ---- A backend that moves nothing -----------------------------------------------------------------------------------

namespace {

constexpr const char* kIdleBackend = "idle";

// It returns at once and moves nothing: what colbench must never take for a fast backend.
class IdleChannel : public Channel {
 public:
  Ticket post_send(int peer, std::uint64_t, ConstTensorView) override { return {static_cast<std::uint64_t>(peer) + 1}; }
  Ticket post_recv(int peer, std::uint64_t, TensorView) override {
    return {static_cast<std::uint64_t>(peer == kAnyPeer ? 0 : peer) + 1};
  }
  std::optional<int> test(Ticket ticket) override { return static_cast<int>(ticket.id) - 1; }
  int wait(Ticket ticket, WaitContext&) override { return static_cast<int>(ticket.id) - 1; }
  std::span<const NativeEntry> native_entries() const override { return {}; }
  Ticket start_native(const col::Request&, WaitContext&) override { return kEnded; }
  void abort(const Error&) noexcept override {}
};

class IdleBackend : public BackendFactory {
 public:
  std::string_view name() const override { return kIdleBackend; }
  std::optional<std::string> unavailable_reason() const override { return std::nullopt; }
  // It does only what making a group needs: it returns when all ranks have come.
  std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) override {
    request.store->set(fmt::format("here/{}", request.rank), "");
    for (int rank = 0; rank < request.size; ++rank) request.store->wait(fmt::format("here/{}", rank), wait);
    return std::make_unique<IdleChannel>();
  }
  std::string describe(const ConnectRequest&) const override { return "moves nothing"; }
};

}  // namespace

void register_idle_backend() {
  if (find_backend(kIdleBackend) == nullptr) register_backend(std::make_unique<IdleBackend>());
}

// ---- The command ----------------------------------------------------------------------------------------------------

namespace {

namespace exit_code = tools::exit_code;

// What colbench says of a backend that does nothing.
Cell measured(const Invocation& invocation, const char* check, int& code) {
  Method method;
  method.ranks = 2;
  method.launches = 1;
  method.seed = 1;
  method.check = check;
  // Nothing but messages: with them left out, no work is left.
  const CellSpec cell{.operation = Operation::broadcast, .backend = kIdleBackend, .bytes = std::size_t{32} << 20};
  const Results results = invocation.measure(method, std::span(&cell, 1));
  code = results.exit_code;
  return results.cells.empty() ? Cell{} : results.cells.front();
}

}  // namespace

int run_self_test(const Invocation& invocation) {
  CommandLine line(
      "colbench self-test", "Usage: colbench self-test",
      "Measures a backend that moves nothing, with its results looked at and without. The check must refuse\n"
      "the one, the physical bound the other.");
  if (!line.parse(invocation.arguments, 0)) return exit_code::kSuccess;
  int wrong_data = 0, impossible = 0;
  const Cell checked = measured(invocation, "sample", wrong_data);
  const bool caught_by_check = wrong_data == exit_code::kWrongData && checked.check.wrong > 0;
  print(fmt::format("a backend that moves nothing, results looked at: exit {}, {}\n", wrong_data,
                    checked.invalid.empty() ? "taken for good" : checked.invalid));
  const Cell unchecked = measured(invocation, "off", impossible);
  const bool caught_by_bound = impossible == exit_code::kInvalidMeasurement && unchecked.below_bound;
  print(fmt::format("the same, not looked at: exit {}, {}\n", impossible,
                    unchecked.invalid.empty() ? "taken for good" : unchecked.invalid));
  if (caught_by_check && caught_by_bound) return exit_code::kSuccess;
  print("colbench would believe a backend that does nothing\n");
  return exit_code::kWrongData;
}

}  // namespace col::colbench
