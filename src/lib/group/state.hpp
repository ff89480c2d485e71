// The implementation behind a Group handle: owns the parts of a group, and connects them.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <col/group.hpp>

#include "group/flight/access.hpp"
#include "group/flight/continuation.hpp"
#include "group/flight/core.hpp"
#include "group/flight/flight.hpp"
#include "group/flight/lanes.hpp"
#include "group/flight/mailbox.hpp"
#include "group/flight/stager.hpp"
#include "group/gpu/multi_gpu.hpp"
#include "group/join/epoch.hpp"
#include "group/join/family.hpp"
#include "group/join/join.hpp"
#include "group/run/collectives.hpp"
#include "group/run/messages.hpp"
#include "group/run/shared_memory.hpp"
#include "group/run/starter.hpp"

namespace col {

namespace group {

// What the context provides to its groups. The functions are not called after the group was destroyed.
struct GroupHost {
  Family::Host family = {};
  std::function<std::vector<Group>()> all_groups = {};
  std::function<void(const std::string&)> destroy_group = {};
  std::function<Group(Group::State&, const Renewal&)> renew = {};
  std::function<void(const Error&)> has_broken = {};  // the group has, by that error, or the program hears of it again
};

}  // namespace group

class Group::State : public std::enable_shared_from_this<Group::State> {
 public:
  // The epoch that it is in, or that of the group from which it `is_derived`.
  struct Lineage {
    std::shared_ptr<group::Epoch> epoch;  // shared by all of these
    bool is_derived = false;
  };
  static std::shared_ptr<State> make(group::GroupParts parts, group::GroupHost host, Lineage lineage);
  ~State();

  group::Core& core() { return core_; }
  const group::Core& core() const { return core_; }
  group::Lanes& lanes() { return lanes_; }
  group::Flight& flight() { return flight_; }
  group::Access& access() { return access_; }
  group::Collectives& collectives() { return collectives_; }
  group::Messages& messages() { return messages_; }
  group::MultiGpu& multi_gpu() { return multi_gpu_; }
  group::SharedMemory& shared_memory() { return shared_memory_; }
  group::Family& family() { return family_; }
  const Lineage& lineage() const { return lineage_; }
  // The epoch of a group that is no other one's child. `call`: for messages. Throws invalid_argument.
  group::Epoch& own_epoch(std::string_view call) const;
  Group renew(const Renewal& renewal);

  // An empty Work for null, which is an operation that has ended.
  Work work_of(group::PendingPtr pending);

  // `call`: "free". Throws invalid_argument if a call or an operation may use the memory: one of this group, or, while
  // it lives, of another group in its context.
  void require_unused(std::string_view call, const void* memory, std::size_t bytes);

  // Ends what is in flight, in a few seconds at most, says that this rank leaves, and closes the connections. Every
  // later call throws. Returns an error that no other call will report: the calls of the ranks differ. `why`: the error
  // of another group that is the reason.
  std::optional<Error> destroy(const std::optional<Error>& why = std::nullopt) noexcept;
  // Breaks the group, also while another thread uses it: its epoch is over. Unless it `is_urgent`, only if this rank
  // has something in flight there.
  void revoke(const Error& why, bool is_urgent) noexcept;
  // Closes the connections without a word to the others: they know. Every later call throws `why`.
  void retire(const Error& why) noexcept;
  // The same, and removes the group from its context's registry. Idempotent.
  void leave();
  // The program has asked its context for it.
  void note_asked_for() noexcept { is_asked_for_ = true; }
  bool is_forgotten() const;
  // The error that broke it. Also nothing while a call of another thread uses the group.
  std::optional<Error> broken_by();
  // The program hears now that the group has broken: what broke it in the background, it may hear much later.
  void note_told(const Error& cause) noexcept;
  // How many collective calls this rank has made, and messages it has sent. Nothing while a thread uses the group.
  std::optional<std::uint64_t> calls_made();
  // Lets others compare these calls with theirs, and know which rank of the job this one waits for. Returns false, and
  // has done nothing, while a call uses the group, or where another thread moves it on and must not be waited for.
  bool post_calls(std::optional<int> held_up_by, bool to_all);

 private:
  class Passkey {};  // make_shared() needs a public constructor, which nobody else may call

 public:
  State(Passkey passkey, group::GroupParts parts, group::GroupHost host, Lineage lineage);

 private:
  void require_unused_here(std::string_view call, const void* memory, std::size_t bytes, bool own);
  std::optional<Error> end(const std::optional<Error>& why, bool silently) noexcept;

  const group::GroupHost host_;
  const Lineage lineage_;
  std::atomic<bool> is_asked_for_{false};
  std::atomic<bool> is_broken_{false};
  group::Core core_;
  group::Lanes lanes_;
  group::Stager stager_;  // its copies are used by the operations below, to their end
  group::Mailbox mailbox_;
  group::Flight flight_;
  group::Access access_;
  group::Starter starter_;
  group::Collectives collectives_;
  group::Messages messages_;
  group::MultiGpu multi_gpu_;
  group::SharedMemory shared_memory_;
  group::Family family_;
};

// One operation of a group, for those who hold it.
struct Work::Handle {
  std::shared_ptr<Group::State>
      state;  // shared: a Work may outlive its group's handles. Null: no group is behind `after`
  group::PendingPtr pending = {};
  std::shared_ptr<group::Continuation> after = {};  // in place of `pending`: a function given to then()
  std::shared_ptr<const DeviceEnd> in_graph = {};   // of a call that is part of a graph; shared with the channel

  // Returns false if the operation has not ended after `budget`. A budget of zero means "its timeout", after which it
  // fails.
  bool wait(Duration budget);
  bool test();
  void hold_up(Stream stream);
  bool has_ended() const;
  std::optional<Error> error() const;
  Duration timeout() const;
  WaitContext waiting(Deadline deadline, WaitObserver* observer = nullptr) const;
  // For a wait that only tests it: tells others for whom this rank waits, and that it waits no more. Nothing while
  // another thread uses the group.
  void say_whom_it_awaits(Duration waited);
  void withdraw() noexcept;
  // Throws invalid_argument if an open scope of coalesce() holds it back.
  void refuse_collected() const;
  // For an operation whose time is over: throws its error, or the timeout.
  void time_out();
  Error overdue(Duration waited);

 private:
  bool throw_or_tell() const;
  void require_started() const;
  bool outlived_group() const;
  bool wait_within(Duration budget);
  bool await_function(Duration budget);
};

}  // namespace col
