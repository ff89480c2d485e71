// The implementation of Context: the registry of groups, and the making of a group.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <col/group.hpp>

#include "group/state.hpp"

namespace col {

class Context::Impl {
 public:
  explicit Impl(ContextSpec spec);
  ~Impl();

  Group init_group(const GroupSpec& spec);
  Group group(std::string_view name);
  std::optional<Group> find(std::string_view name) const;
  std::vector<Group> all() const;
  bool destroy_group(std::string_view name);
  void finalize();
  const ContextSpec& spec() const { return spec_; }
  void set_error_file(std::string path) { error_file_ = std::move(path); }

 private:
  class Reservation;

  struct Adoption {
    GroupSpec spec;
    std::string id = {};            // id of the record; empty if the environment describes the group
    std::vector<int> members = {};  // the job's ranks, in order; empty if they are not known before they meet
  };
  Group make_group(const Adoption& adoption);
  std::optional<Adoption> adoptable(std::string_view name) const;
  RankRecord* record() const;
  bool is_forked_child() const;

  ContextSpec spec_;
  std::shared_ptr<Store> job_scope_;  // shared with the groups made from it
  std::uint64_t nonce_;
  const std::int64_t pid_;
  std::string error_file_;
  std::shared_ptr<const group::CallSettings> settings_;  // shared with the groups

  mutable std::mutex mutex_;  // guards the two members below; never held during a wait
  std::map<std::string, std::shared_ptr<Group::State>, std::less<>> groups_;  // null while the group is being made
  std::map<std::string, std::string, std::less<>> left_;  // ids of groups that were left and must not be adopted again
};

}  // namespace col
