// What a rank writes into the store when it joins a group, and the record of a finished group.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <col/channel.hpp>
#include <col/error.hpp>
#include <col/store.hpp>

namespace col::group {

// This library's, as col::version() says it.
std::string own_version();

// One rank's announcement: what must agree, and how to reach it.
struct Member {
  int world_size = 1;
  std::string backend;  // where it cannot be used: with_reason()
  // The environment names the backend, for between the hosts: see fitting_backend(). Counts if all members say so.
  bool names_wire = false;
  std::string version = own_version();  // what ranks say to one another differs from one version to the next
  std::uint64_t nonce = 0;              // random, of this attempt to join
  std::uint64_t process_nonce = 0;      // random, of this process
  bool uses_gpu = false;                // it has made a GPU current
  std::string gpu;                      // the GPU that it has made current, by its bus; empty: none, or nobody asks
  std::string why_no_gpu;               // why the backend for GPUs cannot serve it; empty: it can
  std::string alone_on_gpu;             // why that backend cannot serve another rank on that GPU; empty: it can
  PeerInfo peer;

  std::string encode() const;
  // Throws internal if `text` is not from encode().
  static Member decode(std::string_view text);
};

// What a rank announces that cannot use the backend which it wants, so that the others do not wait for it.
std::string with_reason(std::string_view backend, std::string_view why_not);
// The backend of either kind of announcement, without the reason.
std::string wanted_backend(const Member& member);
// Whether it is such an announcement of a rank that wanted another backend than this: of an earlier attempt, after
// which its program may ask for another one.
bool gave_up_another(const Member& member, std::string_view backend);

// Whether they agree on what the members of a group must agree on.
bool agree(const Member& a, const Member& b);
// The mismatch among `members` (by rank); nothing if they agree. It names the rank that differs from the majority.
std::optional<Error> disagreement(std::string_view group, const std::map<int, Member>& members);

// The members of a group in rank order, as one text: what is the same on many is in it once. It has what members need
// to know of one another: not nonces, nor what all have in common. Of where they are, it keeps the names of hosts, and
// for the rest which are the same: that is what the members of PeerInfo say, which is read from it.
// `has_processes`: with the nonces of the processes, too.
std::string encode_roster(std::uint64_t token, const std::vector<Member>& members, bool has_processes = false);
// Throws internal if `text` is no roster, or the one of another token. `self`: one of its members.
std::vector<Member> decode_roster(std::string_view text, std::uint64_t token, const Member& self);
// The number of members of any roster.
int size_of_roster(std::string_view text);
// The lowest rank of this process's host, which tells a job's roster to the others there. Nothing if that roster has
// not this process in it.
std::optional<Member> first_of_host(std::string_view text, const Member& self);

// How to join a group, kept in the store under its name. Rank 0 writes it when the group is complete, or a driver
// writes it before any rank knows about the group (declare_group). A worker that meets the name uses it to adopt the
// group. A record that has ended stays as an empty value, because a store compares only with values.
struct GroupRecord {
  std::string id;  // differs from the id of every other group of the same name
  int world_size = 1;
  std::string backend;            // a name that find_backend() knows, or "auto"
  std::vector<int> global_ranks;  // global_ranks[r] is the rank in the job of rank r
  // Where the processes are, if they have met in the store: of rank r, its pid, and a number of `hosts`. Else empty.
  std::vector<std::pair<std::int64_t, int>> processes = {};
  struct Place {
    std::string hostname, boot_id, pid_namespace;
    bool operator==(const Place&) const = default;
  };
  std::vector<Place> hosts = {};
  std::string first_id = {};  // of the group in its first epoch; empty: this is its first
  int job_size = 0;  // how many ranks the job of those has that have met in the store, by their word; 0: not known

  void set_processes(const std::vector<PeerInfo>& peers);
  // About rank `rank`: rank, pid and host; nothing if the record does not tell.
  std::optional<PeerInfo> process_of(int rank) const;
  std::string encode() const;
  static GroupRecord decode(std::string_view text);
};

// This process was told the rank of that one, which lives as far as is known.
Error has_already_joined(std::string_view group, const PeerInfo& other);

// The key of a group's record in the job's scope of the store.
std::string record_key(std::string_view group);
// The record of the group; nothing if there is none, or if it has ended.
std::optional<GroupRecord> find_record(Store& job_scope, std::string_view group);
// Ends the record of the group, if its id is `id`; empty: whatever its id is. Returns whether it did.
bool end_record(Store& job_scope, std::string_view group, std::string_view id = {});
// Its processes are leaving, in good order: it stands no longer, but still tells of its world.
void forget_processes(Store& job_scope, std::string_view group, std::string_view id);

}  // namespace col::group
