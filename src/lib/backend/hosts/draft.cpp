// A group of some of the ranks of a group over hosts: its ranks of each host get a place in the memory that they have
// in common, and its wire is begun by this group's wire. A rank says where the place is, and what the wire says.
#include "backend/capabilities.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/hosts/channel.hpp"
#include "backend/hosts/layout.hpp"

namespace col::hosts_backend {
namespace {

using backend::CommonMemoryOps;
using backend::Draft;
using backend::DraftOps;

class HostsDraft final : public Draft {
 public:
  // `near` is the memory of this group's ranks of this host; null if there are none but this one.
  HostsDraft(const ConnectRequest& request, Layout layout, CommonMemoryOps* near, std::unique_ptr<Draft> wire)
      : layout_(std::move(layout)), near_(near), wire_(std::move(wire)) {
    if (layout_.has_neighbours()) near_request_.emplace(layout_, request);
  }

  // The first rank of the host, which makes the place for all of them. Returns false if there is none.
  bool reserve() {
    if (!layout_.has_neighbours() || layout_.near.front() != layout_.rank) return true;
    auto reserved = near_->reserve(near_request_->request);
    if (!reserved) return false;
    place_ = reserved->place;
    channel_ = std::move(reserved->channel);
    return true;
  }

  std::string words() const override {
    std::string words(sizeof place_, '\0');
    std::memcpy(words.data(), &place_, sizeof place_);
    return wire_ != nullptr ? words + wire_->words() : words;
  }

  void hear(std::span<const std::string> words) override {
    if (wire_ != nullptr) {
      std::vector<std::string> of_wire;
      for (const std::string& one : words) of_wire.push_back(one.substr(std::min(one.size(), sizeof place_)));
      wire_->hear(of_wire);
    }
    if (!layout_.has_neighbours() || channel_ != nullptr) return;
    const std::string& first = words[static_cast<std::size_t>(layout_.near.front())];
    std::memcpy(&place_, first.data(), std::min(first.size(), sizeof place_));
    try {
      channel_ = near_->open(place_, near_request_->request);
    } catch (...) {
      failure_ = std::current_exception();  // the ranks of other hosts have to hear of it: see connect()
    }
  }

  std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) override {
    std::unique_ptr<Channel> wire;
    try {
      if (wire_ != nullptr) wire = wire_->connect(wire_request(request), wait);
    } catch (const Error& error) {
      if (channel_ != nullptr) channel_->abort(error);  // neighbours may use it already
      throw;
    } catch (...) {
      if (channel_ != nullptr)
        channel_->abort(Error(ErrorCode::aborted, "hosts: interrupted while connecting", std::string(request.group)));
      throw;
    }
    if (failure_ != nullptr) {
      if (wire != nullptr)
        wire->abort(Error(ErrorCode::aborted, "hosts: no memory for the ranks of a host", std::string(request.group)));
      std::rethrow_exception(failure_);
    }
    if (wire == nullptr) return std::move(channel_);
    // As the group's name says, where nobody has a neighbour; else all ranks have the same kind of channel.
    const std::vector<int> hosts = hosts_of(request.peers);
    if (*std::max_element(hosts.begin(), hosts.end()) + 1 == request.size) return wire;
    return std::make_unique<HostsChannel>(std::string(request.group), std::move(layout_), std::move(channel_),
                                          std::move(wire));
  }

 private:
  Layout layout_;
  CommonMemoryOps* const near_;
  const std::unique_ptr<Draft> wire_;  // null if all ranks are on this host
  std::optional<NearRequest> near_request_;
  std::uint64_t place_ = 0;
  std::unique_ptr<Channel> channel_;  // to the neighbours
  std::exception_ptr failure_;        // why there is none
};

}  // namespace

bool HostsChannel::can_draft() const {
  const DraftOps* const wire = wire_->can().drafts;
  const CommonMemoryOps* const near = common_memory();
  return wire != nullptr && wire->can_draft() && (near_ == nullptr || (near != nullptr && near->has_pool()));
}

std::unique_ptr<Draft> HostsChannel::draft(const ConnectRequest& request, std::span<const int> ranks) {
  enter("draft");
  // As this channel sees it: its sides lead to these ranks.
  Layout layout = layout_.of_some(ranks, request.rank);
  std::unique_ptr<Draft> wire;
  if (!layout.far.empty()) {
    wire = wire_->can().drafts->draft(request, ranks);
    if (wire == nullptr) return nullptr;
  }
  auto draft = std::make_unique<HostsDraft>(request, std::move(layout), common_memory(), std::move(wire));
  if (!draft->reserve()) return nullptr;
  return draft;
}

}  // namespace col::hosts_backend
