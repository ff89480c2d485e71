#include "group/diagnosis/failure.hpp"

#include <exception>
#include <filesystem>
#include <fstream>

#include "core/blocked_signal.hpp"
#include "core/log.hpp"
#include "core/own_loss.hpp"
#include "json/json_fields.hpp"
#include "store/base/call_limit.hpp"

namespace col::group {
namespace {

constexpr std::string_view kFailureKey = "failure";

struct Failure {
  ErrorCode code = ErrorCode::internal;
  int rank = -1, world_rank = -1;
  std::string group = {}, message = {};
  bool is_loss = false;
};

template <class Visit>
void fields(Failure& failure, Visit& visit) {
  auto& [code, rank, world_rank, group, message, is_loss] = failure;
  visit("code", code, core::Named{ErrorCode::internal, col::to_string});
  visit("rank", rank);
  visit.optional("world_rank", world_rank);
  visit("group", group);
  visit("message", message);
  visit.if_set("is_loss", is_loss, is_loss);
}

}  // namespace

std::string encode_error(const Error& error) {
  return core::json_line(Failure{error.code(), error.rank(), error.world_rank(), error.group(), error.message(),
                                 error.is_loss() && error.code() != ErrorCode::peer_lost});
}

std::optional<Error> decode_error(std::string_view text) {
  try {
    const auto failure = core::parsed_json<Failure>(text, "failure", core::UnknownMembers::skipped);
    return Error(failure.code, failure.message, failure.group, failure.rank, failure.world_rank, failure.is_loss);
  } catch (const Error&) {  // somebody else's text, so no failure of ours
    return std::nullopt;
  }
}

Error publish_failure(Store& store, const Error& error, int self) noexcept {
  const store::CallLimit limit(kStoreTime);
  try {
    if (const auto before = store.compare_set(kFailureKey, std::nullopt, encode_error(error))) {
      const auto first = decode_error(*before);
      if (first && !core::is_own_loss(*first, self)) return *first;
      // Others must not read what is meant for this rank alone.
      const bool is_told = first && core::as_read_by(self, *first).message() == error.message();
      if (first && !is_told) store.compare_set(kFailureKey, *before, encode_error(error));
    }
  } catch (const std::exception&) {  // see the header: the error stands for itself
  }
  return error;
}

std::optional<Error> failure_in(Store& store) {
  const auto text = store.get(kFailureKey);
  return text ? decode_error(*text) : std::nullopt;
}

std::optional<Error> published_failure(Store& store, int self) {
  const auto failure = failure_in(store);
  return failure ? std::optional(core::as_read_by(self, *failure)) : std::nullopt;
}

void forget_failure(Store& store) noexcept {
  const store::CallLimit limit(kStoreTime);
  try {
    store.erase(kFailureKey);
  } catch (const std::exception&) {  // it goes with the job
  }
}

void write_error_file(const std::string& path, const Error& error) noexcept {
  if (path.empty()) return;
  try {
    const core::BlockedSignal too_long(SIGXFSZ);
    const std::string temporary = path + ".tmp";
    std::ofstream(temporary) << encode_error(error) << '\n';
    std::filesystem::rename(temporary, path);
  } catch (const std::exception& e) {
    core::log::debug("cannot write {}: {}", path, e.what());
  }
}

}  // namespace col::group
