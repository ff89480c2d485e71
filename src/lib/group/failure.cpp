#include "group/failure.hpp"

#include <array>

#include <nlohmann/json.hpp>

#include "store/call_limit.hpp"

namespace col::group {
namespace {

using nlohmann::json;

constexpr std::string_view kFailureKey = "failure";

constexpr std::array kCodes = {ErrorCode::invalid_argument,
                               ErrorCode::not_initialized,
                               ErrorCode::already_initialized,
                               ErrorCode::mismatch,
                               ErrorCode::timeout,
                               ErrorCode::peer_lost,
                               ErrorCode::aborted,
                               ErrorCode::unavailable,
                               ErrorCode::resource,
                               ErrorCode::io,
                               ErrorCode::internal};

}  // namespace

std::string encode_error(const Error& error) {
  const json value{{"code", to_string(error.code())},
                   {"rank", error.rank()},
                   {"world_rank", error.world_rank()},
                   {"group", error.group()},
                   {"message", error.message()}};
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::optional<Error> decode_error(std::string_view text) {
  const json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!value.is_object()) return std::nullopt;
  try {
    const auto name = value.at("code").get<std::string>();
    for (const ErrorCode code : kCodes) {
      if (to_string(code) == name)
        return Error(code, value.at("message").get<std::string>(), value.at("group").get<std::string>(),
                     value.at("rank").get<int>(), value.value("world_rank", -1));
    }
  } catch (const json::exception&) {  // a field is missing: somebody else's text, so no failure of ours
  }
  return std::nullopt;
}

Error publish_failure(Store& store, const Error& error) noexcept {
  const store::CallLimit limit(kStoreTime);
  try {
    if (const auto before = store.compare_set(kFailureKey, std::nullopt, encode_error(error))) {
      if (const auto first = decode_error(*before)) return *first;
    }
  } catch (const std::exception&) {  // see the header: the error stands for itself
  }
  return error;
}

std::optional<Error> published_failure(Store& store) {
  const auto text = store.get(kFailureKey);
  return text ? decode_error(*text) : std::nullopt;
}

}  // namespace col::group
