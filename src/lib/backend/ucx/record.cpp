#include "backend/ucx/record.hpp"

#include <sstream>

#include <fmt/format.h>

#include <col/proof.hpp>

#include "core/joined.hpp"

namespace col::ucx_backend {
namespace {

constexpr std::string_view kEmpty = "-", kCanWatch = "watches";

std::string proof_of_token(std::uint64_t token, std::string_view secret) {
  return make_proof(fmt::format("{:016x}", token), ProofRole::server,
                    {.purpose = "col-ucx-record/1", .server_nonce = secret, .client_nonce = {}});
}

}  // namespace

std::string as_word(const std::vector<std::string>& list) {
  return list.empty() ? std::string(kEmpty) : core::joined(list, ",");
}

std::vector<std::string> as_list(std::string_view word) {
  std::vector<std::string> list;
  if (word == kEmpty) return list;
  std::istringstream words{std::string(word)};
  for (std::string one; std::getline(words, one, ',');) list.push_back(one);
  return list;
}

std::string Record::encode(std::uint64_t token) const {
  return fmt::format("{} {} {} {} {}\n{}", secret, proof_of_token(token, secret), as_word(listens), as_word(hosts),
                     can_watch ? kCanWatch : kEmpty, address);
}

std::optional<Record> Record::decode(std::string_view text, std::uint64_t token) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  std::istringstream words{std::string(text.substr(0, end))};
  std::string proof, listens, hosts, watches;
  Record record;
  words >> record.secret >> proof >> listens >> hosts >> watches;
  if (!words || record.secret.size() != kNonceBytes || proof != proof_of_token(token, record.secret))
    return std::nullopt;
  record.listens = as_list(listens);
  record.hosts = as_list(hosts);
  record.can_watch = watches == kCanWatch;
  record.address = text.substr(end + 1);
  return record;
}

std::string Record::key(int rank) {
  return fmt::format("address/{}", rank);
}

}  // namespace col::ucx_backend
