// Channels that the ranks of a new group make without a store, because another group connects them already: each rank
// begins its part and says in a few words how it is reached, and with the words of all ranks it connects.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <col/backend.hpp>

#include "core/export/module_export.hpp"

namespace col::backend {

// One rank's part of such a channel, as it begins. The channel from which it was begun may go before it has ended.
class COL_MODULE_EXPORT Draft {
 public:
  virtual ~Draft() = default;

  // What the others have to hear: not empty.
  static constexpr std::size_t kMostWords = 63;
  virtual std::string words() const = 0;
  // Takes the words of all ranks of the new group, in rank order. Does not block. Requires: the channel from which it
  // was begun is still there.
  virtual void hear(std::span<const std::string> words) = 0;
  // As BackendFactory::connect(), once. All ranks have come already, and none looks into the store, if all goes well.
  virtual std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) = 0;
};

// An extension for channels which can begin those of groups of some of their ranks. The rules of Channel hold for it.
class COL_MODULE_EXPORT DraftExtension {
 public:
  virtual ~DraftExtension() = default;
  // Whether this rank can take part in it. All ranks of a group must.
  virtual bool can_draft() const = 0;
  // Begins this rank's part. Reads what the request says of the ranks; `ranks` are their numbers in this group. Does
  // not block. Null, or an Error: the ranks have to meet in the store, where this one can say what is wrong.
  virtual std::unique_ptr<Draft> draft(const ConnectRequest& request, std::span<const int> ranks) = 0;
};

}  // namespace col::backend
