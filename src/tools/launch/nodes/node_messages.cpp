#include "launch/nodes/node_messages.hpp"

#include <limits>

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

ProofSubject node_proof_subject(std::string_view id, std::string_view meeting_nonce, std::string_view node_nonce) {
  return {.purpose = "col-nodes/2", .job = id, .server_nonce = meeting_nonce, .client_nonce = node_nonce};
}

std::string store_token_of(std::string_view secret, std::string_view id, int restart, std::string_view salt) {
  const std::string job = store_job(id, restart);
  return make_proof(secret, ProofRole::server,
                    {.purpose = "col-nodes-store/2", .job = job, .server_nonce = salt, .client_nonce = {}});
}

std::string text_in(const json& message, const char* name) {
  const auto found = message.find(name);
  return found != message.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int number_in(const json& message, const char* name, int fallback) {
  const auto found = message.find(name);
  if (found == message.end() || !found->is_number_integer()) return fallback;
  if (found->is_number_unsigned() && found->get<std::uint64_t>() > std::numeric_limits<int>::max()) return fallback;
  const auto number = found->get<std::int64_t>();
  const bool fits = number >= std::numeric_limits<int>::min() && number <= std::numeric_limits<int>::max();
  return fits ? static_cast<int>(number) : fallback;
}

bool flag_in(const json& message, const char* name) {
  const auto found = message.find(name);
  return found != message.end() && found->is_boolean() && found->get<bool>();
}

const json& part_in(const json& message, const char* name) {
  static const json kNothing;
  const auto found = message.find(name);
  return found != message.end() ? *found : kNothing;
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
