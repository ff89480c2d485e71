// A collective that has been checked and decided: what all starts of it have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <col/channel.hpp>
#include <col/group.hpp>

#include "backend/capabilities.hpp"
#include "core/job/call_ring.hpp"
#include "group/call/operation.hpp"

namespace col::group {

// The order that the call itself names, as one number. Two that name different orders at once are never made.
inline std::uint8_t asked_order(const Options& options) noexcept {
  return static_cast<std::uint8_t>(options.order) | static_cast<std::uint8_t>(options.deterministic);
}

struct Prepared : CollectiveCall {
  std::string asked_algorithm = {};  // Options::algorithm
  std::uint8_t asked_order = 0;      // asked_order(), of its Options
  bool is_long = false;              // a look at the clock is nothing beside it
  Channel* channel = nullptr;        // that it uses
  Stream stream = {};                // of copies from and to the GPU
  bool ends_on_device = false;  // streams can wait for it: it is over when the device says so, with nothing to copy
  std::unique_ptr<backend::PreparedNative> native =
      {};                 // the channel's part of one that comes again; null: there is none
  bool is_brief = false;  // it blocks, has a channel's part, and can end in a moment: Starter::run_again()
  // In the flight recorder's words, which are made once: for calls with that label (Group::annotate()).
  std::optional<core::CallRing::Words> recorded = {};
  std::uint16_t label = 0;

  // 1 + ReduceOp, as in CallDetails; 0 for what does not reduce.
  std::uint8_t reduction() const;
};

}  // namespace col::group
