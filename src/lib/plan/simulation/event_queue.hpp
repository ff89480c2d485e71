// Future events, by time. In collectives, thousands of ranks do the same thing at the same instant. So events of one
// instant share one bucket, and the heap holds buckets. The few buckets that were filled last are searched first.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace col::plan::simulation {

class EventQueue {
 public:
  using Event = std::uint32_t;

  // The same sum in another order differs in its last bits. Without this tolerance, equal times would count as
  // different instants.
  static bool same_instant(double a, double b) noexcept { return std::abs(a - b) <= 1e-12 * b; }

  bool empty() const noexcept { return heap_.empty(); }

  void push(double time, Event event) {
    for (const std::uint32_t bucket : recent_) {
      if (bucket != kNone && same_instant(buckets_[bucket].time, time)) {
        buckets_[bucket].events.push_back(event);
        return;
      }
    }
    const std::uint32_t bucket = new_bucket(time);
    buckets_[bucket].events.push_back(event);
    heap_.push_back({time, made_++, bucket});
    std::push_heap(heap_.begin(), heap_.end());
    recent_[oldest_++ % recent_.size()] = bucket;
  }

  // Replaces `events` by all events of the next instant, in the order of their pushes, and returns its time. Requires:
  // !empty().
  double pop(std::vector<Event>& events) {
    events.clear();
    const double time = heap_.front().time;
    do {
      std::pop_heap(heap_.begin(), heap_.end());
      const std::uint32_t bucket = heap_.back().bucket;
      heap_.pop_back();
      std::replace(recent_.begin(), recent_.end(), bucket, kNone);
      std::vector<Event>& filled = buckets_[bucket].events;
      if (events.empty())
        events.swap(filled);
      else
        events.insert(events.end(), filled.begin(), filled.end());
      filled.clear();
      free_.push_back(bucket);
    } while (!heap_.empty() && same_instant(heap_.front().time, time));
    return time;
  }

 private:
  static constexpr std::uint32_t kNone = ~0U;
  struct Bucket {
    double time = 0;
    std::vector<Event> events = {};
  };
  struct Entry {
    double time;
    std::uint64_t number;  // of buckets for the same time, the one that was made first is the first
    std::uint32_t bucket;
    bool operator<(const Entry& other) const noexcept {  // the heap's top is the earliest
      return time != other.time ? time > other.time : number > other.number;
    }
  };

  std::uint32_t new_bucket(double time) {
    if (free_.empty()) {
      buckets_.push_back({.time = time});
      return static_cast<std::uint32_t>(buckets_.size() - 1);
    }
    const std::uint32_t bucket = free_.back();
    free_.pop_back();
    buckets_[bucket].time = time;
    return bucket;
  }

  std::vector<Bucket> buckets_;
  std::vector<std::uint32_t> free_;
  std::vector<Entry> heap_;
  std::array<std::uint32_t, 4> recent_ = {kNone, kNone, kNone, kNone};
  std::size_t oldest_ = 0;
  std::uint64_t made_ = 0;
};

}  // namespace col::plan::simulation
