// The registry of groups behind a Context: context.cpp makes, finds and ends groups, context_epochs.cpp changes who is
// in them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <col/group.hpp>

#include "core/fork_guard.hpp"
#include "group/join/join.hpp"
#include "group/state.hpp"

namespace col {

// Its epochs are the job's, of which the launcher is told.
inline constexpr std::string_view kJobsGroup = "default";

// Shared with nobody for long: groups that outlive it have weak references.
class Context::Impl : public std::enable_shared_from_this<Context::Impl> {
 public:
  explicit Impl(ContextSpec spec);
  // The end of the context.
  void leave() noexcept;

  Group init_group(const GroupSpec& spec);
  Group join_group(const std::string& name, Duration timeout);
  Group group(std::string_view name);
  std::optional<Group> find(std::string_view name) const;
  std::vector<Group> all() const;
  bool destroy_group(std::string_view name);
  void finalize();
  const ContextSpec& spec() const { return spec_; }
  void set_error_file(std::string path) { error_file_ = std::move(path); }

 private:
  class Reservation;
  class NextEpoch;  // context_epochs.cpp

  // A group, from when its name is reserved. While it is being made, there is no state.
  struct Member {
    std::weak_ptr<Group::State> state = {};
    std::shared_ptr<Group::State> kept = {};  // the same; null if it goes with its handles
    bool is_made = false;

    bool has_gone() const { return is_made && state.expired(); }
  };

  struct Adoption {
    GroupSpec spec;
    std::string id = {};            // id of the record; empty if the environment describes the group
    std::vector<int> members = {};  // the job's ranks, in order; empty if they are not known before they meet
    std::shared_ptr<group::Epoch> ancestor = {};  // of the group from which it is made; null: from none
  };
  static void check_spec(const GroupSpec& spec);
  // `connected`: if the ranks have connected already.
  Group make_group(const Adoption& adoption, std::optional<group::Connected> connected = {});
  std::shared_ptr<Group::State> make_state(group::GroupParts parts, const GroupSpec& spec,
                                           Group::State::Lineage lineage);
  std::optional<Adoption> adoptable(std::string_view name) const;
  void watch_ends();
  bool is_whole_job(const Adoption& adoption) const;
  Error with_world_rank(const Error& error, const Adoption& adoption) const;
  void end_record(const group::Core& core, bool is_over) noexcept;
  RankRecord* record() const;
  void note_epoch(std::string_view group, std::optional<std::uint64_t> epoch) const;
  void note_failure(const Error& error);
  void tell_others(int held_up_by) noexcept;
  std::vector<std::shared_ptr<Group::State>> states() const;
  std::optional<Error> reason_to_leave(Group::State& group) const;
  void require_this_process(std::string_view group) const;

  // context_epochs.cpp
  Group renew(Group::State& old, const Renewal& renewal);
  std::shared_ptr<Group::State> enter(NextEpoch& next, const group::Epoch& before, group::RecordPtr record);
  std::shared_ptr<Store> place_of_epochs(const std::string& name, const std::string& id) const;
  void end_epoch(Group::State& old, const Error& why, const std::shared_ptr<Group::State>& next);
  static void forget_notice(Group::State& ended, Group::State& next) noexcept;
  std::vector<std::shared_ptr<Group::State>> made_from(const group::Epoch& epoch) const;

  ContextSpec spec_;
  std::shared_ptr<Store> job_scope_;  // shared with the groups made from it
  std::uint64_t nonce_;
  const core::ForkGuard fork_guard_;  // a forked child is in none of the groups, and makes none
  std::string error_file_;
  std::shared_ptr<const group::CallSettings> settings_;  // shared with the groups
  const std::shared_ptr<group::StoreHealth> store_health_ = std::make_shared<group::StoreHealth>();  // likewise

  mutable std::mutex mutex_;  // guards the members below; never held during a wait
  std::map<std::string, Member, std::less<>> groups_;
  std::shared_ptr<void> ends_;                            // watch_ends(); ends before the page in spec_
  std::map<std::string, std::string, std::less<>> left_;  // ids of groups that were left and must not be adopted again
  // The last error that broke a group, or by which one was not made. Others hear of it if this rank leaves their groups
  // and has made no call there since. Nothing once another group has been made.
  struct Failure {
    Error error;
    std::map<std::string, std::uint64_t, std::less<>> made = {};  // calls until then, by the group's id, where known

    bool is_why(Group::State& leaves) const {
      const auto before = made.find(leaves.core().id());
      const auto now = leaves.calls_made();
      return before == made.end() || !now || *now == before->second;
    }
  };
  std::optional<Failure> failure_;
};

// Keeps a name in the registry while its group is being made, so that it cannot be made twice.
class Context::Impl::Reservation {
 public:
  Reservation(Impl& impl, const std::string& name);
  ~Reservation();
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  void fulfil(const std::shared_ptr<Group::State>& state, bool is_kept);

 private:
  Impl& impl_;
  const std::string& name_;
  bool fulfilled_ = false;
};

}  // namespace col
