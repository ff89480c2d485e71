#include "simulation/fine_channel.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/capabilities.hpp"

namespace col::test {
namespace {

// One that its ranks start and end later, and one that runs to its end.
constexpr std::array kEntries = {
    NativeEntry{.collective = Collective::broadcast, .name = kOwnAlgorithm, .asynchronous = true},
    NativeEntry{.collective = Collective::scatter, .name = kOwnAlgorithm}};

// Tickets of collectives, above those of messages.
constexpr std::uint64_t kOfCollective = std::uint64_t{1} << 62;

class FineChannel : public Channel, public backend::ImmediateOps, public backend::HoldingOps {
 public:
  // `can`: of the whole channel.
  FineChannel(std::unique_ptr<Channel> inner, const ConnectRequest& request, const Capabilities& can)
      : Channel(can),
        inner_(std::move(inner)),
        extras_(dynamic_cast<MemoryExtras&>(*inner_)),
        rank_(request.rank),
        size_(request.size) {}

  Ticket post_send(int peer, std::uint64_t slot, ConstTensorView data) override {
    return inner_->post_send(peer, slot, data);
  }
  Ticket post_recv(int peer, std::uint64_t slot, TensorView data) override {
    return inner_->post_recv(peer, slot, data);
  }

  std::optional<int> test(Ticket ticket) override {
    if (ticket.id < kOfCollective) return inner_->test(ticket);
    std::vector<Ticket>& messages = collectives_.at(ticket.id);
    while (!messages.empty() && inner_->test(messages.back())) messages.pop_back();
    if (!messages.empty()) return std::nullopt;
    collectives_.erase(ticket.id);
    return rank_;
  }
  int wait(Ticket ticket, WaitContext& wait) override {
    if (ticket.id < kOfCollective) return inner_->wait(ticket, wait);
    std::vector<Ticket>& messages = collectives_.at(ticket.id);
    for (; !messages.empty(); messages.pop_back()) inner_->wait(messages.back(), wait);
    collectives_.erase(ticket.id);
    return rank_;
  }

  std::span<const NativeEntry> native_entries() const override { return kEntries; }
  Ticket start_native(const Request& request, WaitContext& wait) override {
    std::vector<Ticket> messages = request.collective == Collective::broadcast ? broadcast(request) : scatter(request);
    if (request.collective == Collective::broadcast) {
      const Ticket ticket{kOfCollective + ++started_};
      collectives_.emplace(ticket.id, std::move(messages));
      return ticket;
    }
    for (const Ticket message : messages) inner_->wait(message, wait);
    return kEnded;
  }

  void abort(const Error& cause) noexcept override { inner_->abort(cause); }

  bool send_immediate(int peer, std::uint64_t slot, ConstTensorView data) noexcept override {
    if (!is_small(data)) return false;
    try {
      return inner_->test(inner_->post_send(peer, slot, data)).has_value();
    } catch (const Error&) {  // whoever posts it next hears the same
      return false;
    }
  }
  bool receive_immediate(int peer, std::uint64_t slot, TensorView data) noexcept override {
    return is_small(data) && extras_.take_at_once(peer, slot, data);
  }

  // Nothing is held back.
  std::optional<int> look(Ticket ticket) override { return test(ticket); }
  void hand_over() override {}

 private:
  static bool is_small(ConstTensorView data) { return data.bytes() <= 1024; }

  std::vector<Ticket> broadcast(const Request& request) {
    std::vector<Ticket> messages;
    if (rank_ != request.root) return {inner_->post_recv(request.root, request.fingerprint, request.out)};
    for (int rank = 0; rank < size_; ++rank) {
      if (rank != rank_) messages.push_back(inner_->post_send(rank, request.fingerprint, request.out));
    }
    return messages;
  }
  std::vector<Ticket> scatter(const Request& request) {
    std::vector<Ticket> messages;
    if (rank_ != request.root) return {inner_->post_recv(request.root, request.fingerprint, request.out)};
    const std::size_t bytes = request.out.bytes();
    for (int rank = 0; rank < size_; ++rank) {
      const auto* const block = static_cast<const std::byte*>(request.in.data) + static_cast<std::size_t>(rank) * bytes;
      if (rank != rank_)
        messages.push_back(
            inner_->post_send(rank, request.fingerprint, ConstTensorView(block, request.out.count, request.out.dtype)));
      else if (bytes > 0 && block != request.out.data)
        std::copy_n(block, bytes, static_cast<std::byte*>(request.out.data));
    }
    return messages;
  }

