#include "group/run/shared_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "backend/capabilities.hpp"
#include "core/log.hpp"
#include "group/call/composite.hpp"
#include "group/diagnosis/most_common.hpp"

namespace col::group {
namespace {

// Memory of only this rank. Null if there is none.
std::shared_ptr<void> private_memory(std::size_t bytes) {
  const std::size_t length = std::max<std::size_t>(bytes, 1);
  void* const memory = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  ::madvise(memory, length, MADV_HUGEPAGE);  // large vectors meet fewer misses; without it they work as well
  return {memory, [length](void* pointer) { ::munmap(pointer, length); }};
}

std::string no_room(std::size_t bytes, int rank) {
  return fmt::format("alloc: no room for {} bytes on rank {}; ask for less, or free memory", bytes, rank);
}

}  // namespace

std::shared_ptr<void> SharedMemory::allocate(std::size_t bytes, const Options& options) {
  const Use use(access_, options);
  core_.check_name(options.group);
  if (lanes_.own().channel == nullptr) {
    auto memory = private_memory(bytes);
    if (memory == nullptr) throw Error(ErrorCode::resource, no_room(bytes, core_.rank()), core_.name(), core_.rank());
    return memory;
  }
  const Composite composite("alloc");
  const auto exchange = [&](const std::string& words) {
    constexpr std::size_t kBytes = backend::AllocationOps::kMostWords + 1;
    std::vector<char> mine(kBytes), all(kBytes * static_cast<std::size_t>(core_.size()));
    words.copy(mine.data(), backend::AllocationOps::kMostWords);
    Request request;
    request.collective = Collective::allgather;
    request.in = {mine.data(), mine.size(), DType::uint8};
    request.out = {all.data(), all.size(), DType::uint8};
    collectives_.run_over(&lanes_.on_host(), request, {.timeout = options.timeout});
    std::vector<std::string> texts;
    for (std::size_t at = 0; at < all.size(); at += kBytes) texts.emplace_back(&all[at]);
    return texts;
  };

  const std::vector<std::string> wishes = exchange(std::to_string(bytes));
  const std::size_t common = most_common(wishes);
  for (const std::string& wish : wishes) {
    if (wish == wishes[common]) continue;
    const auto odd = static_cast<int>(&wish - wishes.data());
    throw core_.error_about(
        odd, ErrorCode::mismatch,
        fmt::format("alloc: rank {} asks for {} bytes, rank {} for {}; all ranks must ask for the same", odd, wish,
                    common, wishes[common]));
  }
  WaitContext wait = core_.waiting(Deadline::after(core_.timeout_of(options)));
  backend::AllocationOps* const able = lanes_.own().can.allocation;
  if (auto memory = able != nullptr ? able->allocate(bytes, exchange, wait) : nullptr) return memory;

  if (core_.rank() == 0 && !std::exchange(told_, true))
    core::log::info("group '{}': the ranks cannot share memory over backend {}; alloc() gives ordinary memory",
                    core_.name(), lanes_.backend());
  auto memory = private_memory(bytes);
  const std::vector<std::string> got = exchange(memory != nullptr ? "yes" : "no");
  const auto without = std::find(got.begin(), got.end(), "no");
  if (without == got.end()) return memory;
  const auto poor = static_cast<int>(without - got.begin());
  throw core_.error_about(poor, ErrorCode::resource, no_room(bytes, poor));
}

}  // namespace col::group
