#include "group/join/member.hpp"

#include <fmt/format.h>

#include <col/error.hpp>

#include "json/json_fields.hpp"

namespace col::group {

template <class Visit>
void fields(Member& member, Visit& visit) {
  auto& [world_size, backend, protocol, nonce, process_nonce, pid_namespace, uses_gpu, gpu, no_nccl, alone_on_gpu,
         peer] = member;
  auto& [rank, global_rank, pid, hostname, boot_id, network_namespace] = peer;
  visit("world_size", world_size);
  visit("backend", backend);
  visit("protocol", protocol);
  visit("nonce", nonce);
  visit("process_nonce", process_nonce);
  visit("pid_namespace", pid_namespace);
  visit("uses_gpu", uses_gpu);
  visit("gpu", gpu);
  visit("no_nccl", no_nccl);
  visit("alone_on_gpu", alone_on_gpu);
  visit("rank", rank);
  visit("global_rank", global_rank);
  visit("pid", pid);
  visit("hostname", hostname);
  visit("boot_id", boot_id);
  visit("network_namespace", network_namespace);
}

template <class Visit>
void fields(GroupRecord& record, Visit& visit) {
  auto& [id, world_size, backend, global_ranks] = record;
  visit("id", id);
  visit("world_size", world_size);
  visit("backend", backend);
  visit("ranks", global_ranks);
}

namespace {

template <class T>
T decoded(std::string_view text, std::string_view what) {
  try {
    return core::parsed_json<T>(text, std::string(what), core::UnknownMembers::skipped);
  } catch (const Error& error) {
    throw Error(ErrorCode::internal,
                fmt::format("the {} in the store cannot be read ({}); is the store shared with another program?", what,
                            error.message()));
  }
}

}  // namespace

// Names are arbitrary bytes, JSON strings are UTF-8: what is not is replaced. They are for messages and comparison.
std::string Member::encode() const {
  return core::json_line(*this);
}

Member Member::decode(std::string_view text) {
  return decoded<Member>(text, "announcement of a rank");
}

std::string encode_roster(const std::vector<Member>& members) {
  return core::json_line(members);
}

std::vector<Member> decode_roster(std::string_view text) {
  return decoded<std::vector<Member>>(text, "roster of a group");
}

std::string GroupRecord::encode() const {
  return core::json_line(*this);
}

GroupRecord GroupRecord::decode(std::string_view text) {
  return decoded<GroupRecord>(text, "record of a group");
}

std::string record_key(std::string_view group) {
  return "group record/" + std::string(group);
}

}  // namespace col::group
