#include "launch/nodes/node_messages.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <col/store.hpp>

#include "launch/job/job_spec.hpp"
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

void MessageReader::operator()(const char* name, std::string& value) const {
  if (in(name).is_string()) value = in(name).get<std::string>();
}

void MessageReader::operator()(const char* name, bool& value) const {
  if (in(name).is_boolean()) value = in(name).get<bool>();
}

void MessageReader::operator()(const char* name, int& value) const {
  std::optional<int> number;
  (*this)(name, number);
  if (number) value = *number;
}

void MessageReader::operator()(const char* name, std::optional<int>& value) const {
  const json& number = in(name);
  if (!number.is_number_integer()) return;
  const bool fits = number.is_number_unsigned() ? std::in_range<int>(number.get<std::uint64_t>())
                                                : std::in_range<int>(number.get<std::int64_t>());
  if (fits) value = number.get<int>();
}

void MessageReader::operator()(const char* name, std::vector<int>& value) const {
  for (const json& number : in(name)) {
    if (number.is_number_integer() && number.get<std::int64_t>() >= 0 && number.get<std::int64_t>() <= kMaxRanks)
      value.push_back(number.get<int>());
  }
}

void MessageReader::operator()(const char* name, json& value) const {
  value = in(name);
}

const json& MessageReader::in(const char* name) const {
  static const json kNothing;
  const auto found = message_.find(name);
  return found != message_.end() ? *found : kNothing;
}

std::string said(const json& message) {
  std::string say;
  MessageReader{message}("say", say);
  return say;
}

ProofSubject node_proof_subject(std::string_view id, std::string_view meeting_nonce, std::string_view node_nonce) {
  return {.purpose = "col-nodes/2", .job = id, .server_nonce = meeting_nonce, .client_nonce = node_nonce};
}

std::string store_token_of(std::string_view secret, std::string_view id, int restart, std::string_view salt) {
  const std::string job = store_job(id, restart);
  return make_proof(secret, ProofRole::server,
                    {.purpose = "col-nodes-store/2", .job = job, .server_nonce = salt, .client_nonce = {}});
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
