// Calls that come again, where their channel cannot prepare them.
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <col/channel.hpp>
#include <col/group.hpp>

#include "backend/capabilities.hpp"
#include "support/catch.hpp"
#include "support/outcomes.hpp"
#include "unit/group/stuck_backend.hpp"

using namespace col::test;
using col::ConnectRequest;
using col::NativeEntry;
using col::Request;
using col::Ticket;
using col::WaitContext;

namespace {

// Its calls do nothing, and end at once.
class FullChannel final : public col::Channel, public col::backend::PrepareOps {
 public:
  FullChannel() : Channel({.prepares = this}) {}
  Ticket post_send(int, std::uint64_t, col::ConstTensorView) override { return {1}; }
  Ticket post_recv(int, std::uint64_t, col::TensorView) override { return {1}; }
  std::optional<int> test(Ticket) override { return 0; }
  int wait(Ticket, WaitContext&) override { return 0; }
  std::span<const NativeEntry> native_entries() const override { return kEntries; }
  Ticket start_native(const Request&, WaitContext&) override { return {1}; }
  void abort(const col::Error&) noexcept override {}
  std::unique_ptr<col::backend::PreparedNative> prepare(const Request&) override {
    throw col::Error(col::ErrorCode::resource, "no memory to prepare a call");
  }

 private:
  static constexpr std::array kEntries = {
      NativeEntry{.collective = col::Collective::allreduce, .name = "full", .asynchronous = true}};
};

class FullBackend final : public col::BackendFactory {
 public:
  std::string_view name() const override { return "full"; }
  std::optional<std::string> unavailable_reason() const override { return std::nullopt; }
  std::unique_ptr<col::Channel> connect(const ConnectRequest& request, WaitContext& wait) override {
    request.store->set(std::to_string(request.rank), "here");
    for (int rank = 0; rank < request.size; ++rank) request.store->wait(std::to_string(rank), wait);
    return std::make_unique<FullChannel>();
  }
  std::string describe(const ConnectRequest&) const override { return "no interface"; }
};

}  // namespace

TEST_CASE("kept calls: one that cannot be prepared for the next time has ended well, or is in flight", "[group]") {
  check_all_good(run_threads(2, [](int rank, col::Context& context) {
    static std::once_flag once;  // ranks come here at once
    std::call_once(once, [] { col::register_backend(std::make_unique<FullBackend>()); });
    col::Group group = context.init_group({.rank = rank, .world_size = 2, .backend_name = "full"});
    std::vector<float> in(3), out(3);
    for (int call = 0; call < 3; ++call) {
      group.allreduce(in, out, {.algorithm = "full"});
      group.iallreduce(in, out, {.algorithm = "full"}).wait();
    }
    // Where a prepared call is what the caller wants, it is an error.
    const col::Call call{.collective = col::Collective::allreduce, .in = in, .out = out};
    expect_error(col::ErrorCode::resource, "no memory to prepare",
                 [&] { static_cast<void>(group.prepare(call, {.algorithm = "full"})); });
  }));
}
