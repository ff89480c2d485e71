// Makes this rank a member of a group: choose the backend, meet the others, connect.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <col/group.hpp>
#include <col/job.hpp>
#include <col/store.hpp>

#include "backend/capabilities.hpp"
#include "group/call/operation.hpp"
#include "group/flight/lanes.hpp"

namespace col::group {

struct Connected;
struct GroupRecord;
struct Member;
struct Roster;

struct JoinRequest {
  const GroupSpec& spec;
  const ContextSpec& context;        // its timeout is set
  std::shared_ptr<Store> job_scope;  // null in a world of one rank; shared with the group that is made
  std::string job;                   // id and generation in one
  std::uint64_t process_nonce = 0;
  RankRecord* record = nullptr;
  const std::vector<int>& members;  // the job's ranks of the group, in order; empty: not known before they meet
  bool write_record = true;         // false if somebody else wrote the record, or nobody is to find the group
  bool names_wire = false;  // the backend of `spec` is what the ranks of different hosts use: see fitting_backend()
  Connected* relatives = nullptr;      // the ranks know one another by a group that they have in common
  const Roster* agreed = nullptr;      // they have agreed who they are, and need not meet
  std::optional<Deadline> until = {};  // for all of it; else the group's timeout decides
  // Called when there is news, and again and again if it takes long. What it throws passes through.
  std::function<void()> look_aside = {};
  // Told for whom this rank waits, if it waits for long, and in the end that it waits no more: as Calls::held_up_by.
  std::function<void(int)> tell = [](int) {};
  std::function<std::string(const std::vector<int>&)> name_ranks = ranks_text;  // that are missing, for messages
  // Called, again and again, when others have not come for long. Throws why they cannot. Before the last look, only
  // what is certain.
  std::function<void(bool is_last_look)> look_for_others = [](bool) {};
};

// What two processes, or two attempts of one, never have in common.
std::uint64_t random_nonce();

// "job id#generation": separates the keys of one run of a job from those of another.
std::string job_name(const ContextSpec& spec);

// Whether they can use loopback.
bool share_loopback(const std::vector<PeerInfo>& peers);

// The part of the store with the keys of that run of the job. Requires a store.
std::shared_ptr<Store> job_scope(const ContextSpec& spec);

// The record of the group, by which one that is to join finds it. Waits until it has been made. Errors: timeout, those
// of the store, and what the interrupt throws. `sleeps`: until somebody writes it (WaitContext::sleep_until_told).
GroupRecord await_record(Store& job_scope, std::string_view group, const Deadline& deadline, const ContextSpec& spec,
                         bool sleeps = false);

// The part of it where the ranks of a group meet. `job`: as by job_name().
std::shared_ptr<Store> meeting_place(const std::shared_ptr<Store>& store, std::string_view job, std::string_view group);

// The part of that place which is the group's own.
std::shared_ptr<Store> scope_of(const std::shared_ptr<Store>& place, std::uint64_t token);

// This rank's word of itself to those with which it is to make the group. Throws unavailable.
Member announcement(const JoinRequest& request);

// The result.
struct GroupParts {
  Core::Spec core;  // without what comes from the context
  Connections connections;
  bool is_high_priority_stream = false;
  std::string nccl_settings = {};
};

// Blocks until all ranks have joined. Errors as for Context::init_group.
GroupParts join(const JoinRequest& request);

// Ranks of another group that have connected already, or that need not meet to do so.
struct Connected {
  std::unique_ptr<Channel> channel = {};       // null: they have not connected
  std::unique_ptr<backend::Draft> draft = {};  // by which they connect; null: they find one another in the store
  std::unique_ptr<Channel> on_gpu = {};  // the channel for GPUs, beside one over the host that is still to be made
  std::string backend = {};
  std::uint64_t token = 0;             // as of ConnectRequest
  std::vector<PeerInfo> peers = {};    // in rank order
  bool may_stage = false;              // as of Connections
  std::shared_ptr<Store> origin = {};  // the scope of that other group, shared with it: ranks may fail there instead
};

// Lets others find the group by its name. `met`: the ranks as they have announced themselves; empty: they have not.
// `first_id`: as of GroupRecord. Throws what the store throws.
void write_record(const JoinRequest& request, const GroupParts& parts, const std::vector<PeerInfo>& met,
                  const std::string& first_id = {});

// Requires a channel. Does not block.
GroupParts join_connected(const JoinRequest& request, Connected connected);

}  // namespace col::group
