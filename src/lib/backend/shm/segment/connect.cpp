#include "backend/shm/segment/connect.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backend/shm/segment/doorbell.hpp"
#include "backend/shm/segment/names.hpp"
#include "backend/shm/segment/shared_file.hpp"
#include "core/joined.hpp"
#include "core/log.hpp"
#include "core/unique_fd.hpp"
#include "json/json_text.hpp"
#include "store/base/run.hpp"

// What goes through the store: rank 0 makes one offer after the other until all ranks have accepted one. Offer k is
// under offer/k. A rank that maps it shows that in it, and waits there for rank 0's verdict; rank r that cannot map it
// says so under answer/k/r. If rank 0 gives up, the next offer is its error.

namespace col::shm_backend {
namespace {

using nlohmann::json;

// How often rank 0 looks in the store for those who refuse, while others are missing.
constexpr Duration kFirstLook = std::chrono::milliseconds(5), kLongestLook = std::chrono::milliseconds(200);

std::string offer_key(int round) {
  return fmt::format("offer/{}", round);
}
std::string answer_key(int round, int rank) {
  return fmt::format("answer/{}/{}", round, rank);
}

json encode_error(const Error& error) {
  return {{"error", static_cast<int>(error.code())}, {"rank", error.rank()}, {"message", error.message()}};
}

std::uint64_t random_id() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", core::joined(ranks, ", "));
}

// One rank's part in it.
class Connecting {
 public:
  Connecting(const ConnectRequest& request, WaitContext& wait, LocalSegments& local, const Places& places,
             const Tuner& tuner)
      : request_(request),
        names_(request.peers),
        store_(*request.store),
        wait_(wait),
        local_(local),
        places_(places),
        tuner_(tuner) {}

  std::shared_ptr<Segment> run();

 private:
  void lead();
  bool lead_memfd();
  void lead_file();
  std::optional<std::string> offer(json what);
  std::optional<std::string> await_all();
  std::optional<std::string> look_for_answers(std::vector<int>& absent);

  void follow();
  void accept(const json& what);
  bool await_verdict();
  core::UniqueFd open_offered(const json& what) const;
  void take_place() const;

  json read(const std::string& key, int from);
  json decoded(const std::string& text, int from) const;
  void sleep_unless(const std::function<bool()>& look, Duration at_most);
  void require_whole() const;
  void give_up(const Error& error) noexcept;
  Error with_missing(const Error& error);
  void forget_keys();

  const ConnectRequest& request_;
  const Names names_;
  Store& store_;
  WaitContext& wait_;
  LocalSegments& local_;
  const Places& places_;
  const Tuner& tuner_;
  std::shared_ptr<Segment> segment_;  // of the offer that this rank made or accepted last
  int round_ = 0;
  bool has_answers_ = false;  // rank 0: some have refused
  std::string offered_file_;  // a follower's knowledge of it, for the case that rank 0 is killed
};

// ---- Rank 0

void Connecting::lead() {
  if (!places_.use_memfd || !lead_memfd()) lead_file();
  segment_->set_tuning(tuner_(*segment_, segment_->processors().value_or(1)));
  require_whole();
  segment_->decide(Verdict::used);
}

// False when not all ranks can open it, or the kernel does not have it.
bool Connecting::lead_memfd() {
  const core::UniqueFd fd = make_memfd();
  if (!fd) return false;
  segment_ = Segment::create(fd.get(), request_.size, request_.token);
  take_place();
  seal(fd.get());
  const auto refusal = offer({{"pid", ::getpid()}, {"fd", fd.get()}});
  if (refusal) core::log::info("group '{}': {}; trying a file in {}", request_.group, *refusal, places_.files);
  return !refusal;
}

void Connecting::lead_file() {
  const SharedFile file(places_.files);
  segment_ = Segment::create(file.fd(), request_.size, request_.token);
  take_place();
  const auto refusal = offer({{"path", file.path()}});
  if (!refusal) return;
  throw Error(
      ErrorCode::io,
      fmt::format("shm: the ranks cannot share memory, neither through /proc nor through {}: {}; choose another "
                  "backend, or run them in one container",
                  places_.files, *refusal),
      request_.group);
}

// The first reason not to accept it; nothing when all have mapped it.
std::optional<std::string> Connecting::offer(json what) {
  const std::uint64_t id = random_id();
  local_.add(id, segment_);
  what["id"] = id;
  store_.set(offer_key(round_), core::json_text(what));
  const std::optional<std::string> refusal = await_all();
  ++round_;
  if (refusal) segment_->decide(Verdict::abandoned);
  return refusal;
}

std::optional<std::string> Connecting::await_all() {
  std::vector<int> absent(static_cast<std::size_t>(request_.size - 1));
  std::iota(absent.begin(), absent.end(), 1);
  std::optional<std::string> refusal;
  Duration interval = kFirstLook;
  auto next_look = Deadline::Clock::now() + interval;
  const auto is_here = [&](int rank) { return segment_->is_here(rank); };
  wait_.describe([&] { return fmt::format("{} to share memory", ranks_text(absent)); });
  for (;;) {
    std::erase_if(absent, is_here);
    if (absent.empty()) break;
    const auto now = Deadline::Clock::now();
    if (now >= next_look || segment_->aborted()) {
      const auto no = look_for_answers(absent);
      if (!refusal) refusal = no;
      interval = std::min(2 * interval, kLongestLook);
      next_look = now + interval;
    }
    require_whole();
    sleep_unless([&] { return absent.empty() || std::any_of(absent.begin(), absent.end(), is_here); }, next_look - now);
  }
  wait_.describe(std::string("the store to forget an offer"));
  return refusal;
}

// A rank that is here may give up before all are.
void Connecting::require_whole() const {
  if (const auto why = segment_->abort_error()) throw *why;
}

// Takes those off `absent` that refuse, and returns why the first of them does.
std::optional<std::string> Connecting::look_for_answers(std::vector<int>& absent) {
  std::vector<store::Call> calls;
  for (const int rank : absent) calls.push_back(store::Call::get(answer_key(round_, rank)));
  store::run(store_, calls, wait_);
  std::optional<std::string> refusal;
  std::vector<int> silent;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!calls[i].answer) {
      silent.push_back(absent[i]);
      continue;
    }
    const json answer = decoded(*calls[i].answer, absent[i]);
    if (!refusal) refusal = fmt::format("rank {} {}", names_.of(absent[i]), answer.value("no", "refuses it"));
    has_answers_ = true;
  }
  absent = std::move(silent);
  return refusal;
}

