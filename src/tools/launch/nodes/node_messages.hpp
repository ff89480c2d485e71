// The parts of messages between nodes. Data from the network is never trusted to have the right form: a field that is
// missing, or that has another type, counts as empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <col/error.hpp>
#include <col/proof.hpp>

#include "launch/job/job_result.hpp"

namespace col::launch {

inline constexpr int kNodeProtocol = 2;

// The subject of the proof between a node and the meeting: both belong to rendezvous `id`.
ProofSubject node_proof_subject(std::string_view id, std::string_view meeting_nonce, std::string_view node_nonce);
// The token of the ranks' store. The meeting sends only its salt, so a listener cannot make the token without the
// secret.
std::string store_token_of(std::string_view secret, std::string_view id, int restart, std::string_view salt);

std::string text_in(const nlohmann::json& message, const char* name);
int number_in(const nlohmann::json& message, const char* name, int fallback = 0);
bool flag_in(const nlohmann::json& message, const char* name);
const nlohmann::json& part_in(const nlohmann::json& message, const char* name);  // null when it is missing

EndCause end_cause_from_string(std::string_view name) noexcept;  // launcher_failed if there is none of that name
std::optional<ErrorCode> error_code_from_string(std::string_view name) noexcept;

// An address in the form for a URL: IPv6 in brackets.
std::string url_host(const std::string& address);

}  // namespace col::launch
