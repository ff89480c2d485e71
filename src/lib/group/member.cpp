#include "group/member.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <col/error.hpp>

namespace col::group {
namespace {

using nlohmann::json;

// Names are arbitrary bytes, JSON strings are UTF-8: replace what is not, the fields are for messages and comparison.
std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

template <class Read>
auto parse(std::string_view what, std::string_view text, Read read) {
  try {
    return read(json::parse(text));
  } catch (const json::exception& e) {
    throw Error(ErrorCode::internal,
                fmt::format("the {} in the store cannot be read ({}); is the store shared with another program?", what,
                            e.what()));
  }
}

json to_json(const Member& member) {
  const PeerInfo& peer = member.peer;
  return {{"world_size", member.world_size},
          {"backend", member.backend},
          {"protocol", member.protocol},
          {"nonce", member.nonce},
          {"process_nonce", member.process_nonce},
          {"pid_namespace", member.pid_namespace},
          {"uses_gpu", member.uses_gpu},
          {"gpu", member.gpu},
          {"no_nccl", member.no_nccl},
          {"alone_on_gpu", member.alone_on_gpu},
          {"rank", peer.rank},
          {"global_rank", peer.global_rank},
          {"pid", peer.pid},
          {"hostname", peer.hostname},
          {"boot_id", peer.boot_id},
          {"network_namespace", peer.network_namespace}};
}

Member from_json(const json& value) {
  Member member;
  value.at("world_size").get_to(member.world_size);
  value.at("backend").get_to(member.backend);
  value.at("protocol").get_to(member.protocol);
  value.at("nonce").get_to(member.nonce);
  value.at("process_nonce").get_to(member.process_nonce);
  value.at("pid_namespace").get_to(member.pid_namespace);
  value.at("uses_gpu").get_to(member.uses_gpu);
  value.at("gpu").get_to(member.gpu);
  value.at("no_nccl").get_to(member.no_nccl);
  value.at("alone_on_gpu").get_to(member.alone_on_gpu);
  value.at("rank").get_to(member.peer.rank);
  value.at("global_rank").get_to(member.peer.global_rank);
  value.at("pid").get_to(member.peer.pid);
  value.at("hostname").get_to(member.peer.hostname);
  value.at("boot_id").get_to(member.peer.boot_id);
  value.at("network_namespace").get_to(member.peer.network_namespace);
  return member;
}

}  // namespace

std::string Member::encode() const {
  return dump(to_json(*this));
}

Member Member::decode(std::string_view text) {
  return parse("announcement of a rank", text, from_json);
}

std::string encode_roster(const std::vector<Member>& members) {
  json list = json::array();
  for (const Member& member : members) list.push_back(to_json(member));
  return dump(list);
}

std::vector<Member> decode_roster(std::string_view text) {
  return parse("roster of a group", text, [](const json& list) {
    std::vector<Member> members;
    for (const json& value : list) members.push_back(from_json(value));
    return members;
  });
}

std::string GroupRecord::encode() const {
  return dump(json{{"id", id}, {"world_size", world_size}, {"backend", backend}, {"ranks", global_ranks}});
}

GroupRecord GroupRecord::decode(std::string_view text) {
  return parse("record of a group", text, [](const json& value) {
    GroupRecord record;
    value.at("id").get_to(record.id);
    value.at("world_size").get_to(record.world_size);
    value.at("backend").get_to(record.backend);
    value.at("ranks").get_to(record.global_ranks);
    return record;
  });
}

std::string record_key(std::string_view group) {
  return "group record/" + std::string(group);
}

}  // namespace col::group
