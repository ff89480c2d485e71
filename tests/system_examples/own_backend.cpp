// A program with a backend of its own, from public headers alone: it gives every message to the backend "shm", and
// counts. Every rank prints the sum of all ranks' numbers, and whether messages went that way.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <col/channel.hpp>
#include <col/col.hpp>

namespace {

int messages = 0;

class CountingChannel final : public col::Channel {
 public:
  explicit CountingChannel(std::unique_ptr<col::Channel> inner) : inner_(std::move(inner)) {}

  col::Ticket post_send(int peer, std::uint64_t slot, col::ConstTensorView data) override {
    ++messages;
    return inner_->post_send(peer, slot, data);
  }
  col::Ticket post_recv(int peer, std::uint64_t slot, col::TensorView data) override {
    return inner_->post_recv(peer, slot, data);
  }
  std::optional<int> test(col::Ticket ticket) override { return inner_->test(ticket); }
  int wait(col::Ticket ticket, col::WaitContext& wait) override { return inner_->wait(ticket, wait); }
  // None: every call is a plan of messages.
  std::span<const col::NativeEntry> native_entries() const override { return {}; }
  col::Ticket start_native(const col::Request&, col::WaitContext&) override {
    throw col::Error(col::ErrorCode::internal, "counting: there are no native entries");
  }
  void abort(const col::Error& cause) noexcept override { inner_->abort(cause); }

 private:
  const std::unique_ptr<col::Channel> inner_;
};

class CountingBackend final : public col::BackendFactory {
 public:
  std::string_view name() const override { return "counting"; }
  std::optional<std::string> unavailable_reason() const override { return inner().unavailable_reason(); }
  std::unique_ptr<col::Channel> connect(const col::ConnectRequest& request, col::WaitContext& wait) override {
    return std::make_unique<CountingChannel>(inner().connect(request, wait));
  }
  std::string describe(const col::ConnectRequest& request) const override { return inner().describe(request); }

 private:
  static col::BackendFactory& inner() { return *col::find_backend("shm"); }
};

}  // namespace

int main() {
  try {
    col::register_backend(std::make_unique<CountingBackend>());
    const col::ContextSpec place = col::ContextSpec::from_environment();
    col::Context context(place);
    col::Group world =
        context.init_group({.rank = place.rank, .world_size = place.world_size, .backend_name = "counting"});
    std::vector<int> numbers{world.rank() + 1};
    world.allreduce(numbers);
    std::printf("sum %d, %s\n", numbers[0], messages > 0 ? "counted" : "not counted");
    return 0;
  } catch (const col::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
