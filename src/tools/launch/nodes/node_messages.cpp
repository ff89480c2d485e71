#include "launch/nodes/node_messages.hpp"

#include <optional>
#include <string>
#include <string_view>

#include <col/store.hpp>

#include "launch/report/report_json.hpp"

namespace col::launch {
namespace {

using nlohmann::json;

// The value of that name; they begin at 0.
template <class Enum>
std::optional<Enum> from_string(std::string_view name, Enum last) noexcept {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (to_string(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string said(const json& message) {
  const auto say = message.find("say");
  return say != message.end() && say->is_string() ? say->get<std::string>() : std::string();
}

ProofSubject node_proof_subject(std::string_view id, std::string_view meeting_nonce, std::string_view node_nonce) {
  return {.purpose = "col-nodes/2", .job = id, .server_nonce = meeting_nonce, .client_nonce = node_nonce};
}

std::string store_token_of(std::string_view secret, std::string_view id, int restart, std::string_view salt) {
  const std::string job = store_job(id, restart);
  return make_proof(secret, ProofRole::server,
                    {.purpose = "col-nodes-store/2", .job = job, .server_nonce = salt, .client_nonce = {}});
}

LimitPassed limit_passed(EndCause cause, int restart) {
  return {.restart = restart, .cause = std::string(to_string(cause))};
}

EndCause end_cause_from_string(std::string_view name) noexcept {
  return from_string(name, EndCause::launcher_failed).value_or(EndCause::launcher_failed);
}

std::optional<ErrorCode> error_code_from_string(std::string_view name) noexcept {
  return from_string(name, ErrorCode::internal);
}

std::string url_host(const std::string& address) {
  return address.find(':') == std::string::npos ? address : "[" + address + "]";
}

}  // namespace col::launch
