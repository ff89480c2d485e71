// The bare work of an operation: which memory is read, and where the sum of it goes.
#pragma once

#include <sys/mman.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <vector>

#include "cell.hpp"

namespace contest {

inline constexpr std::size_t kStrip = 1024;  // elements; summed in the nearest cache, then spread

// destinations[…][i] = the sum of sources[…][i].
struct Task {
  std::vector<const float*> sources;
  std::vector<float*> destinations;
  std::size_t count = 0;
};

enum class Stores { plain, nontemporal };

#if defined(__AVX512F__)
using Vector = __m512;
inline Vector load(const float* from) {
  return _mm512_loadu_ps(from);
}
inline Vector add(Vector a, Vector b) {
  return _mm512_add_ps(a, b);
}
inline void store(float* to, Vector v) {
  _mm512_storeu_ps(to, v);
}
inline void stream(float* to, Vector v) {
  _mm512_stream_ps(to, v);
}
inline void fence() {
  _mm_sfence();
}
#elif defined(__AVX__)
using Vector = __m256;
inline Vector load(const float* from) {
  return _mm256_loadu_ps(from);
}
inline Vector add(Vector a, Vector b) {
  return _mm256_add_ps(a, b);
}
inline void store(float* to, Vector v) {
  _mm256_storeu_ps(to, v);
}
inline void stream(float* to, Vector v) {
  _mm256_stream_ps(to, v);
}
inline void fence() {
  _mm_sfence();
}
#else
struct Vector {
  float lane[16];
};
inline Vector load(const float* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
inline Vector add(Vector a, const Vector& b) {
  for (int i = 0; i < 16; ++i) a.lane[i] += b.lane[i];
  return a;
}
inline void store(float* to, const Vector& v) {
  std::memcpy(to, &v, sizeof v);
}
inline void stream(float* to, const Vector& v) {
  store(to, v);
}
inline void fence() {}
#endif
inline constexpr std::size_t kLanes = sizeof(Vector) / sizeof(float);

inline void run_strip(const Task& task, std::size_t at, std::size_t count, Stores stores) {
  alignas(64) static thread_local float sum[kStrip];
  const float* from = task.sources[0] + at;
  // Of one source, or of two, nothing is kept in between.
  if (task.sources.size() > 1) {
    for (std::size_t source = 1; source < task.sources.size(); ++source) {
      const float* left = source == 1 ? task.sources[0] + at : sum;
      const float* right = task.sources[source] + at;
      for (std::size_t i = 0; i < count; i += kLanes) store(sum + i, add(load(left + i), load(right + i)));
    }
    from = sum;
  }
  for (float* destination : task.destinations) {
    float* to = destination + at;
    if (stores == Stores::nontemporal)
      for (std::size_t i = 0; i < count; i += kLanes) stream(to + i, load(from + i));
    else
      for (std::size_t i = 0; i < count; i += kLanes) store(to + i, load(from + i));
  }
}

// Every thread takes its share of every task.
inline void run_share(const std::vector<Task>& tasks, int thread, int threads, Stores stores) {
  for (const Task& task : tasks) {
    const std::size_t strips = (task.count + kStrip - 1) / kStrip;
    const std::size_t first = strips * std::size_t(thread) / std::size_t(threads);
    const std::size_t end = strips * std::size_t(thread + 1) / std::size_t(threads);
    for (std::size_t strip = first; strip < end; ++strip)
      run_strip(task, strip * kStrip, std::min(kStrip, task.count - strip * kStrip), stores);
  }
  fence();
}

class Buffers {
 public:
  Buffers(int ranks, std::size_t bytes) {
    for (int rank = 0; rank < ranks; ++rank) {
      in.push_back(pages(bytes));
      out.push_back(pages(bytes));
    }
  }
  std::vector<float*> in;
  std::vector<float*> out;

 private:
  // Kept until the process ends, like those of the contestants.
  static float* pages(std::size_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    std::fill_n(static_cast<float*>(memory), bytes / sizeof(float), 1.0f);
    return static_cast<float*>(memory);
  }
};

inline std::vector<Task> tasks_of(const Cell& cell, const Buffers& buffers) {
  const std::size_t ranks = std::size_t(cell.size);
  const auto& in = buffers.in;
  const auto& out = buffers.out;
  const std::vector<const float*> all_in(in.begin(), in.begin() + cell.size);
  const std::vector<float*> all_out(out.begin(), out.begin() + cell.size);
  std::vector<Task> tasks;
  const auto block_of = [&cell](float* buffer, std::size_t index) { return buffer + index * cell.block; };
  switch (cell.operation) {
    case Operation::allreduce:
      return {{all_in, all_out, cell.count}};
    case Operation::allreduce_in_place:
      return {{{all_out.begin(), all_out.end()}, all_out, cell.count}};
    case Operation::broadcast:
      return {{{out[0]}, {all_out.begin() + 1, all_out.end()}, cell.count}};
    case Operation::reduce:
      return {{all_in, {out[0]}, cell.count}};
    case Operation::allgather:
      for (std::size_t from = 0; from < ranks; ++from) {
        std::vector<float*> places;
        for (float* buffer : all_out) places.push_back(block_of(buffer, from));
        tasks.push_back({{in[from]}, places, cell.block});
      }
      return tasks;
    case Operation::reduce_scatter:
      for (std::size_t to = 0; to < ranks; ++to) {
        std::vector<const float*> parts;
        for (float* buffer : in) parts.push_back(block_of(buffer, to));
        tasks.push_back({parts, {out[to]}, cell.block});
      }
      return tasks;
    case Operation::gather:
      for (std::size_t from = 0; from < ranks; ++from)
        tasks.push_back({{in[from]}, {block_of(out[0], from)}, cell.block});
      return tasks;
    case Operation::scatter:
      for (std::size_t to = 0; to < ranks; ++to) tasks.push_back({{block_of(in[0], to)}, {out[to]}, cell.block});
      return tasks;
    case Operation::alltoall:
      for (std::size_t from = 0; from < ranks; ++from)
        for (std::size_t to = 0; to < ranks; ++to)
          tasks.push_back({{block_of(in[from], to)}, {block_of(out[to], from)}, cell.block});
      return tasks;
    default:
      return {};
  }
}

}  // namespace contest
