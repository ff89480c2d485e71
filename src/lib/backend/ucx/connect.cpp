#include "backend/ucx/connect.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/duration.hpp"
#include "core/own_loss.hpp"
#include "net/interfaces.hpp"

namespace col::ucx_backend {
namespace {

// Between two looks while ranks connect: what comes wakes it, but a record of the peers does not.
constexpr auto kBetweenLooks = std::chrono::milliseconds(5);
// Who allows a host so long to be silent wants no watch.
constexpr auto kUnwatched = std::chrono::hours(1);
constexpr std::string_view kCount = "entered";
constexpr std::string_view kWord = "word";
// Before the addresses of all hosts.
constexpr std::string_view kComplete = "complete ", kIsWatched = "watched ";

std::string encode(const Error& error) {
  return nlohmann::json{{"code", static_cast<int>(error.code())}, {"rank", error.rank()}, {"message", error.message()}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Error decode(const std::string& text, std::string_view group) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return Error(ErrorCode::internal, "ucx: unreadable failure record: " + text, group);
  return Error(static_cast<ErrorCode>(json.value("code", static_cast<int>(ErrorCode::internal))),
               json.value("message", std::string()), group, json.value("rank", -1));
}

bool can_watch(const ConnectRequest& request, const WaitContext& wait,
               const backend::Module::Environment& environment) {
  const auto limit = environment("COL_HOST_TIMEOUT");
  if (limit && core::parse_duration(*limit).value_or(Duration::zero()) >= kUnwatched) return false;
  if (request.same_host || request.peers.size() != static_cast<std::size_t>(request.size)) return false;
  const RankRecord* const record = wait.record();
  const BackendFactory* const gloo = find_backend(kWatch);
  if ((record != nullptr && record->started_as() >= 0) || gloo == nullptr || gloo->unavailable_reason()) return false;
  try {
    (void)net::choose_interfaces(kWatch, false, names_device(request.socket_ifname) ? "" : request.socket_ifname);
  } catch (const Error&) {
    return false;
  }
  return true;
}

// For the last rank that enters.
std::string word_for_all(const ConnectRequest& request) {
  std::set<std::string> hosts;
  bool is_watched = true;
  for (int rank = 0; rank < request.size; ++rank) {
    const auto text = request.store->get(Record::key(rank));
    const auto record = text ? Record::decode(*text, request.token) : std::nullopt;
    if (record) hosts.insert(record->hosts.begin(), record->hosts.end());
    is_watched = is_watched && record && record->can_watch;
  }
  return fmt::format("{}{}{}", kComplete, is_watched ? kIsWatched : "", as_word({hosts.begin(), hosts.end()}));
}

Meeting try_to_meet(const ConnectRequest& request, WaitContext& wait, const backend::Module::Environment& environment) {
  auto engine = std::make_unique<Engine>(request, environment);
  if (request.size == 1) return {std::move(engine)};
  Record record = engine->record();
  record.can_watch = can_watch(request, wait, environment);
  request.store->set(Record::key(request.rank), record.encode(request.token));
  if (request.store->add(kCount, 1) == request.size)
    request.store->compare_set(kWord, std::nullopt, word_for_all(request));
  const std::string word = request.store->wait(kWord, wait);
  if (!word.starts_with(kComplete)) throw core::as_read_by(request.rank, decode(word, request.group));
  std::string_view hosts = std::string_view(word).substr(kComplete.size());
  const bool is_watched = hosts.starts_with(kIsWatched);
  if (is_watched) hosts.remove_prefix(kIsWatched.size());
  // On one host they listen on the loopback interface alone.
  if (!request.same_host) engine->admit(as_list(hosts));
  wait.describe("the connections to all ranks");
  while (!engine->has_met_all()) {
    engine->progress();
    wait.check();
    engine->sleep(std::min<Duration>(wait.slice(), kBetweenLooks));
  }
  engine->progress();  // which has the new connections probed
  return {std::move(engine), is_watched};
}

// A timeout is about the first rank that has not come.
Error named(const Error& error, const ConnectRequest& request) {
  if (error.code() != ErrorCode::timeout || error.rank() >= 0) return error;
  for (int rank = 0; rank < request.size; ++rank) {
    if (request.store->get(Record::key(rank))) continue;
    return Error(error.code(), fmt::format("connecting to rank {}: {}", rank, error.message()), request.group, rank);
  }
  return error;
}

// The first error that a rank has published; this one, if there is none.
Error publish(const Error& error, const ConnectRequest& request) noexcept {
  try {
    const Error own = named(error, request);
    const auto before = request.store->compare_set(kWord, std::nullopt, encode(own));
    if (!before || before->starts_with(kComplete)) return own;
    const Error first = decode(*before, request.group);
    return core::is_own_loss(first, request.rank) ? own : first;
  } catch (const std::exception&) {
    return error;  // the store is what failed
  }
}

}  // namespace

Meeting meet(const ConnectRequest& request, WaitContext& wait, const backend::Module::Environment& environment) {
  try {
    return try_to_meet(request, wait, environment);
  } catch (const Error& error) {
    throw publish(error, request);
  } catch (const std::bad_alloc&) {
    throw publish(
        Error(ErrorCode::resource, "ucx: out of memory while connecting; free some, or raise the limit", request.group),
        request);
  } catch (...) {  // interrupted: the others must not wait for this rank
    (void)publish(Error(ErrorCode::aborted, fmt::format("rank {} was interrupted while it connected", request.rank),
                        request.group, request.rank),
                  request);
    throw;
  }
}

void leave(Store& store, int rank, int size) noexcept {
  if (size == 1) return;
  try {
    store.erase(Record::key(rank));
    if (store.add(kCount, -1) != 0) return;
    store.erase(kCount);
    store.erase(kWord);
  } catch (const std::exception&) {
  }
}

}  // namespace col::ucx_backend
