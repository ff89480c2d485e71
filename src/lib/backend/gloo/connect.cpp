#include "backend/gloo/connect.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <nlohmann/json.hpp>

#include <col/proof.hpp>

#include "backend/gloo/translate.hpp"
#include "core/blocked_signal.hpp"

namespace col::gloo_backend {
namespace {

constexpr std::string_view kFailedKey = "failed";
// A rank that failed leaves this in place of its address, for the ranks that wait for the address.
constexpr std::string_view kNoAddress = "failed";
// How often a waiting rank looks whether another one has failed.
constexpr auto kLookInterval = std::chrono::milliseconds(100);

// Beyond one per connection: the event loop's, and what the store and others may open meanwhile.
constexpr rlim_t kSpareDescriptors = 8;

std::string address_key(int rank) {
  return fmt::format("address/{}", rank);
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

// What two ranks say to each other when both have read the other's address. Where Gloo connects without an introduction
// (Handshaking), it is what proves who they are; each connection has its own, and no later group has the secret.
using Arrival = std::array<char, kProofBytes>;

ProofSubject arrival_of(std::string_view connection) {
  return {.purpose = "col-gloo-arrival/1", .job = connection, .server_nonce = {}, .client_nonce = {}};
}

// One rank's work to build the mesh, in the order of its functions.
class Connecting {
 public:
  Connecting(const ConnectRequest& request, WaitContext& wait) : request_(request), wait_(wait) {}

  std::shared_ptr<Mesh> run();
  // The error to throw: the first one that a rank has published. If there is none, this one is published.
  Error publish(const Error& error) noexcept;
  Error translated(const std::exception_ptr& failure);
  void give_up(const Error& error);

 private:
  void check_descriptors() const;
  void open();
  void publish_addresses();
  void connect_to(int peer);
  void exchange_arrivals();
  std::string arrival(int from, int to) const;
  void check_arrival(int peer, const Arrival& said) const;
  void look_for_failure();
  Error with_rank(const Error& error, int peer) const;

  const ConnectRequest& request_;
  WaitContext& wait_;
  std::shared_ptr<LoopDevice> device_;
  std::shared_ptr<GuardedContext> context_;
  Deadline::Clock::time_point next_look_{};
};

// Before anything is opened: in the middle of connecting, newer versions of Gloo do not survive running out.
void Connecting::check_descriptors() const {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const std::unique_ptr<DIR, int (*)(DIR*)> open_ones(opendir("/proc/self/fd"), &closedir);
  rlim_t used = 0;
  while (open_ones != nullptr && readdir(open_ones.get()) != nullptr) ++used;
  const rlim_t needed = static_cast<rlim_t>(request_.size) + kSpareDescriptors;
  // A directory that cannot be opened is a limit that has been reached.
  if (open_ones != nullptr && used + needed <= limit.rlim_cur) return;
  throw Error(
      ErrorCode::resource,
      fmt::format("gloo: connecting {} ranks takes {} file descriptors, and of the limit of {} this process uses "
                  "{}; raise it (ulimit -n) or close some",
                  request_.size, needed, limit.rlim_cur,
                  open_ones != nullptr ? std::to_string(used) : std::string("all")),
      request_.group);
}

void Connecting::open() {
  check_descriptors();
  device_ = LoopDevice::create(device_attributes(choose_interface(request_.same_host, request_.socket_ifname)));
  context_ = std::make_shared<GuardedContext>(device_, request_.rank, request_.size, request_.token);
  (void)make_proof({}, ProofRole::server, {});  // here, where it may fail, and not on the event thread
  for (int peer = 0; peer < request_.size; ++peer) {
    if (peer != request_.rank) context_->createPair(peer);
  }
}

// One value with the address of each connection, in rank order, and what peers need to connect there; this rank's own
// place is filled with zeros.
void Connecting::publish_addresses() {
  std::string all;
  std::size_t bytes_each = 0;
  for (int peer = 0; peer < request_.size; ++peer) {
    if (peer == request_.rank) continue;
    const std::vector<char> bytes = context_->getPair(peer)->address().bytes();
    bytes_each = bytes.size();
    all.append(bytes.data(), bytes.size());
  }
  all.insert(static_cast<std::size_t>(request_.rank) * bytes_each, bytes_each, '\0');
  request_.store->set(address_key(request_.rank), all + context_->credentials().secret(request_.rank));
}

void Connecting::connect_to(int peer) {
  const std::string all = request_.store->wait(address_key(peer), wait_);
  if (all == kNoAddress) {
    look_for_failure();
    throw Error(ErrorCode::aborted, fmt::format("rank {} could not connect", peer), request_.group, peer);
  }
  if (all.size() < kNonceBytes)
    throw Error(ErrorCode::mismatch, fmt::format("rank {} has published no address", peer), request_.group, peer);
  context_->credentials().set_secret(peer, all.substr(all.size() - kNonceBytes));
  const std::size_t bytes_each = (all.size() - kNonceBytes) / static_cast<std::size_t>(request_.size);
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(bytes_each * static_cast<std::size_t>(request_.rank));
  context_->getPair(peer)->connect(std::vector<char>(begin, begin + static_cast<std::ptrdiff_t>(bytes_each)));
}

std::string Connecting::arrival(int from, int to) const {
  const Credentials& known = context_->credentials();
  const std::string connection = known.connection(from, to);
  return make_proof(known.secret(to), ProofRole::client, arrival_of(connection));
}

void Connecting::check_arrival(int peer, const Arrival& said) const {
  const Credentials& known = context_->credentials();
  const std::string connection = known.connection(peer, request_.rank);
  if (is_proof({said.data(), said.size()}, known.secret(request_.rank), ProofRole::client, arrival_of(connection)))
    return;
  throw Error(
      ErrorCode::mismatch,
      fmt::format("the connection to rank {} leads to somebody else: a process of another job or group took its "
                  "port; create the group again",
                  peer),
      request_.group, peer);
}

void Connecting::exchange_arrivals() {
  const auto n = static_cast<std::size_t>(request_.size);
  std::vector<std::string> own(n);
  std::vector<Arrival> said(n);
  // Buffers for each peer, so that a failure is that peer's.
  std::vector<Buffer> send(n), receive(n);
  for (int peer = 0; peer < request_.size; ++peer) {
    if (peer == request_.rank) continue;
    const auto p = static_cast<std::size_t>(peer);
    own[p] = arrival(request_.rank, peer);
    receive[p] = context_->createUnboundBuffer(said[p].data(), said[p].size());
    receive[p]->recv(peer, kProofSlot, 0, said[p].size());
    send[p] = context_->createUnboundBuffer(own[p].data(), own[p].size());
    send[p]->send(peer, kProofSlot, 0, own[p].size());
  }
  for (int peer = 0; peer < request_.size; ++peer) {
    if (peer == request_.rank) continue;
    receive[static_cast<std::size_t>(peer)]->waitRecv();
    check_arrival(peer, said[static_cast<std::size_t>(peer)]);
  }
  for (int peer = 0; peer < request_.size; ++peer) {
    if (peer != request_.rank) send[static_cast<std::size_t>(peer)]->waitSend();
  }
}

void Connecting::look_for_failure() {
  const auto now = Deadline::Clock::now();
  if (now < next_look_) return;
  next_look_ = now + kLookInterval;
  if (const auto text = request_.store->get(kFailedKey)) throw decode(*text, request_.group);
}

Error Connecting::with_rank(const Error& error, int peer) const {
  if (error.code() != ErrorCode::timeout || error.rank() >= 0) return error;
  return Error(error.code(), fmt::format("connecting to rank {}: {}", peer, error.message()), request_.group, peer);
}

std::shared_ptr<Mesh> Connecting::run() {
  open();
  device_->ticker().start();
  context_->set_extra_check([this] { look_for_failure(); });
  const GuardedContext::WaitScope scope(*context_, &wait_);
  publish_addresses();
  for (int peer = 0; peer < request_.size; ++peer) {
    if (peer == request_.rank) continue;
    try {
      connect_to(peer);
    } catch (const Error& error) {
      throw with_rank(error, peer);
    }
  }
  exchange_arrivals();
  // A peer says that it has arrived after it has read the address, so nobody will look for it any more.
  request_.store->erase(address_key(request_.rank));
  context_->set_extra_check({});
  device_->ticker().stop();
  return std::make_shared<Mesh>(device_, context_);
}

Error Connecting::translated(const std::exception_ptr& failure) {
  const Error error = translate(failure, context_.get(), request_.group, &wait_);
  if (error.code() != ErrorCode::peer_lost) return error;
  return Error(
      ErrorCode::peer_lost,
      fmt::format("the connection to rank {} closed before it proved to be that rank: the rank failed, or left; create "
                  "the group again. {}",
                  error.rank(), error.message()),
      request_.group, error.rank());
}

Error Connecting::publish(const Error& error) noexcept {
  if (error.code() == ErrorCode::resource) {
    // The store may need the descriptors that the connections took.
    give_up(error);
    context_.reset();
    device_.reset();
  }
  try {
    const auto before = request_.store->compare_set(kFailedKey, std::nullopt, encode(error));
    request_.store->set(address_key(request_.rank), kNoAddress);
    return before ? decode(*before, request_.group) : error;
  } catch (const std::exception&) {
    return error;  // the store is what failed; the others will see this rank's connections close
  }
}

void Connecting::give_up(const Error& error) {
  if (!LoopDevice::kOutlivesGroups || context_ == nullptr) return;
  // The device's listener keeps callbacks into connections that were not made yet, and calls them when a late peer
  // comes.
  context_->set_extra_check({});
  context_->break_off(error);
  [[maybe_unused]] auto* const kept = new std::shared_ptr<GuardedContext>(std::move(context_));
}

}  // namespace

std::shared_ptr<Mesh> connect_mesh(const ConnectRequest& request, WaitContext& wait) {
  const core::BlockedSignal sigpipe(SIGPIPE);
  Connecting connecting(request, wait);
  try {
    return connecting.run();
  } catch (...) {
    const Error error = connecting.publish(connecting.translated(std::current_exception()));
    connecting.give_up(error);
    throw error;
  }
}

}  // namespace col::gloo_backend
