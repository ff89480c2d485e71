#include "plan/drawing/elements.hpp"

#include <algorithm>

namespace col::plan::drawing {
namespace {

// Element `by` of a part and those behind it.
Fragment from(Fragment part, std::size_t by) {
  part.place += by;
  part.count -= by;
  return part;
}

}  // namespace

std::vector<Fragment> Elements::read(const Slice& slice) const {
  const Runs& runs = runs_[static_cast<std::size_t>(slice.buffer)];
  std::vector<Fragment> parts;
  std::size_t at = slice.offset;
  const std::size_t end = slice.offset + slice.count;
  while (at < end) {
    auto run = runs.upper_bound(at);
    const std::size_t next = run == runs.end() ? end : std::min(end, run->first);
    if (run != runs.begin() && std::prev(run)->second.end > at) {
      --run;
      Fragment part = from(run->second.part, at - run->first);
      part.count = std::min(end, run->second.end) - at;
      parts.push_back(part);
      at += part.count;
    } else {
      // Nobody has written there: the caller's data, or a fault that is not ours to find.
      parts.push_back({.count = next - at, .place = at, .ranks = std::uint64_t{1} << rank_});
      at = next;
    }
  }
  return parts;
}

void Elements::write(const Slice& slice, std::span<const Fragment> parts) {
  Runs& runs = runs_[static_cast<std::size_t>(slice.buffer)];
  cut(runs, slice.offset);
  cut(runs, slice.offset + slice.count);
  runs.erase(runs.lower_bound(slice.offset), runs.lower_bound(slice.offset + slice.count));
  std::size_t at = slice.offset;
  for (const Fragment& part : parts) {
    runs[at] = {at + part.count, part};
    at += part.count;
  }
}

// Makes a run end where it reaches across `at`, and another begin.
void Elements::cut(Runs& runs, std::size_t at) {
  auto run = runs.upper_bound(at);
  if (run == runs.begin()) return;
  --run;
  if (run->first == at || run->second.end <= at) return;
  const Run rest{run->second.end, from(run->second.part, at - run->first)};
  run->second.part.count = at - run->first;
  run->second.end = at;
  runs[at] = rest;
}

std::vector<Fragment> combined(std::span<const Fragment> left, std::span<const Fragment> right) {
  std::vector<Fragment> parts;
  std::size_t l = 0, r = 0;               // parts
  std::size_t in_left = 0, in_right = 0;  // elements of them that are done
  while (l < left.size() && r < right.size()) {
    Fragment part = from(left[l], in_left);
    part.count = std::min(part.count, right[r].count - in_right);
    part.ranks |= right[r].ranks;
    part.payload = Payload::partial;
    parts.push_back(part);
    in_left += part.count;
    in_right += part.count;
    if (in_left == left[l].count) ++l, in_left = 0;
    if (in_right == right[r].count) ++r, in_right = 0;
  }
  return parts;
}

}  // namespace col::plan::drawing