// ---- The others

void Connecting::follow() {
  for (;; ++round_) {
    const json what = read(offer_key(round_), 0);
    bool accepted = true;
    try {
      accept(what);
    } catch (const std::system_error& error) {
      accepted = false;
      store_.set(answer_key(round_, request_.rank), core::json_text(json{{"no", error.what()}}));
    }
    if (accepted && await_verdict()) return;
  }
}

// Whether the segment is used. If a rank has given up meanwhile, nobody may be left who makes another offer.
bool Connecting::await_verdict() {
  wait_.describe(fmt::format("rank {} to see that all ranks share memory", names_.of(0)));
  const auto is_decided = [&] { return segment_->verdict() != Verdict::none || segment_->aborted(); };
  while (!is_decided()) sleep_unless(is_decided, Duration::max());
  const Verdict verdict = segment_->verdict();
  if (verdict == Verdict::none) require_whole();
  return verdict == Verdict::used;
}

void Connecting::accept(const json& what) {
  offered_file_ = what.value("path", "");
  segment_ = local_.find(what.at("id").get<std::uint64_t>());
  if (segment_ == nullptr) {
    const core::UniqueFd fd = open_offered(what);
    segment_ = Segment::open(fd.get(), request_.size, request_.token);
    if (segment_ == nullptr) throw std::system_error(ENOENT, std::generic_category(), "found something else there");
  }
  take_place();
}

// Throws system_error when it cannot be opened.
core::UniqueFd Connecting::open_offered(const json& what) const {
  const std::string path = offered_file_.empty() ? fmt::format("{}/{}/fd/{}", places_.processes,
                                                               what.at("pid").get<int>(), what.at("fd").get<int>())
                                                 : offered_file_;
  core::UniqueFd fd = open_regular_file(path);
  if (!fd) throw std::system_error(errno, std::generic_category(), fmt::format("cannot open {}", path));
  return fd;
}

// ---- All

void Connecting::take_place() const {
  segment_->claim(request_.rank);
  segment_->tell_processors(request_.rank);
  if (request_.rank != 0) Doorbell(segment_->place(0).doorbell).ring();
}

// For one slice of the wait at most.
void Connecting::sleep_unless(const std::function<bool()>& look, Duration at_most) {
  try {
    wait_.check();
  } catch (const Error& error) {
    throw error.code() == ErrorCode::timeout ? with_missing(error) : error;
  }
  Doorbell(segment_->place(request_.rank).doorbell).sleep_unless(look, std::min(at_most, wait_.slice()), wait_);
}

// The value of `key`, which rank `from` sets. Throws the error that it gave up with, if it did.
json Connecting::read(const std::string& key, int from) {
  try {
    return decoded(store_.wait(key, wait_), from);
  } catch (const Error& error) {
    throw error.code() == ErrorCode::timeout && error.rank() < 0 ? with_missing(error) : error;
  }
}

