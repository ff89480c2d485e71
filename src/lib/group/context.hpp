// What is behind a Context: the registry of groups, and how one is made.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <col/group.hpp>

#include "group/member.hpp"

namespace col {

class Context::Impl {
 public:
  explicit Impl(ContextSpec spec);
  ~Impl();

  Group init_group(const GroupSpec& spec);
  Group group(std::string_view name);
  std::optional<Group> find(std::string_view name) const;
  bool destroy_group(std::string_view name);
  void finalize();
  const ContextSpec& spec() const { return spec_; }
  void set_error_file(std::string path) { error_file_ = std::move(path); }

 private:
  class Reservation;
  struct Meeting;

  std::shared_ptr<Group::State> make_state(const GroupSpec& spec);
  std::shared_ptr<Group::State> connect(const GroupSpec& spec, BackendFactory& factory, Duration timeout);
  Meeting meet(const GroupSpec& spec, std::string_view backend, int instance, WaitContext& wait);
  std::optional<GroupSpec> adoptable(std::string_view name) const;
  RankRecord* record() const;

  ContextSpec spec_;
  std::shared_ptr<Store> job_scope_;  // shared with the groups made from it
  std::uint64_t nonce_;
  std::string error_file_;

  mutable std::mutex mutex_;  // guards the two below, never held while waiting
  std::map<std::string, std::shared_ptr<Group::State>, std::less<>> groups_;  // null while being made
  std::map<std::string, int, std::less<>> instances_;  // groups of that name so far: they must not meet in the store
};

}  // namespace col
