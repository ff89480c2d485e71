// What a rank writes into the store when it joins a group, and the record of a finished group.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <col/backend.hpp>

namespace col::group {

// Bumped when ranks of different versions could no longer talk to one another.
inline constexpr int kProtocolVersion = 1;

// One rank's announcement: what must agree, and how to reach it.
struct Member {
  int world_size = 1;
  std::string backend;
  int protocol = kProtocolVersion;
  std::uint64_t nonce = 0;          // random, of this attempt to join
  std::uint64_t process_nonce = 0;  // random, of this process
  std::string pid_namespace;        // in which peer.pid means something
  bool uses_gpu = false;            // has made one current
  std::string gpu;                  // the one it has made current, by its bus; empty: none, or nobody asks
  std::string no_nccl;              // why NCCL cannot serve it, where it has one; empty: it can
  std::string alone_on_gpu;         // why NCCL cannot serve another rank on that GPU; empty: it can
  PeerInfo peer;

  std::string encode() const;
  // Throws internal when `text` is not what encode() writes.
  static Member decode(std::string_view text);
};

// The members of a group in rank order, as one value.
std::string encode_roster(const std::vector<Member>& members);
std::vector<Member> decode_roster(std::string_view text);

// How to join a group, kept in the store under its name: written by rank 0 when the group stands, or by a driver before
// any rank knows of it. A worker that meets the name adopts the group by it.
struct GroupRecord {
  std::string id;  // differs from that of every other group of the name
  int world_size = 1;
  std::string backend;            // a name that find_backend() knows, or "auto"
  std::vector<int> global_ranks;  // global_ranks[r] is the job's rank that plays rank r

  std::string encode() const;
  static GroupRecord decode(std::string_view text);
};

// The key of a group's record in the job's scope of the store.
std::string record_key(std::string_view group);

}  // namespace col::group
