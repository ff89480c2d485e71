// What a kernel's threads do, on the host, against the reductions of the host: every operator and type, numbers that
// are special, threads that are few or many, memory that lies anywhere.
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/catch.hpp"
#include "support/fake_kernels/every_fold.hpp"
#include "support/host_fold.hpp"

namespace {

using col::DType;
using col::Op;
using col::ReduceOp;
using col::nccl_backend::FoldArguments;
using col::nccl_backend::Results;
using col::test::Bytes;
using col::test::for_each_fold;

constexpr std::size_t kBlocks = 5;

struct Problem {
  ReduceOp op = ReduceOp::sum;
  DType dtype = DType::int8;
  std::size_t count = 0;   // elements of a block
  std::size_t offset = 0;  // elements from an aligned address to the first block
  Results results = Results::whole;
  bool averages = false;
  std::vector<double> scales = {};  // by block; empty: not scaled

  std::string text() const {
    return fmt::format("{} of {} {}, offset {}, results {}{}{}", averages ? "avg" : to_string(op), count,
                       to_string(dtype), offset, static_cast<int>(results), scales.empty() ? "" : ", scaled",
                       averages ? ", divided" : "");
  }
  std::size_t stride() const { return (count * size_of(dtype) + 31) / 16 * 16; }
};

bool is_float(DType dtype) {
  return row_of(dtype).kind == col::ElementKind::floating;
}

// Random bits: of floats that is every kind of number, in all magnitudes; and some that are special, often.
Bytes inputs(const Problem& problem) {
  std::mt19937_64 random(problem.count * 31 + static_cast<std::size_t>(problem.dtype));
  Bytes bytes(16 + problem.offset * size_of(problem.dtype) + kBlocks * problem.stride());
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  if (!is_float(problem.dtype)) return bytes;
  const double special[] = {0.0, -0.0, 1.0, -1.5, INFINITY, -INFINITY, NAN, 65504.0, 1e-7, 3.0};
  const std::size_t size = size_of(problem.dtype);
  for (std::size_t at = problem.offset * size; at + size <= bytes.size(); at += size) {
    const std::uint64_t dice = random();
    if (dice % 2 == 0) continue;
    const double value = special[dice / 2 % std::size(special)];
    const auto put = [&](auto element) { std::memcpy(bytes.data() + at, &element, size); };
    if (problem.dtype == DType::float16) put(col::float16(static_cast<float>(value)));
    if (problem.dtype == DType::bfloat16) put(col::bfloat16(static_cast<float>(value)));
    if (problem.dtype == DType::float32) put(static_cast<float>(value));
    if (problem.dtype == DType::float64) put(value);
  }
  return bytes;
}

// The host's. Results are those over the blocks before each.
std::vector<Bytes> expected(const Problem& problem, const std::byte* in) {
  std::vector<Op> ops(kBlocks, problem.averages ? Op(ReduceOp::avg) : Op(problem.op));
  std::vector<const std::byte*> blocks;
  for (std::size_t r = 0; r < kBlocks; ++r) {
    if (!problem.scales.empty()) ops[r] = Op::premul_sum(problem.scales[r]);
    blocks.push_back(in + r * problem.stride());
  }
  return col::test::host_folds(ops, problem.dtype, problem.count, blocks);
}

bool is_nan(DType dtype, const std::byte* element) {
  const auto as = [element]<class T>(T value) {
    std::memcpy(&value, element, sizeof value);
    return value;
  };
  if (dtype == DType::float16) return std::isnan(static_cast<float>(as(col::float16())));
  if (dtype == DType::bfloat16) return std::isnan(static_cast<float>(as(col::bfloat16())));
  if (dtype == DType::float8_e4m3fn) return std::isnan(static_cast<float>(as(col::float8_e4m3fn())));
  if (dtype == DType::float8_e5m2) return std::isnan(static_cast<float>(as(col::float8_e5m2())));
  if (dtype == DType::float32) return std::isnan(as(0.0f));
  if (dtype == DType::float64) return std::isnan(as(0.0));
  return false;
}

// The first element that differs, a NaN being any NaN; "" where none does.
std::string difference(const Problem& problem, const std::byte* got, const Bytes& want) {
  const std::size_t size = size_of(problem.dtype);
  for (std::size_t i = 0; i < problem.count; ++i) {
    const std::byte *a = got + i * size, *b = want.data() + i * size;
    if (std::memcmp(a, b, size) == 0 || (is_nan(problem.dtype, a) && is_nan(problem.dtype, b))) continue;
    std::string text = fmt::format("{}: element {}:", problem.text(), i);
    for (std::size_t k = size; k-- > 0;) text += fmt::format(" {:02x}", static_cast<int>(a[k]));
    text += ", not";
    for (std::size_t k = size; k-- > 0;) text += fmt::format(" {:02x}", static_cast<int>(b[k]));
    return text;
  }
  return {};
}

std::vector<std::uint64_t> factors_of(const Problem& problem) {
  std::vector<std::uint64_t> factors;
  for (const double scale : problem.scales)
    factors.push_back(is_float(problem.dtype) ? std::bit_cast<std::uint64_t>(scale)
                                              : static_cast<std::uint64_t>(static_cast<std::int64_t>(scale)));
  return factors;
}

// What is wrong with what the threads write, elsewhere or in the place of the inputs; "" for nothing.
template <class Loop>
std::string problem_of(const Problem& problem, std::size_t threads, bool in_place) {
  alignas(16) static thread_local std::byte memory[2][1 << 16];
  const Bytes bytes = inputs(problem);
  if (bytes.size() > sizeof memory[0]) return "the test has too little memory";
  std::memcpy(memory[0], bytes.data(), bytes.size());
  std::memset(memory[1], 0x5a, sizeof memory[1]);
  const std::size_t start = problem.offset * size_of(problem.dtype);
  std::byte* const in = memory[0] + start;
  std::byte* const out = in_place ? in : memory[1] + start;
  const auto want = expected(problem, in);
  const auto factors = factors_of(problem);
  const FoldArguments arguments{.in = in,
                                .out = out,
                                .in_stride = problem.stride(),
                                .out_stride = problem.stride(),
                                .count = problem.count,
                                .factors = factors.empty() ? nullptr : factors.data(),
                                .blocks = kBlocks,
                                .divisor = problem.averages ? static_cast<std::uint32_t>(kBlocks) : 0,
                                .results = problem.results};
  for (std::size_t thread = threads; thread-- > 0;) Loop::run(arguments, thread, threads);
  if (problem.results == Results::whole) {
    if (std::string text = difference(problem, out, want.back()); !text.empty()) return text;
    std::memcpy(out, want.back().data(), want.back().size());  // so that the rest can be compared as a whole
  } else {
    const std::size_t before = problem.results == Results::exclusive ? 1 : 0;
    for (std::size_t r = before; r < kBlocks; ++r) {
      std::byte* const block = out + r * problem.stride();
      if (std::string text = difference(problem, block, want[r - before]); !text.empty())
        return fmt::format("result {}: {}", r, text);
    }
  }
  if (in_place) return {};
  if (std::memcmp(memory[0], bytes.data(), bytes.size()) != 0) return problem.text() + ": an input was written";
  const std::size_t first = start + (problem.results == Results::exclusive ? problem.stride() : 0);
  const std::size_t end = start + (problem.results == Results::whole ? 0 : (kBlocks - 1) * problem.stride()) +
                          problem.count * size_of(problem.dtype);
  for (std::size_t i = 0; i < sizeof memory[1]; ++i) {
    if ((i < first || i >= end) && memory[1][i] != std::byte{0x5a})
      return fmt::format("{}: byte {} outside of the results was written", problem.text(), i);
  }
  return {};
}

template <class Loop>
std::string first_problem(Problem problem) {
  for (const Results results : {Results::whole, Results::inclusive, Results::exclusive}) {
    problem.results = results;
    for (const std::size_t count : {1, 2, 15, 16, 64, 257}) {
      problem.count = count;
      for (const std::size_t offset : {0, 1}) {
        problem.offset = offset;
        for (const std::size_t threads : {1, 3, 300}) {
          for (const bool in_place : {false, true}) {
            if (std::string text = problem_of<Loop>(problem, threads, in_place); !text.empty())
              return fmt::format("{} threads{}: {}", threads, in_place ? ", in place" : "", text);
          }
        }
      }
    }
  }
  return {};
}

}  // namespace

TEST_CASE("nccl kernels: what they compute is what the host computes, to the bit", "[nccl]") {
  std::size_t kernels = 0;
  for_each_fold([&]<class Loop>(ReduceOp op, DType dtype, Loop) {
    ++kernels;
    CHECK(first_problem<Loop>({.op = op, .dtype = dtype}) == "");
  });
  CHECK(kernels == 66);
}

TEST_CASE("nccl kernels: averages and scaled sums are those of the host, to the bit", "[nccl]") {
  for_each_fold([]<class Loop>(ReduceOp op, DType dtype, Loop) {
    if (op != ReduceOp::sum) return;
    CHECK(first_problem<Loop>({.op = op, .dtype = dtype, .averages = true}) == "");
    CHECK(first_problem<Loop>({.op = op, .dtype = dtype, .scales = {3, -2, 0, 1e9, 7}}) == "");
    if (is_float(dtype))
      CHECK(first_problem<Loop>({.op = op, .dtype = dtype, .scales = {0.1, -2.7, 1e-3, 1e9, 7}}) == "");
  });
}
