#include "backend/shm/segment/last_caches.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>

#include <fmt/format.h>

namespace col::shm_backend {
namespace {

// "32768K". 0: nothing of the kind.
std::size_t read_size(const std::string& path) {
  std::size_t size = 0;
  char unit = ' ';
  std::ifstream(path) >> size >> unit;
  return unit == 'K' ? size << 10 : unit == 'M' ? size << 20 : 0;
}

}  // namespace

std::size_t processors_in(std::string_view list) noexcept {
  std::size_t count = 0;
  while (!list.empty()) {
    const std::string_view range = list.substr(0, list.find(','));
    list.remove_prefix(std::min(range.size() + 1, list.size()));
    unsigned first = 0;
    const char* const end = range.data() + range.size();
    auto read = std::from_chars(range.data(), end, first);
    if (read.ec != std::errc()) return 0;
    unsigned last = first;
    if (read.ptr != end && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc() || read.ptr != end || last < first) return 0;
    count += std::size_t{last} - first + 1;
  }
  return count;
}

std::size_t last_caches_of(int processors, int one, const std::string& topology) {
  const std::string cache = fmt::format("{}/cpu{}/cache", topology, one);
  std::string sharing;
  std::getline(std::ifstream(cache + "/index3/shared_cpu_list"), sharing);
  const std::size_t each = std::max<std::size_t>(1, processors_in(sharing));
  std::size_t size = read_size(cache + "/index3/size");
  if (const std::size_t second = read_size(cache + "/index2/size"))
    size = std::min(size, kMostSecondLevels * second * each);
  return size * ((static_cast<std::size_t>(processors) + each - 1) / each);
}

}  // namespace col::shm_backend
