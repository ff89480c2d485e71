#include "group/staging.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "group/gpus.hpp"

namespace col::group {
namespace {

// The smallest block. Sizes are rounded up to powers of two, so that there are few different ones.
constexpr std::size_t kSmallest = std::size_t{1} << 16;

}  // namespace

StagingPool::Block StagingPool::take(Device::Type type, int device, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  auto best = free_.end();
  for (auto block = free_.begin(); block != free_.end(); ++block) {
    if (block->type != type || block->device != device || block->bytes < bytes) continue;
    if (best == free_.end() || block->bytes < best->bytes) best = block;
  }
  if (best != free_.end()) {
    Block block = std::move(*best);
    free_.erase(best);
    return block;
  }
  const std::size_t room = std::bit_ceil(std::max(bytes, kSmallest));
  return {type, device, room,
          type == Device::Type::cpu ? gpus().allocate_host(device, room) : gpus().allocate(device, room)};
}

void StagingPool::give_back(Block block) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(block));
}

Staging::~Staging() {
  for (Copy& copy : copies_) pool_.give_back(std::move(copy.block));
}

TensorView Staging::view_of(const Copy& copy) {
  return {copy.block.memory.get(), copy.original.count, copy.original.dtype, copy.place};
}

TensorView Staging::replace(TensorView view, Device wanted, bool is_read, bool is_written) {
  if (!is_needed(view, wanted)) return view;
  // A call in place has one buffer, under two names.
  const auto same = std::find_if(copies_.begin(), copies_.end(), [&](const Copy& copy) {
    return copy.original.data == view.data && copy.original.bytes() == view.bytes() && copy.place == wanted;
  });
  if (same != copies_.end()) {
    same->is_read = same->is_read || is_read;
    same->is_written = same->is_written || is_written;
    return view_of(*same);
  }
  Copy copy{.original = view,
            .block = {},
            .place = wanted,
            .device = wanted.index,
            .is_read = is_read,
            .is_written = is_written};
  if (view.device.type != Device::Type::cpu) {
    const std::optional<int> owner = gpus().device_of(view.data, view.device.index);
    if (!owner)
      throw Error(ErrorCode::invalid_argument, "a buffer is no memory of a GPU, though its view says so; see Device");
    copy.device = *owner;
  }
  copy.block = pool_.take(wanted.type, copy.device, view.bytes());
  copies_.push_back(std::move(copy));
  return view_of(copies_.back());
}

bool Staging::is_captured(Stream stream) const {
  return stream.handle != nullptr && std::any_of(copies_.begin(), copies_.end(), [&](const Copy& copy) {
           return gpus().is_captured(copy.device, stream);
         });
}

void Staging::fetch(Stream stream) {
  for (const Copy& copy : copies_) {
    if (!copy.is_read) continue;
    under_way_.push_back(
        gpus().copy(copy.block.memory.get(), copy.original.data, copy.original.bytes(), copy.device, stream));
  }
}

void Staging::give_back(Stream stream) {
  for (const Copy& copy : copies_) {
    if (!copy.is_written) continue;
    under_way_.push_back(
        gpus().copy(copy.original.data, copy.block.memory.get(), copy.original.bytes(), copy.device, stream));
  }
}

bool Staging::copied() {
  while (!under_way_.empty() && under_way_.back()->done()) under_way_.pop_back();
  return under_way_.empty();
}

}  // namespace col::group
