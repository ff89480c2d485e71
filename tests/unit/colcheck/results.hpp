// Results to make reports of.
#pragma once

#include <cstddef>
#include <string>

#include "colcheck/results.hpp"

namespace col::colcheck {

// A case of allreduce over `backend` on 3 ranks; the seed tells one from another.
CaseResult passed(const std::string& backend, Primitive primitive = Primitive::allreduce, std::uint64_t seed = 1);
CaseResult skipped(const std::string& backend, Primitive primitive, const std::string& why, std::uint64_t seed = 1);
CaseResult failed(const std::string& backend, Primitive primitive, int rank, const std::string& what,
                  std::uint64_t seed = 1);

// A run over shm and gloo, without nccl, of no case yet.
Results empty_run();
// The same with one passing case of every primitive on both backends.
Results good_run();
// Its cases on one backend, and on both.
inline constexpr std::size_t kGoodCases = kPrimitiveCount, kAllGoodCases = 2 * kGoodCases;
// That on shm and gloo, and a scan on nccl with each kind of buffers on GPUs of that name.
Results gpu_run(const std::string& name);

// What must not be found in any report as it is: markup, quotes, an escape, a NUL, bytes that are not UTF-8.
inline const std::string kNasty =
    std::string("<b a=\"1\">&amp; ' ]]> \x1b[31m \x01 \xff\xc0\xaf \xed\xa0\x80 \xef\xbf\xbf \xc2\x9b a\nb") + '\0' +
    "Z";

// How often `part` is in `text`.
std::size_t occurrences(const std::string& text, const std::string& part);

}  // namespace col::colcheck