  const std::unique_ptr<Channel> inner_;
  MemoryExtras& extras_;
  const int rank_, size_;
  std::uint64_t started_ = 0;
  std::map<std::uint64_t, std::vector<Ticket>> collectives_;  // messages of those in flight, by ticket
};

BackendFactory& memory();

class PlantingChannel final : public FineChannel, public backend::CommonMemoryOps {
 public:
  PlantingChannel(std::unique_ptr<Channel> inner, const ConnectRequest& request)
      : FineChannel(std::move(inner), request, {.immediate = this, .common_memory = this, .holding = this}) {}

  bool has_pool() const override { return true; }
  // One group in some finds no room.
  std::optional<Reserved> reserve(const ConnectRequest& request) override {
    if (request.token % 5 == 0) return std::nullopt;
    return Reserved{.place = request.token, .channel = open(request.token, request)};
  }
  std::unique_ptr<Channel> open(std::uint64_t /*place*/, const ConnectRequest& request) override {
    return std::make_unique<PlantingChannel>(connect_at_once(memory(), request), request);
  }
  std::optional<int> post_farewell(std::string_view /*words*/) override { return std::nullopt; }
  std::optional<std::string> farewell_of(int /*rank*/) const override { return std::nullopt; }
};

class DraftingChannel final : public FineChannel, public backend::DraftOps {
 public:
  DraftingChannel(std::unique_ptr<Channel> inner, const ConnectRequest& request)
      : FineChannel(std::move(inner), request, {.immediate = this, .drafts = this, .holding = this}) {}

  bool can_draft() const override { return true; }
  std::unique_ptr<backend::Draft> draft(const ConnectRequest& request, std::span<const int> ranks) override;
};

class SimulatedDraft final : public backend::Draft {
 public:
  std::string words() const override { return "draft"; }
  void hear(std::span<const std::string> /*words*/) override {}
  std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) override {
    return std::make_unique<DraftingChannel>(memory().connect(request, wait), request);
  }
};

// One rank in some cannot.
std::unique_ptr<backend::Draft> DraftingChannel::draft(const ConnectRequest& request, std::span<const int> /*ranks*/) {
  if (request.token % 5 == 0 && request.rank == 1) return nullptr;
  return std::make_unique<SimulatedDraft>();
}

std::function<Network*()>& network() {
  static std::function<Network*()> current;
  return current;
}

// Messages end as soon as they are sent.
BackendFactory& memory() {
  static const std::unique_ptr<BackendFactory> one =
      make_memory_backend({.name = "inside", .rendezvous = false, .network = network()});
  return *one;
}

template <class FineKind>
class FineBackend final : public BackendFactory {
 public:
  explicit FineBackend(std::string_view name) : name_(name) {}

  std::string_view name() const override { return name_; }
  std::optional<std::string> unavailable_reason() const override { return std::nullopt; }
  std::string describe(const ConnectRequest& request) const override { return memory().describe(request); }
  std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) override {
    return std::make_unique<FineKind>(memory().connect(request, wait), request);
  }

 private:
  const std::string_view name_;
};

}  // namespace

std::string_view backend_of(ChannelKind kind) {
  return kind == ChannelKind::plain      ? "simulated"
         : kind == ChannelKind::planting ? "simulated_planting"
                                         : "simulated_drafting";
}

void register_simulated_backends(const std::function<Network*()>& of_this_moment) {
  if (network()) return;
  network() = of_this_moment;
  register_memory_backend({.name = std::string(backend_of(ChannelKind::plain)), .network = of_this_moment});
  register_backend(std::make_unique<FineBackend<PlantingChannel>>(backend_of(ChannelKind::planting)));
  register_backend(std::make_unique<FineBackend<DraftingChannel>>(backend_of(ChannelKind::drafting)));
}

}  // namespace col::test
