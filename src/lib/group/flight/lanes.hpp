// The connections of a group, by the kind of memory that they move.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <col/channel.hpp>
#include <col/device.hpp>

#include "backend/capabilities.hpp"
#include "group/call/dispatch.hpp"
#include "group/flight/core.hpp"

namespace col::group {

// What joining a group has connected.
struct Connections {
  std::string backend = "self";
  std::unique_ptr<Channel> channel;  // null in a world of one rank on the CPU
  // A second channel for host memory, beside a channel for GPU memory: for what the first one cannot do. Null in other
  // groups, and in a world of one rank.
  std::string host_backend;
  std::unique_ptr<Channel> host_channel;
  bool may_stage = false;  // some rank had a GPU when the group was made; equal on all ranks
  std::string why_staged;  // why GPU memory goes through the host in this group; empty if it does not

  Device device() const;  // the memory that `channel` moves
};

// Connections that move one kind of memory, and the dispatcher for calls over them.
struct Lane {
  // `may_stage`: as in Connections.
  Lane(const Core& core, Channel* over, const std::string& backend, bool may_stage);

  Channel* const channel;  // null in a world of one rank
  const Capabilities can;  // of the channel; nothing without one
  const Device device;     // the memory that it moves
  Dispatcher dispatcher;
};

class Lanes {
 public:
  Lanes(const Core& core, Connections connections);

  Lane& own() { return own_; }
  const Lane& own() const { return own_; }
  // In a group for GPU memory: the lane over the host. Null in other groups.
  Lane* hosted() { return hosted_ ? &*hosted_ : nullptr; }
  const Lane* hosted() const { return hosted_ ? &*hosted_ : nullptr; }
  // The lane that moves host memory.
  Lane& on_host() { return hosted_ ? *hosted_ : own_; }
  // The lane that serves a call. It depends only on what all ranks know, so all ranks decide alike, wherever their
  // buffers are.
  Lane& lane_for(const Request& request, const CallWishes& wishes);
  // Null for a channel that moves host memory.
  DeviceOps* gpu_of(const Channel* channel) const { return channel == own_.channel ? own_.can.device : nullptr; }
  // Null for a channel that holds nothing back.
  backend::HoldingOps* holds_of(const Channel* channel) const {
    return channel == own_.channel ? own_.can.holding : nullptr;
  }

  const std::string& backend() const { return connections_.backend; }
  bool may_stage() const { return connections_.may_stage; }
  const std::string& why_staged() const { return connections_.why_staged; }

  // Any thread may call it.
  void abort(const Error& cause) noexcept;
  // No lane may be used any more.
  void close() noexcept;

 private:
  Connections connections_;
  Lane own_;
  std::optional<Lane> hosted_;
};

}  // namespace col::group
