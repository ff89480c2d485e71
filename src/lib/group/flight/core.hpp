// What the parts of a group share: its members and settings, and the error that broke it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <col/channel.hpp>
#include <col/group.hpp>

#include "core/fork_guard.hpp"
#include "core/job/call_ring.hpp"
#include "core/trace/trace.hpp"
#include "exec/fault.hpp"
#include "group/call/call_settings.hpp"
#include "group/call/checks.hpp"
#include "group/diagnosis/diagnosis.hpp"

namespace col::group {

class Core {
 public:
  struct Spec {
    Surroundings surroundings;  // name, token, rank, peers, scope, control page
    std::string id;             // separates this group from others of its name, also in its record
    Duration timeout{};
    Device device = {};                                 // the memory that the group's backend moves
    std::string error_file = {};                        // COL_ERROR_FILE; empty: none
    std::shared_ptr<const CallSettings> settings = {};  // shared by the groups of a context; may outlive it with them
    int global_rank = 0;                                // of this process in the job
    bool has_record = true;                             // whether the store may have a record of this group
  };
  explicit Core(Spec spec);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  const std::string& name() const { return spec_.surroundings.group; }
  const std::string& id() const { return spec_.id; }
  int rank() const { return spec_.surroundings.rank; }
  int size() const { return spec_.surroundings.size(); }
  int world_rank(int rank) const { return spec_.surroundings.peers[static_cast<std::size_t>(rank)].global_rank; }
  Device device() const { return spec_.device; }
  Shape shape() const { return {name(), rank(), size(), device().type, world_rank(rank())}; }
  std::uint64_t token() const { return spec_.surroundings.token; }
  bool has_record() const { return spec_.has_record; }
  Duration timeout() const { return spec_.timeout; }
  Duration timeout_of(const Options& options) const {
    return std::min(options.timeout > Duration::zero() ? options.timeout : timeout(), Deadline::kMaxBudget);
  }
  const CallSettings& settings() const { return *spec_.settings; }
  Surroundings& surroundings() { return spec_.surroundings; }
  const Surroundings& surroundings() const { return spec_.surroundings; }
  RankRecord* record() const { return spec_.surroundings.record; }  // null if there is none
  // The flight recorder: null if there is none, and nobody is told what this rank does.
  core::CallRing* ring() noexcept { return ring_ ? &*ring_ : nullptr; }
  // An operation of this group in its words.
  core::CallRing::Words recorded(Collective op, const CallDetails& details) const noexcept {
    return core::CallRing::words(recorded_group_, op, details);
  }
  // True if readers of it can name this group: then it is enough that a call which does not wait is in it.
  bool is_named_in_ring() const noexcept { return recorded_group_ != 0; }
  // As Group::annotate(). Requires: the group's lock is held.
  void annotate(std::string_view label);
  std::uint16_t label() const noexcept { return label_; }
  // For a timeline: what is the same for all calls of this group, and where they are written.
  core::TracedCall traced() const noexcept { return {.rank = spec_.global_rank, .group = traced_group_}; }
  core::Trace::Cursor& cursor() noexcept { return cursor_; }
  // A child that was forked after the process joined is not a member.
  bool is_forked_child() const { return fork_guard_.is_forked_child(); }

  // For a wait of this rank. With a Duration, of which a part may be spent, it reads the clock only when it waits.
  WaitContext waiting(Deadline deadline, WaitObserver* observer = nullptr) {
    return WaitContext(deadline, spec_.surroundings.control.get(), record(), observer, &settings().interrupt);
  }
  WaitContext waiting(Duration budget, WaitObserver* observer = nullptr, Duration spent = {}) {
    if (spent > Duration::zero()) return waiting(Deadline::after(budget, spent), observer);
    return WaitContext(budget, spec_.surroundings.control.get(), record(), observer, &settings().interrupt);
  }

  // COL_FAULT strikes here, if it is about this collective of this rank.
  const exec::Fault* fault() const { return fault_; }
  void pass_fault(std::uint64_t sequence) const {
    if (fault_ != nullptr) exec::FaultHook::pass(fault_, sequence, fault_->step);
  }

  // An error about this rank, or about another one.
  Error own_error(ErrorCode code, std::string_view message) const { return error_about(rank(), code, message); }
  Error error_about(int culprit, ErrorCode code, std::string_view message) const;
  // A method is called on a group; a name in its options can only be a slip. Throws invalid_argument.
  [[gnu::always_inline]] void check_named(std::string_view named) const {
    static constexpr std::string_view kDefault = "default";  // Options::group
    // Compared in place: a string's own comparison is a call.
    const bool is_default =
        named.size() == kDefault.size() && std::memcmp(named.data(), kDefault.data(), kDefault.size()) == 0;
    if (!is_default) [[unlikely]]
      check_own(named);
  }

  // ---- Requires for the rest: the group's lock is held.

  // The same, and throws aborted if the group is broken, and invalid_argument while a scope collects calls.
  [[gnu::always_inline]] void check_name(std::string_view named) {
    if (refuses_) throw_refused();
    check_named(named);
  }
  // A scope collects calls (<col/coalescing.hpp>), from now on or no more.
  void collect(bool on) {
    is_collecting_ = on;
    refuses_ = on || broken_.has_value();
  }
  bool is_collecting() const { return is_collecting_; }
  // A scope is gone without its end, because another thread used the group: who uses it next breaks it. Any thread.
  void note_lost_scope() noexcept { is_scope_lost_ = true; }
  void require_no_lost_scope() {
    if (is_scope_lost_ && !broken_) throw_lost_scope();
  }
  const std::optional<Error>& broken() const { return broken_; }
  // Another group has taken its place: each later call says so. Any thread may ask once the group is destroyed.
  void retire(const Error& why) { over_ = why; }
  const std::optional<Error>& over() const { return over_; }
  // Breaks the group.
  [[noreturn]] void fail(const Error& cause);
  // Called in a catch block: breaks the group with the present exception, which came from `what`. The exception of an
  // interrupt leaves as it is.
  [[noreturn]] void fail_with_current(Diagnosis& diagnosis, std::string_view what);
  // The same for what ranks do not compare.
  [[noreturn]] void fail_with_current(std::string_view what);
  void break_with(const Error& cause) noexcept;
  // What ends the channels and the operations in flight when the group breaks. Set once, before the first call.
  void set_on_break(std::function<void(const Error&)> on_break) { on_break_ = std::move(on_break); }
  // Hears why the group has broken when a call is refused for that. Set once, before the first call.
  void set_on_refused(std::function<void(const Error&)> on_refused) { on_refused_ = std::move(on_refused); }

 private:
  void check_own(std::string_view named) const;
  [[noreturn]] void throw_refused();
  [[noreturn]] void throw_lost_scope();

  Spec spec_;
  const core::ForkGuard fork_guard_;
  const exec::Fault* const fault_;  // null if there is none for this rank
  std::optional<core::CallRing> ring_;
  const int recorded_group_;  // the number of this group in the flight recorder
  const std::uint16_t traced_group_;
  std::uint16_t label_ = 0;
  core::Trace::Cursor cursor_ = {};
  std::function<void(const Error&)> on_break_, on_refused_;
  std::optional<Error> broken_, over_;
  bool is_collecting_ = false;
  std::atomic<bool> is_scope_lost_{false};
  bool refuses_ = false;  // because of one of these two
};

}  // namespace col::group
