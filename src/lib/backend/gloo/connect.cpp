#include "backend/gloo/connect.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backend/far_wait.hpp"
#include "backend/gloo/channel.hpp"
#include "backend/gloo/translate.hpp"
#include "backend/spare_descriptors.hpp"
#include "core/own_loss.hpp"
#include "store/base/run.hpp"

namespace col::gloo_backend {
namespace {

constexpr std::string_view kFailedKey = "failed";
// A rank that failed leaves this in place of its address, for the ranks that wait for the address.
constexpr std::string_view kNoAddress = "failed";
// How often a waiting rank looks whether another one has failed; more seldom if they are many.
constexpr auto kLookInterval = std::chrono::milliseconds(100), kLookForEach = std::chrono::milliseconds(2);
// For the look at who is missing, when there is no time left.
constexpr Duration kLastLook = std::chrono::milliseconds(500);

// What a group takes to begin with: its own, those of the tree, and what the store and others may open meanwhile. More
// are taken when ranks talk.
std::size_t first_descriptors(std::size_t children) {
  return GuardedContext::kDescriptors + std::max<std::size_t>(kMostChildren, children) + 1 + 8;
}

// Groups of so many ranks are connected whole from the start, which takes no more descriptors than the tree of a large
// group. Such a group needs none later.
constexpr int kMostWhole = kMostChildren + 2;

std::string address_key(int rank) {
  return fmt::format("address/{}", rank);
}

// By hosts, where these are known.
Kinship kinship_of(const ConnectRequest& request) {
  if (request.peers.empty()) return Kinship(request.size);
  return Kinship(hosts_of(request.peers));
}

// How one rank tells the others why the group will not come to be.
std::string encode(const Error& error) {
  return nlohmann::json{{"code", static_cast<int>(error.code())}, {"rank", error.rank()}, {"message", error.message()}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Error decode(const std::string& text, std::string_view group) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return Error(ErrorCode::internal, "gloo: unreadable failure record: " + text, group);
  return Error(static_cast<ErrorCode>(json.value("code", static_cast<int>(ErrorCode::internal))),
               json.value("message", std::string()), group, json.value("rank", -1));
}

// Listens.
std::shared_ptr<GuardedContext> open_context(const ConnectRequest& request, const Kinship& kin,
                                             const HeartbeatSpec& heartbeat, const Interface& interface) {
  Membership member{.rank = request.rank,
                    .token = request.token,
                    .kin = kin,
                    .heartbeat = heartbeat,
                    .is_crowded = backend::is_crowded(request)};
  for (const PeerInfo& peer : request.peers) member.host_names.push_back(peer.hostname);
  return std::make_shared<GuardedContext>(interface, std::move(member));
}

// One rank's work to build the mesh, in the order of its functions.
class Connecting {
 public:
  Connecting(const ConnectRequest& request, const HeartbeatSpec& heartbeat, WaitContext& wait)
      : Connecting(request, heartbeat, wait, kinship_of(request)) {}
  Connecting(const ConnectRequest& request, const HeartbeatSpec& heartbeat, WaitContext& wait, Kinship kin)
      : request_(request), heartbeat_(heartbeat), wait_(wait), kin_(std::move(kin)) {}

  std::shared_ptr<Mesh> run();
  // Instead, in a context that knows the addresses of all. `look_at_relatives` throws if one that is awaited has died.
  std::shared_ptr<Mesh> run(std::shared_ptr<GuardedContext> context,
                            const GuardedContext::ExtraCheck& look_at_relatives);
  // The error to throw: the first one that a rank has published. If there is none, this one is published.
  Error publish(const Error& error) noexcept;
  Error translated(const std::exception_ptr& failure);

 private:
  void check_descriptors() const;
  void open();
  void look_later();
  void find_parent();
  store::Call publication();
  void use_address(int peer, const std::string& address);
  void meet();
  void greet();
  void say(const std::vector<int>& peers, std::string text);
  std::string hear(int peer, std::size_t bytes);
  void look_for_failure();
  void forget_addresses();
  Error with_rank(const Error& error) const;
  int first_missing() const;

  const ConnectRequest& request_;
  const HeartbeatSpec heartbeat_;
  WaitContext& wait_;
  const Kinship kin_;
  std::shared_ptr<GuardedContext> context_;
  const int parent_ = kin_.parent_of(request_.rank);
  bool knows_all_ = false;  // where they are
  bool has_published_ = false;
  Deadline::Clock::time_point next_look_{};
};

// Before anything is opened, as all ranks would wait for one that has no descriptor for the store any more.
void Connecting::check_descriptors() const {
  const std::size_t needed = first_descriptors(kin_.children_of(request_.rank).size());
  if (const auto why = backend::why_few_descriptors(needed))
    throw Error(ErrorCode::resource,
                fmt::format("gloo: a group takes {} file descriptors and one for each rank that is talked to, and {}",
                            needed, *why),
                request_.group);
}

void Connecting::open() {
  check_descriptors();
  context_ = open_context(request_, kin_, heartbeat_, choose_interface(request_.same_host, request_.socket_ifname));
  context_->start();
  look_later();
}

void Connecting::look_later() {
  next_look_ = Deadline::Clock::now() + kLookInterval + request_.size * kLookForEach;
}

// Only a rank with children is looked for. It publishes its address, and waits for that of its parent, in one trip.
void Connecting::find_parent() {
  std::vector<store::Call> calls;
  if (!kin_.children_of(request_.rank).empty()) calls.push_back(publication());
  if (parent_ >= 0) {
    wait_.describe(fmt::format("rank {} to publish its address", parent_));
    calls.push_back(store::Call::wait(address_key(parent_)));
  }
  store::run(*request_.store, calls, wait_);
  if (parent_ >= 0) use_address(parent_, calls.back().answer.value_or(""));
}

store::Call Connecting::publication() {
  has_published_ = true;
  return store::Call::set(address_key(request_.rank), std::string(context_->address().encoded()));
}

void Connecting::use_address(int peer, const std::string& address) {
  if (address == kNoAddress) {
    look_for_failure();
    throw Error(ErrorCode::aborted, fmt::format("rank {} could not connect", peer), request_.group, peer);
  }
  if (address.size() != Address::kBytes)
    throw Error(ErrorCode::mismatch, fmt::format("rank {} has published no address", peer), request_.group, peer);
  context_->set_address(peer, Address::decoded(address));
}

// The addresses of all ranks at once, in rank order; each place is Address::kBytes wide.
char* place_of(std::string& roster, int rank) {
  return roster.data() + static_cast<std::size_t>(rank) * Address::kBytes;
}

// Sends the same to all of `peers`, and waits until it is on its way.
void Connecting::say(const std::vector<int>& peers, std::string text) {
  const Buffer send = context_->createUnboundBuffer(text.data(), text.size());
  for (const int peer : peers) send->send(peer, kMeetingSlot, 0, text.size());
  for (std::size_t i = 0; i < peers.size(); ++i) send->waitSend();
}

std::string Connecting::hear(int peer, std::size_t bytes) {
  std::string text(bytes, '\0');
  const Buffer receive = context_->createUnboundBuffer(text.data(), text.size());
  receive->recv(peer, kMeetingSlot, 0, bytes);
  receive->waitRecv();
  return text;
}

// Connects this rank to all others: each rank is called by the lower ones.
void Connecting::greet() {
  const Buffer nothing = context_->createUnboundBuffer(nullptr, 0);
  for (int peer = 0; peer < request_.rank; ++peer) nothing->recv(peer, kGreetingSlot, 0, 0);
  for (int peer = request_.rank + 1; peer < request_.size; ++peer) nothing->send(peer, kGreetingSlot, 0, 0);
  for (int peer = 0; peer < request_.rank; ++peer) nothing->waitRecv();
  for (int peer = request_.rank + 1; peer < request_.size; ++peer) nothing->waitSend();
}

// Messages along the tree. Up: the addresses of a rank and those below it, once they have come. Down: those of
// all. Up, without content: all below have them; and down: so have all. No rank returns, and may leave, before all
// others know that all have come, and look no more whether one has ended before.
void Connecting::meet() {
  const std::vector<int> children = kin_.children_of(request_.rank);
  const std::vector<int> parents = parent_ >= 0 ? std::vector{parent_} : std::vector<int>();
  const auto size = static_cast<std::size_t>(request_.size);
  std::string roster(size * Address::kBytes, '\0');
  context_->address().encoded().copy(place_of(roster, request_.rank), Address::kBytes);
  for (const int child : children) {
    const std::vector<int> below = kin_.subtree_of(child);
    const std::string said = hear(child, below.size() * Address::kBytes);
    const char* next = said.data();
    for (const int peer : below) {
      std::memcpy(place_of(roster, peer), next, Address::kBytes);
      next += Address::kBytes;
    }
  }
  std::string own;
  for (const int peer : kin_.subtree_of(request_.rank)) own.append(place_of(roster, peer), Address::kBytes);
  say(parents, own);
  for (const int parent : parents) roster = hear(parent, roster.size());

  WaitContext unobserved(wait_.deadline(), wait_.page(), wait_.record());
  const GuardedContext::WaitScope scope(*context_, &unobserved);
  say(children, roster);
  for (int peer = 0; peer < request_.size; ++peer) {
    if (peer != request_.rank) context_->set_address(peer, Address::decoded({place_of(roster, peer), Address::kBytes}));
  }
  if (request_.size <= kMostWhole) greet();
  for (const int child : children) hear(child, 0);
  say(parents, {});
  for (const int parent : parents) hear(parent, 0);
  // Their answers are not waited for: a rank that has this word is a member, and may fail in its first call.
  const Buffer nothing = context_->createUnboundBuffer(nullptr, 0);
  for (const int child : children) nothing->send(child, kMeetingSlot, 0, 0);
  for (int peer = 0; peer < request_.size; ++peer) {
    if (peer != request_.rank) context_->set_address(peer, Address::decoded({place_of(roster, peer), Address::kBytes}));
  }
}

void Connecting::look_for_failure() {
  if (Deadline::Clock::now() < next_look_) return;
  look_later();
  if (!has_published_ && !knows_all_) {  // so that those who look for missing ranks see that this one is there
    const store::Call own = publication();
    request_.store->set(own.key, own.value);
  }
  if (const auto text = request_.store->get(kFailedKey))
    throw core::as_read_by(request_.rank, decode(*text, request_.group));
}

// The first rank that has not published its address; -1 if there is none, or the store fails.
int Connecting::first_missing() const {
  std::vector<store::Call> calls;
  for (int peer = 0; peer < request_.size; ++peer) calls.push_back(store::Call::get(address_key(peer)));
  int missing = -1;
  try {
    WaitContext brief(Deadline::after(kLastLook));
    store::run(*request_.store, calls, brief, [&](std::size_t i) {
      const auto peer = static_cast<int>(i);
      if (!calls[i].answer && peer != request_.rank && (missing < 0 || peer < missing)) missing = peer;
      return true;
    });
  } catch (const std::exception&) {
  }
  return missing;
}

// A timeout of the meeting is that of the rank that has not come, of which most ranks hear through others.
Error Connecting::with_rank(const Error& error) const {
  if (error.code() != ErrorCode::timeout || error.rank() >= 0) return error;
  const int peer = first_missing();
  if (peer < 0) return error;
  return Error(error.code(), fmt::format("connecting to rank {}: {}", peer, error.message()), request_.group, peer);
}

std::shared_ptr<Mesh> Connecting::run() {
  open();
  context_->set_extra_check([this](const std::vector<int>&) { look_for_failure(); });
  const GuardedContext::WaitScope scope(*context_, &wait_);
  try {
    find_parent();
    meet();
  } catch (const Error& error) {
    throw with_rank(error);
  }
  forget_addresses();
  context_->set_extra_check({});
  return std::make_shared<Mesh>(context_);
}

// All have come: the old group has told so.
std::shared_ptr<Mesh> Connecting::run(std::shared_ptr<GuardedContext> context,
                                      const GuardedContext::ExtraCheck& look_at_relatives) {
  context_ = std::move(context);
  knows_all_ = true;
  look_later();
  context_->set_extra_check([&](const std::vector<int>& awaited) {
    look_at_relatives(awaited);
    look_for_failure();
  });
  const GuardedContext::WaitScope scope(*context_, &wait_);
  std::vector<int> first;
  if (request_.size <= kMostWhole) {
    for (int peer = 0; peer < request_.size; ++peer) {
      if (peer != request_.rank) first.push_back(peer);
    }
  } else {
    first = kin_.children_of(request_.rank);
    if (parent_ >= 0) first.push_back(parent_);
  }
  context_->connect_to(first);
  context_->start();  // not before: it would wake for everything that this rank waits for
  context_->set_extra_check({});
  return std::make_shared<Mesh>(context_);
}

// Rank 0 those of all ranks with children, as all have found one another; the others what they have published besides.
void Connecting::forget_addresses() {
  const auto has_children = [this](int rank) { return !kin_.children_of(rank).empty(); };
  std::vector<store::Call> calls;
  const auto forget = [&](int rank) { calls.push_back(store::Call::erase(address_key(rank))); };
  for (int rank = 0; request_.rank == 0 && rank < request_.size; ++rank) {
    if (has_children(rank)) forget(rank);
  }
  if (has_published_ && !has_children(request_.rank)) forget(request_.rank);
  WaitContext unobserved(wait_.deadline(), wait_.page(), wait_.record());  // others may have left, as in meet()
  store::run(*request_.store, calls, unobserved);
}

Error Connecting::translated(const std::exception_ptr& failure) {
  const Error error = translate(failure, context_.get(), request_.group, &wait_);
  if (error.code() != ErrorCode::peer_lost) return error;
  return Error(
      ErrorCode::peer_lost,
      fmt::format(
          "the connection to rank {} closed while the group was made: the rank failed, or left; create the group "
          "again. {}",
          error.rank(), error.message()),
      request_.group, error.rank());
}

Error Connecting::publish(const Error& error) noexcept {
  if (error.code() == ErrorCode::resource) {
    // The store may need the descriptors that the connections took.
    context_.reset();
  }
  try {
    const auto before = request_.store->compare_set(kFailedKey, std::nullopt, encode(error));
    if (!knows_all_) request_.store->set(address_key(request_.rank), kNoAddress);
    if (!before) return error;
    const Error first = decode(*before, request_.group);
    return core::is_own_loss(first, request_.rank) ? error : first;
  } catch (const std::exception&) {
    return error;  // the store is what failed; the others will see this rank's connections close
  }
}

// A rank of the new group that its old one connects.
class MeshDraft final : public backend::Draft {
 public:
  MeshDraft(std::shared_ptr<GuardedContext> context, std::span<const int> ranks, std::shared_ptr<Mesh> old)
      : context_(std::move(context)), ranks_(ranks.begin(), ranks.end()), old_(std::move(old)) {}

  std::string words() const override { return context_->address().encoded(); }

  void hear(std::span<const std::string> words) override {
    for (int peer = 0; peer < context_->size; ++peer) {
      const std::string& said = words[static_cast<std::size_t>(peer)];
      if (peer != context_->rank && said.size() == Address::kBytes) context_->set_address(peer, Address::decoded(said));
    }
  }

  std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) override {
    Connecting connecting(request, context_->heartbeat(), wait, context_->kin());
    try {
      auto mesh = connecting.run(std::move(context_),
                                 [&](const std::vector<int>& awaited) { look_at_relatives(awaited, request.group); });
      old_.reset();
      return std::make_unique<GlooChannel>(std::string(request.group), std::move(mesh));
    } catch (...) {
      throw connecting.publish(connecting.translated(std::current_exception()));
    }
  }

 private:
  // The old group hears of a death, also of a rank that is not called here. One that is connected may have returned
  // and ended since.
  void look_at_relatives(const std::vector<int>& awaited, std::string_view group) const {
    std::vector<int> in_old_group;
    for (const int rank : awaited) in_old_group.push_back(ranks_[static_cast<std::size_t>(rank)]);
    const int lost = old_->transport().first_lost(in_old_group);
    if (lost < 0) return;
    const auto rank = static_cast<int>(std::find(ranks_.begin(), ranks_.end(), lost) - ranks_.begin());
    throw Error(ErrorCode::peer_lost, fmt::format("its connection in the old group, as rank {}, has ended", lost),
                group, rank);
  }

  std::shared_ptr<GuardedContext> context_;  // shared with the mesh
  const std::vector<int> ranks_;             // by rank: the rank in the old group
  std::shared_ptr<Mesh> old_;                // shared with the channel of the old group, which may be closed meanwhile
};

}  // namespace

std::unique_ptr<backend::Draft> draft_mesh(const ConnectRequest& request, std::span<const int> ranks,
                                           std::shared_ptr<Mesh> old) {
  const GuardedContext& transport = old->transport();
  const bool is_elsewhere = request.same_host && transport.interface().address != "127.0.0.1";
  const Interface interface = is_elsewhere ? choose_interface(true, {}) : transport.interface();
  auto context = open_context(request, transport.kin().of_some(ranks), transport.heartbeat(), interface);
  return std::make_unique<MeshDraft>(std::move(context), ranks, std::move(old));
}

std::shared_ptr<Mesh> connect_mesh(const ConnectRequest& request, HeartbeatSpec heartbeat, WaitContext& wait) {
  // colrun has started this process. Its launchers watch one another, and may stop all ranks of a host.
  heartbeat.is_watched = wait.record() != nullptr && wait.record()->started_as() >= 0;
  Connecting connecting(request, heartbeat, wait);
  try {
    return connecting.run();
  } catch (...) {
    throw connecting.publish(connecting.translated(std::current_exception()));
  }
}

Error refuse_mesh(const ConnectRequest& request, const Error& error, WaitContext& wait) {
  return Connecting(request, {}, wait).publish(error);
}

}  // namespace col::gloo_backend
