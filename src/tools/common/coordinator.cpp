#include "common/coordinator.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <exception>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <col/job.hpp>

namespace col::tools {
namespace {

// Looks after the rank that is waited for.
class Watch final : public WaitObserver {
 public:
  Watch(const ContextSpec& spec, int rank) : spec_(spec), rank_(rank) {}

  bool on_slow(Duration) override {
    // One host: a rank's number in the job is that among its local ranks.
    if (!spec_.control || rank_ >= spec_.control->local_ranks()) return false;
    const RankRecord& record = spec_.control->record(rank_);
    if (record.lost())
      throw Error(ErrorCode::peer_lost, fmt::format("rank {} (pid {}) has died", rank_, record.read().pid), {}, rank_);
    return false;
  }

  void on_timeout(Duration budget) override {
    throw Error(ErrorCode::timeout,
                fmt::format("rank {} has not answered for {} s", rank_,
                            std::chrono::duration_cast<std::chrono::seconds>(budget).count()),
                {}, rank_);
  }

 private:
  const ContextSpec& spec_;
  int rank_;
};

class StoreCoordinator final : public Coordinator {
 public:
  StoreCoordinator(Store& store, const ContextSpec& spec, std::string name)
      : store_(store), spec_(spec), name_(std::move(name)) {}

 private:
  void send(const std::string& order) override { store_.set(order_key(), order); }
  std::string receive(Duration patience) override { return wait(order_key(), 0, patience); }
  void answer(const std::string& text) override { store_.set(answer_key(spec_.rank), text); }

  std::vector<std::string> gather(const std::string& own, Duration limit) override {
    std::vector<std::string> answers = {own};
    for (int rank = 1; rank < spec_.world_size; ++rank) answers.push_back(wait(answer_key(rank), rank, limit));
    store_.erase(order_key());
    for (int rank = 1; rank < spec_.world_size; ++rank) store_.erase(answer_key(rank));
    return answers;
  }

  std::string order_key() const { return fmt::format("{}/order/{}", name_, number_); }
  std::string answer_key(int rank) const { return fmt::format("{}/answer/{}/{}", name_, number_, rank); }

  std::string wait(const std::string& key, int rank, Duration limit) {
    Watch watch(spec_, rank);
    WaitContext context(Deadline::after(limit), spec_.control.get(), nullptr, &watch);
    return store_.wait(key, context);
  }

  Store& store_;
  const ContextSpec& spec_;
  std::string name_;
};

// The beginning of an order. What does not fit follows in a broadcast of its own.
struct OrderHead {
  std::uint64_t size = 0;
  std::array<char, 64> begin = {};
};

class GroupCoordinator final : public Coordinator {
 public:
  explicit GroupCoordinator(Group group) : group_(std::move(group)) {}

 private:
  void send(const std::string& order) override {
    OrderHead head{.size = order.size()};
    std::memcpy(head.begin.data(), order.data(), std::min(order.size(), head.begin.size()));
    group_.broadcast(bytes_of(head));
    if (order.size() <= head.begin.size()) return;
    std::string rest = order.substr(head.begin.size());
    group_.broadcast(std::span(reinterpret_cast<std::byte*>(rest.data()), rest.size()));
  }

  std::string receive(Duration patience) override {
    OrderHead head;
    group_.broadcast(bytes_of(head), {.timeout = patience});
    std::string order(head.begin.data(), std::min<std::size_t>(head.size, head.begin.size()));
    if (head.size <= head.begin.size()) return order;
    order.resize(head.size);
    group_.broadcast(std::as_writable_bytes(std::span(order).subspan(head.begin.size())));
    return order;
  }

  void answer(const std::string& text) override { group_.gather_object(text); }
  std::vector<std::string> gather(const std::string& own, Duration limit) override {
    return group_.gather_object(own, {.timeout = limit});
  }

  static std::span<std::byte> bytes_of(OrderHead& head) { return std::as_writable_bytes(std::span(&head, 1)); }

  Group group_;
};

}  // namespace

std::vector<std::string> Coordinator::give(const std::string& order, Duration limit, const CarryOut& carry_out) {
  send(order);
  const std::string own = carry_out(number_, order);
  std::vector<std::string> answers = gather(own, limit);
  ++number_;
  return answers;
}

// The last order is empty.
void Coordinator::dismiss() noexcept {
  try {
    send({});
  } catch (const std::exception&) {  // they are gone already, or find out that rank 0 is
  }
}

void Coordinator::follow(Duration patience, const CarryOut& carry_out) {
  for (;; ++number_) {
    const std::string order = receive(patience);
    if (order.empty()) return;
    answer(carry_out(number_, order));
  }
}

std::unique_ptr<Coordinator> coordinator_over(Store& store, const ContextSpec& spec, const std::string& name) {
  return std::make_unique<StoreCoordinator>(store, spec, name);
}

std::unique_ptr<Coordinator> coordinator_over(Group group) {
  return std::make_unique<GroupCoordinator>(std::move(group));
}

}  // namespace col::tools
