// Results to make reports of.
#pragma once

#include <cstddef>
#include <string>

#include "colcheck/report/results.hpp"

namespace col::colcheck {

// A case of allreduce over `backend` on 3 ranks; the seed tells one from another.
inline CaseResult passed(const std::string& backend, Primitive primitive = Primitive::allreduce,
                         std::uint64_t seed = 1) {
  CaseResult result;
  result.c.backend = backend;
  result.c.ranks = 3;
  result.c.primitive = primitive;
  result.c.seed = seed;
  return result;
}

inline CaseResult skipped(const std::string& backend, Primitive primitive, const std::string& why,
                          std::uint64_t seed = 1) {
  CaseResult result = passed(backend, primitive, seed);
  result.verdict = Finding::Verdict::skip;
  result.text = why;
  return result;
}

inline CaseResult failed(const std::string& backend, Primitive primitive, int rank, const std::string& what,
                         std::uint64_t seed = 1) {
  CaseResult result = passed(backend, primitive, seed);
  result.verdict = Finding::Verdict::fail;
  result.rank = rank;
  result.text = what;
  return result;
}

// A run over shm and gloo, without nccl, of no case yet.
inline Results empty_run() {
  Results results;
  results.version = "0.1.0";
  results.command = "colcheck --quick";
  results.launcher = "colcheck";
  results.world_size = 9;
  results.host = "node1";
  results.cpus = 2;
  results.effort = "quick";
  results.seed = 0x1f;
  results.started = "2025-03-04T05:06:07Z";
  results.seconds = 14.23;
  results.backends = {{"shm"}, {"gloo"}};
  results.unavailable = {{"nccl", "there is no libnccl.so.2"}};
  results.ranks = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16};
  return results;
}

// The same with one passing case of every primitive on both backends.
inline Results good_run() {
  Results results = empty_run();
  for (int i = 0; i < kPrimitiveCount; ++i) {
    for (const UsedBackend& used : results.backends)
      results.cases.push_back(passed(used.name, static_cast<Primitive>(i)));
  }
  return results;
}

// Its cases on one backend, and on both.
inline constexpr std::size_t kGoodCases = kPrimitiveCount, kAllGoodCases = 2 * kGoodCases;

// That on shm and gloo, and a scan on nccl with each kind of buffers on GPUs of that name.
inline Results gpu_run(const std::string& name) {
  Results results = good_run();
  results.unavailable.clear();
  for (const int rank : {0, 1, 2})
    results.gpus.push_back(
        {.host = "a", .gpu = {name, rank == 1 ? "0000:02:00.0" : "0000:01:00.0"}, .nccl = "NCCL 2.28.9"});
  results.limits = {"nccl: groups of 2 ranks at most here"};
  for (const Devices devices : {Devices::cuda, Devices::mixed}) {
    results.backends.push_back({"nccl", devices});
    results.cases.push_back(passed("nccl", Primitive::scan));
    results.cases.back().c.devices = devices;
  }
  return results;
}

// What must not be found in any report as it is: markup, quotes, an escape, a NUL, bytes that are not UTF-8.
inline const std::string kNasty =
    std::string("<b a=\"1\">&amp; ' ]]> \x1b[31m \x01 \xff\xc0\xaf \xed\xa0\x80 \xef\xbf\xbf \xc2\x9b a\nb") + '\0' +
    "Z";

// How often `part` is in `text`.
inline std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

}  // namespace col::colcheck
