#include "group/staging/staging.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <utility>

#include <fmt/format.h>

namespace col::group {
namespace {

// The smallest block. Sizes are rounded up to powers of two, so that there are few different ones.
constexpr std::size_t kSmallest = std::size_t{1} << 16;

// False if the process has not loaded the CUDA driver under any name. dlopen() below would look for it on disk.
bool may_have_driver() noexcept {
  const auto is_driver = [](dl_phdr_info* library, std::size_t, void*) {
    return std::strstr(library->dlpi_name, "libcuda.so") != nullptr ? 1 : 0;
  };
  return ::dl_iterate_phdr(is_driver, nullptr) != 0;
}

// True if the program has started the driver. `context` becomes that of this thread, null without one.
bool has_started_driver(void*& context) noexcept {
  if (!may_have_driver()) return false;
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return false;
  ::dlclose(driver);  // the program's own reference keeps it
  // cuCtxGetCurrent: 0 and a context when there is one, an error before the driver was started.
  using GetCurrent = int(void** context);
  auto* const get_current = reinterpret_cast<GetCurrent*>(::dlsym(driver, "cuCtxGetCurrent"));
  return get_current != nullptr && get_current(&context) == 0;
}

}  // namespace

DeviceMemory& gpus() {
  BackendFactory* const factory = find_device_backend();
  if (factory == nullptr) throw Error(ErrorCode::unavailable, "this build of col has no backend for GPUs");
  return factory->device_memory();
}

std::string_view gpu_backend_name() {
  const BackendFactory* const factory = find_device_backend();
  return factory != nullptr ? factory->name() : std::string_view();
}

std::optional<int> current_gpu() noexcept {
  void* context = nullptr;
  if (!has_started_driver(context) || context == nullptr) return std::nullopt;
  try {
    return gpus().current();
  } catch (const std::exception&) {  // the module is missing, or refuses the driver: no GPU for us
    return std::nullopt;
  }
}

std::vector<int> gpus_in_use() noexcept {
  void* context = nullptr;
  if (!has_started_driver(context)) return {};
  try {
    if (context == nullptr) return gpus().started();
    const std::optional<int> current = gpus().current();
    return current ? std::vector{*current} : std::vector<int>();
  } catch (const std::exception&) {  // as above, or there is no memory to say more
    return {};
  }
}

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
    const std::optional<int> owner = gpus().device_of(view.data, view.bytes(), view.device.index);
    if (!owner)
      throw Error(ErrorCode::invalid_argument,
                  "a buffer is no memory of a GPU, or not to its end, though its view says so; see Device");
    copy.device = *owner;
  }
  copy.block = pool_.take(wanted.type, copy.device, view.bytes());
  copies_.push_back(std::move(copy));
  return view_of(copies_.back());
}

bool Staging::is_captured(Stream stream) const {
  std::optional<int> asked;  // mostly all are on one device
  return std::any_of(copies_.begin(), copies_.end(), [&](const Copy& copy) {
    return std::exchange(asked, copy.device) != copy.device && gpus().is_captured(copy.device, stream);
  });
}

bool Staging::awaits_capture(Stream stream) const {
  const auto is_owed = [](const Copy& copy) { return copy.is_written && copy.given_back < copy.original.bytes(); };
  return std::any_of(copies_.begin(), copies_.end(), is_owed) && is_captured(stream);
}

Staging::Copy& Staging::copy_at(const void* data) {
  return *std::find_if(copies_.begin(), copies_.end(),
                       [data](const Copy& copy) { return copy.block.memory.get() == data; });
}

void Staging::fetch(Stream stream) {
  for (Copy& copy : copies_) {
    if (!copy.is_read) continue;
    auto* const to = static_cast<std::byte*>(copy.block.memory.get());
    const auto* const from = static_cast<const std::byte*>(copy.original.data);
    for (std::size_t begin = 0; begin < copy.original.bytes(); begin += kPartBytes) {
      const std::size_t bytes = std::min(kPartBytes, copy.original.bytes() - begin);
      copy.fetching.push_back({gpus().copy(to + begin, from + begin, bytes, copy.device, stream), begin + bytes});
    }
  }
}

std::size_t Staging::fetched(Copy& copy) {
  std::vector<Part>& parts = copy.fetching;
  std::size_t& ended = copy.parts_fetched;
  while (ended < parts.size() && parts[ended].copy->done()) parts[ended++].copy.reset();
  return ended == 0 ? 0 : parts[ended - 1].end;
}

std::size_t Staging::fetched(const void* data) {
  return fetched(copy_at(data));
}

void Staging::give_back(Copy& copy, std::size_t written, Stream stream) {
  if (!copy.is_written || written == copy.given_back) return;
  auto* const to = static_cast<std::byte*>(copy.original.data);
  const auto* const from = static_cast<const std::byte*>(copy.block.memory.get());
  const std::size_t begin = std::exchange(copy.given_back, written);
  returning_.push_back(gpus().copy(to + begin, from + begin, written - begin, copy.device, stream));
}

void Staging::give_back(const void* data, std::size_t written, Stream stream) {
  Copy& copy = copy_at(data);
  const bool is_all = written == copy.original.bytes();
  if (!is_all && written - copy.given_back < kPartBytes) return;
  if (!is_captured(stream)) give_back(copy, written, stream);  // else all that is left follows in the end
}

void Staging::give_back(Stream stream) {
  owed_ = stream;
  give_back_owed();
}

// A capture that has begun meanwhile would take the copies for its own. False until it has ended.
bool Staging::give_back_owed() {
  if (!owed_) return true;
  if (awaits_capture(*owed_)) return false;
  for (Copy& copy : copies_) give_back(copy, copy.original.bytes(), *owed_);
  owed_.reset();
  return true;
}

bool Staging::copied() {
  if (!give_back_owed()) return false;
  for (Copy& copy : copies_) {
    fetched(copy);
    if (copy.parts_fetched < copy.fetching.size()) return false;
  }
  while (!returning_.empty() && returning_.back()->done()) returning_.pop_back();
  return returning_.empty();
}

}  // namespace col::group