json Connecting::decoded(const std::string& text, int from) const {
  json value = core::json_from(text);
  if (!value.is_object())
    throw Error(ErrorCode::internal, fmt::format("shm: unreadable words from rank {} in the store", names_.of(from)),
                request_.group, names_.of(from));
  if (!value.contains("error")) return value;
  const int rank = value.value("rank", -1);
  throw Error(static_cast<ErrorCode>(value["error"].get<int>()), value.value("message", ""), request_.group,
              rank >= 0 ? rank : names_.of(from));
}

// A timeout that names those who have not come.
Error Connecting::with_missing(const Error& error) {
  std::vector<int> missing;
  if (segment_ == nullptr || segment_->verdict() == Verdict::abandoned) {
    missing.push_back(names_.of(0));
  } else {
    for (int rank = 1; rank < request_.size; ++rank) {
      if (!segment_->is_here(rank)) missing.push_back(names_.of(rank));
    }
  }
  if (missing.empty()) return error;
  return Error(error.code(), fmt::format("connecting to {}: {}", ranks_text(missing), error.message()), request_.group,
               missing.front());
}

// Tells those who would wait for this rank.
void Connecting::give_up(const Error& error) noexcept {
  if (!offered_file_.empty()) ::unlink(offered_file_.c_str());
  if (segment_ != nullptr) segment_->abort(names_.of(request_.rank), error);  // some may have begun to use it
  try {
    if (request_.rank == 0) {
      // In the middle of an offer the others wait for the next one, else for this one.
      if (store_.get(offer_key(round_))) ++round_;
      store_.set(offer_key(round_), core::json_text(encode_error(error)));
    } else {
      store_.set(answer_key(round_, request_.rank), core::json_text(encode_error(error)));
    }
  } catch (const std::exception&) {  // the store is what failed: the others' waits end by themselves
  }
}

// Nobody looks at them once all are here.
void Connecting::forget_keys() {
  std::vector<store::Call> calls;
  for (int round = 0; round < round_; ++round) {
    calls.push_back(store::Call::erase(offer_key(round)));
    for (int rank = 1; rank < request_.size && has_answers_; ++rank)
      calls.push_back(store::Call::erase(answer_key(round, rank)));
  }
  store::run(store_, calls, wait_);
}

std::shared_ptr<Segment> Connecting::run() {
  try {
    if (request_.rank == 0) {
      lead();
      forget_keys();
    } else {
      follow();
    }
    return segment_;
  } catch (const Error& error) {
    give_up(error);
    throw;
  } catch (const std::bad_alloc&) {
    const Error error(ErrorCode::resource, "shm: out of memory while connecting; free some", request_.group);
    give_up(error);
    throw error;
  }
}

// The rank that shares no memory with this one, in words.
std::string who_is_elsewhere(const ConnectRequest& request) {
  const auto own = static_cast<std::size_t>(request.rank);
  if (own >= request.peers.size()) return "the ranks are on different machines";
  const PeerInfo& self = request.peers[own];
  const auto is_blind = [](const PeerInfo& peer) { return peer.boot_id.empty() || peer.network_namespace.empty(); };
  const auto blind = std::ranges::find_if(request.peers, is_blind);
  if (blind != request.peers.end())
    return fmt::format("rank {} (host {}) cannot see which machine it is on, as /proc is not mounted there",
                       blind->rank, blind->hostname);
  const auto other = std::find_if(request.peers.begin(), request.peers.end(), [&](const PeerInfo& peer) {
    if (peer.rank == self.rank) return false;
    return peer.boot_id.empty() || peer.boot_id != self.boot_id || peer.network_namespace != self.network_namespace;
  });
  if (other == request.peers.end()) return "the ranks are on different machines";
  return fmt::format("rank {} is on another machine or in another container (host {}; rank {} is on {})", other->rank,
                     other->hostname, self.rank, self.hostname);
}

}  // namespace

void LocalSegments::add(std::uint64_t id, const std::shared_ptr<Segment>& segment) {
  const std::lock_guard lock(mutex_);
  std::erase_if(segments_, [](const auto& entry) { return entry.second.expired(); });
  segments_[id] = segment;
}

std::shared_ptr<Segment> LocalSegments::find(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = segments_.find(id);
  return found == segments_.end() ? nullptr : found->second.lock();
}

std::shared_ptr<Segment> connect_segment(const ConnectRequest& request, WaitContext& wait, LocalSegments& local,
                                         const Places& places, const Tuner& tuner) {
  if (!request.same_host)
    throw Error(ErrorCode::unavailable,
                fmt::format("shm: shared memory needs all ranks on one machine, but {}; choose backend gloo",
                            who_is_elsewhere(request)),
                request.group);
  return Connecting(request, wait, local, places, tuner).run();
}

}  // namespace col::shm_backend
