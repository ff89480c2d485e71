// Point to point calls: messages between two ranks of a group, or to oneself.
#pragma once

#include <string_view>
#include <vector>

#include <col/channel.hpp>
#include <col/group.hpp>

#include "group/flight/access.hpp"
#include "group/flight/mailbox.hpp"
#include "group/flight/stager.hpp"
#include "group/run/starter.hpp"

namespace col::group {

class Messages {
 public:
  Messages(Core& core, Lanes& lanes, Stager& stager, Mailbox& mailbox, Flight& flight, Access& access,
           const Starter& starter)
      : core_(core),
        lanes_(lanes),
        stager_(stager),
        mailbox_(mailbox),
        flight_(flight),
        access_(access),
        starter_(starter) {}

  // Blocks until all have been exchanged. Returns the rank that sent the last received message.
  int exchange(std::string_view name, std::vector<Leg> legs, const Options& options);
  // One message, whose peer is known.
  void exchange_one(std::string_view name, const Leg& leg, const Options& options);
  PendingPtr start(std::string_view name, std::vector<Leg> legs, const Options& options);

 private:
  // What messages that are alike have in common.
  struct Alike {
    int peer = -1, tag = 0;
    std::size_t count = 0;
    DType dtype = {};
    std::uint64_t slot = 0;
    std::uint64_t* number = nullptr;  // of those with this peer and tag
  };

  int exchange_all(std::string_view name, std::vector<Leg> legs, const Options& options);
  bool exchange_at_once(const Leg& leg, const Options& options);
  bool is_alike(const Leg& leg) const;
  void trace(core::Trace& timeline, std::uint64_t began, Collective op, const CallDetails& details,
             std::uint64_t number);
  Alike& alike(const Leg& leg);
  PendingPtr begin(std::string_view name, std::vector<Leg> legs, const Options& options, bool blocking);
  void check_leg(const Leg& leg) const;
  void check_apart(const std::vector<Leg>& legs) const;
  void require_sent_to_self(const std::vector<Leg>& legs) const;
  Channel* channel_for(const Leg& leg) const;
  void post(const PendingPtr& pending);
  void fetch(Pending& pending);
  void note(Pending& pending, bool blocking);

  Core& core_;
  Lanes& lanes_;
  Stager& stager_;
  Mailbox& mailbox_;
  Flight& flight_;
  Access& access_;
  const Starter& starter_;
  Alike sent_ = {}, received_ = {};  // the last one at once
  const void* checked_ = nullptr;    // where that one was received
};

}  // namespace col::group
