// Order::tree: the bits depend on the contributions alone. The oracle is the definition, level by level, and has
// nothing in common with the library's fold.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"

namespace col::test {
namespace {

template <class T>
constexpr bool kIsNarrow = std::is_class_v<T>;
// The type in which another one is added.
template <class T>
using Sum = std::conditional_t<kIsNarrow<T>, float, T>;

// The definition: neighbours are combined level by level, and an odd last one goes up as it is.
template <class Value, class Combine>
Value oracle(std::vector<Value> level, Combine combine) {
  while (level.size() > 1) {
    std::vector<Value> above;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) above.push_back(combine(level[i], level[i + 1]));
    if (level.size() % 2 != 0) above.push_back(level.back());
    level = above;
  }
  return level.front();
}

std::uint64_t mixed(std::uint64_t seed, std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15u + a * 0xbf58476d1ce4e5b9u + b * 0x94d049bb133111ebu;
  for (int i = 0; i < 3; ++i) x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 32);
}

// Element `i` of contribution `v`: of different sizes and signs, so that another order has other bits.
template <class T>
T element(std::uint64_t seed, std::size_t v, std::size_t i) {
  const std::uint64_t drawn = mixed(seed, v, i);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(drawn);
  } else {
    const auto fraction = 1 + static_cast<Sum<T>>(drawn % 1021) / 1021;
    const int exponent = static_cast<int>((drawn >> 12) % (sizeof(T) == 1 ? 4 : 10)) - 2;
    return static_cast<T>(static_cast<Sum<T>>(std::ldexp(fraction, exponent)) * ((drawn >> 30) % 2 != 0 ? -1 : 1));
  }
}

// Neither commutative nor associative: the order, and which operand is the left one, are in the result.
float skew(float left, float right) {
  return 1.5f * left + right / 3;
}
Op skewed() {
  return Op::user(
      [](const void* left, const void* right, void* result, std::size_t count, DType /*dtype*/) {
        for (std::size_t i = 0; i < count; ++i)
          static_cast<float*>(result)[i] =
              skew(static_cast<const float*>(left)[i], static_cast<const float*>(right)[i]);
      },
      false, "skew");
}

enum class Operation { sum, product, avg, user };

struct Draw {
  std::uint64_t seed = 0;
  std::size_t count = 1;
  std::vector<std::size_t> shares = {};
  std::size_t named = 0;  // Options::contributions
  Operation operation = Operation::sum;
  std::string algorithm = {};
  enum class Form { blocking, started, prepared } form = Form::blocking;
  std::string text() const {
    return fmt::format("seed {}, {} elements, shares {}, named {}, operation {}, '{}', form {}", seed, count, shares,
                       named, static_cast<int>(operation), algorithm, static_cast<int>(form));
  }
};

template <class T>
std::vector<T> expected(const Draw& draw) {
  std::size_t total = 0;
  for (const std::size_t share : draw.shares) total += share;
  std::vector<T> result(draw.count);
  for (std::size_t i = 0; i < draw.count; ++i) {
    std::vector<Sum<T>> level;
    for (std::size_t v = 0; v < total; ++v) level.push_back(static_cast<Sum<T>>(element<T>(draw.seed, v, i)));
    auto value = oracle(level, [&](Sum<T> a, Sum<T> b) -> Sum<T> {
      if constexpr (std::is_integral_v<T>) {  // they wrap
        const auto x = static_cast<std::make_unsigned_t<T>>(a), y = static_cast<std::make_unsigned_t<T>>(b);
        return static_cast<T>(draw.operation == Operation::product ? x * y : x + y);
      }
      if (draw.operation == Operation::product) return a * b;
      if constexpr (std::is_same_v<T, float>) {
        if (draw.operation == Operation::user) return skew(a, b);
      }
      return a + b;
    });
    if (draw.operation == Operation::avg) value = value / static_cast<Sum<T>>(total);
    result[i] = static_cast<T>(value);
  }
  return result;
}

Op op_of(Operation operation) {
  switch (operation) {
    case Operation::sum:
      return ReduceOp::sum;
    case Operation::product:
      return ReduceOp::product;
    case Operation::avg:
      return ReduceOp::avg;
    case Operation::user:
      return skewed();
  }
  return ReduceOp::sum;
}

template <class T>
void try_one(Group& group, const Draw& draw) {
  const auto own = static_cast<std::size_t>(group.rank());
  std::size_t first = 0;
  for (std::size_t r = 0; r < own; ++r) first += draw.shares[r];
  std::vector<T> in;
  for (std::size_t v = 0; v < draw.shares[own]; ++v) {
    for (std::size_t i = 0; i < draw.count; ++i) in.push_back(element<T>(draw.seed, first + v, i));
  }
  const bool in_place = draw.shares[own] == 1 && draw.seed % 2 == 0;
  std::vector<T> out = in_place ? in : std::vector<T>(draw.count);
  const Options options{
      .op = op_of(draw.operation), .algorithm = draw.algorithm, .order = Order::tree, .contributions = draw.named};
  const ConstTensorView from = in_place ? ConstTensorView(out) : ConstTensorView(in);
  const Call call{.collective = Collective::allreduce, .in = from, .out = out};
  if (draw.form == Draw::Form::blocking) {
    group.run(call, options);
  } else if (draw.form == Draw::Form::started || draw.operation == Operation::user) {
    group.start(call, options).wait();
  } else {
    PreparedCall prepared = group.prepare(call, options);
    prepared.start();
    prepared.wait();
  }
  const std::vector<T> right = expected<T>(draw);
  expect(std::memcmp(out.data(), right.data(), draw.count * sizeof(T)) == 0,
         fmt::format("other bits: {} of {}", draw.text(), to_string(dtype_of<T>())));
}

void try_type(Group& group, int type, const Draw& draw) {
  switch (type % 7) {
    case 0:
      return try_one<float>(group, draw);
    case 1:
      return try_one<double>(group, draw);
    case 2:
      return try_one<std::int32_t>(group, draw);
    case 3:
      return try_one<std::uint64_t>(group, draw);
    case 4:
      return try_one<float16>(group, draw);
    case 5:
      return try_one<bfloat16>(group, draw);
    default:
      return try_one<float8_e5m2>(group, draw);
  }
}

// Shares that add up to `total`, with zeros.
std::vector<std::size_t> shares_of(int ranks, std::size_t total, std::uint64_t seed) {
  std::vector<std::size_t> shares(static_cast<std::size_t>(ranks), 0);
  for (std::size_t v = 0; v < total; ++v) {
    const std::uint64_t drawn = mixed(seed, v, 1);
    ++shares[(drawn % 3 == 0 ? seed : drawn) / 3 % shares.size()];
  }
  return shares;
}

// Every rank draws the same.
Draw drawn(int ranks, std::uint64_t seed, int type) {
  Draw draw{.seed = seed};
  const std::size_t total = 1 + mixed(seed, 2, 0) % 40;
  constexpr std::array<std::size_t, 5> kCounts = {1, 2, 7, 300, 9001};
  constexpr std::array<const char*, 4> kAlgorithms = {"", "", "direct", "one_shot"};
  draw.count = kCounts[mixed(seed, 3, 0) % kCounts.size()];
  draw.algorithm = kAlgorithms[mixed(seed, 4, 0) % kAlgorithms.size()];
  draw.form = static_cast<Draw::Form>(mixed(seed, 5, 0) % 3);
  draw.operation = static_cast<Operation>(mixed(seed, 6, 0) % 4);
  if (draw.operation == Operation::user && type % 7 != 0) draw.operation = Operation::sum;
  // Calls that name so many all give the same shares: those of the number.
  const bool names = mixed(seed, 7, 0) % 2 == 0;
  if (names) draw.named = total;
  draw.shares = shares_of(ranks, total, names ? total : seed);
  return draw;
}

std::uint64_t random_seed() {
  return std::random_device()();
}

void draw_on(int ranks, int draws, std::uint64_t seed) {
  INFO("seed " << seed);
  threads_on_each_backend(ranks, [&](Group& group) {
    for (int i = 0; i < draws; ++i) {
      const std::uint64_t own = mixed(seed, static_cast<std::uint64_t>(i), 0);
      const int type = static_cast<int>(own >> 40 & 0xff);
      try_type(group, type, drawn(group.size(), own, type));
    }
  });
}

TEST_CASE("tree: the bits of the definition at every number of ranks, a draw", "[group]") {
  const std::uint64_t seed = random_seed();
  for (const int ranks : {1, 2, 3, 5, 8}) draw_on(ranks, 40, seed);
}

TEST_CASE("tree: the bits of the definition at every number of ranks, all of them", "[group][rest]") {
  const std::uint64_t seed = random_seed();
  for (int ranks = 1; ranks <= 9; ++ranks) draw_on(ranks, 600, seed + static_cast<std::uint64_t>(ranks));
}

// The second call knows what each rank gives: a backend may do it in its own way, and the third is one that comes
// again.
TEST_CASE("tree: one contribution of each rank, by whatever way a backend has", "[group]") {
  for (const int ranks : {2, 4, 5}) {
    threads_on_each_backend(ranks, [](Group& group) {
      Draw draw{.shares = std::vector<std::size_t>(static_cast<std::size_t>(group.size()), 1)};
      draw.named = draw.shares.size();
      for (const std::size_t count : {1, 3, 40, 300, 9001, 20000}) {
        draw.count = count;
        for (int type = 0; type < (count > 300 ? 1 : 7); ++type) {
          for (int i = 0; i < 3; ++i) {
            draw.seed = count + static_cast<std::uint64_t>(i);
            draw.operation = static_cast<Operation>(i == 2 && type == 0 ? 3 : i);
            try_type(group, type, draw);
          }
        }
      }
      std::vector<float> data(3), out(3);
      const Options options{.order = Order::tree, .contributions = draw.named};
      for (int i = 0; i < 4; ++i) group.allreduce(data, out, options);
      const bool is_shared = group.explain(Collective::allreduce, 12, DType::float32).starts_with("shared");
      const Options named{.algorithm = "shared", .order = Order::tree, .contributions = draw.named};
      if (is_shared) group.allreduce(data, out, named);
      if (!is_shared) expect_error(ErrorCode::invalid_argument, "shared", [&] { group.allreduce(data, out, named); });
      expect_error(ErrorCode::invalid_argument, "shared",
                   [&] { group.allreduce(data, out, {.algorithm = "shared", .order = Order::tree}); });
    });
  }
}

// Another order shows with these values: the cases above would see it.
TEST_CASE("tree: a fold in rank order has other bits", "[group]") {
  threads_on_each_backend(5, [](Group& group) {
    const Draw draw{.seed = 12, .count = 300, .shares = {1, 1, 1, 1, 1}};
    std::vector<float> in;
    for (std::size_t i = 0; i < draw.count; ++i)
      in.push_back(element<float>(draw.seed, static_cast<std::size_t>(group.rank()), i));
    std::vector<float> in_rank_order(draw.count);
    group.allreduce(in, in_rank_order, {.order = Order::rank});
    expect(in_rank_order != expected<float>(draw), "the two orders cannot be told apart");
    try_one<float>(group, draw);
  });
}

TEST_CASE("tree: of premul_sum, every contribution of a rank has the factor of that rank", "[group]") {
  threads_on_each_backend(3, [](Group& group) {
    const std::vector<float> in(static_cast<std::size_t>(group.rank() + 1), 1.0f);
    std::vector<float> out(1);
    group.allreduce(in, out, {.op = Op::premul_sum(group.rank() + 1.0), .order = Order::tree});
    expect(out[0] == 1 + 2 * 2 + 3 * 3, "factors");
  });
}

TEST_CASE("tree: an average divides by the contributions, not by the ranks", "[group]") {
  threads_on_each_backend(2, [](Group& group) {
    const std::vector<int> in(group.rank() == 0 ? 7u : 0u, 6);
    std::vector<int> out(1);
    group.allreduce(in, out, {.op = ReduceOp::avg, .order = Order::tree});
    expect(out[0] == 6, fmt::format("{}", out[0]));
  });
}

TEST_CASE("tree: nothing to reduce is no error where nothing moves", "[group]") {
  threads_on_each_backend(2, [](Group& group) {
    std::vector<float> nothing;
    group.allreduce(nothing, nothing, {.order = Order::tree});
    group.barrier();
  });
}

TEST_CASE("tree: what cannot be had is refused before any data moves, and the group goes on", "[group]") {
  threads_on_each_backend(4, [](Group& group) {
    std::vector<float> in(6), out(3), more(12), seven(7);
    const auto refuses = [](const std::string& says, auto&& call) {
      expect_error(ErrorCode::invalid_argument, says, call);
    };
    const auto tree = [](Options options) {
      options.order = Order::tree;
      return options;
    };
    refuses("does not combine contributions in the tree's order",
            [&] { group.allreduce(in, out, tree({.algorithm = "ring"})); });
    refuses("deterministic asks for rank order", [&] { group.allreduce(in, out, tree({.deterministic = true})); });
    refuses("compress rounds", [&] { group.allreduce(in, out, tree({.compress = true})); });
    refuses("whole contributions of 3", [&] { group.allreduce(seven, out, tree({})); });
    refuses("overlap", [&] { group.allreduce(ConstTensorView(in), TensorView(in).slice(0, 3), tree({})); });
    refuses("exact is not there yet", [&] { group.allreduce(out, {.order = Order::exact}); });
    refuses("is there for allreduce so far", [&] { group.scan(in, in, tree({})); });
    refuses("is there for allreduce so far", [&] { group.reduce(in, in, tree({})); });
    refuses("is there for allreduce so far", [&] { group.reduce_scatter(more, out, tree({})); });
    refuses("contributions are counted in order = tree", [&] { group.allreduce(out, {.contributions = 4}); });
    refuses("contributions are counted in order = tree", [&] { group.broadcast(out, {.contributions = 4}); });
    group.allreduce(in, out, tree({.contributions = 8}));
    refuses("gives 1 of 8 contributions, but 2", [&] { group.allreduce(out, out, tree({.contributions = 8})); });
    group.allreduce(in, out, tree({}));
    group.barrier();
  });
}

TEST_CASE("tree: explain says what was left out, and nothing of a backend's own is taken", "[group]") {
  threads_on_each_backend(3, [](Group& group) {
    std::string texts;
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{1} << 20}) {
      const std::string text = group.explain(Collective::allreduce, bytes, DType::float32, {.order = Order::tree});
      const std::string name = text.substr(0, text.find(':'));
      expect(name == "direct" || name == "one_shot", text);
      texts += text + "\n";
    }
    expect(has(texts, "in the tree's order"), texts);
  });
}

TEST_CASE("tree: contributions that do not add up are a mismatch that says who gave what", "[group]") {
  const Judge judge = all_end({.code = ErrorCode::mismatch,
                               .says = "contributions is 8, but the ranks give 7: rank 2 gives 1; ranks 0, 1, 3 give 2",
                               .promptly = true});
  threads_on_each_backend(4, judge, [](Group& group) {
    const std::vector<float> in(group.rank() == 2 ? 3u : 6u);
    std::vector<float> out(3);
    group.allreduce(in, out, {.order = Order::tree, .contributions = 8});
  });
}

TEST_CASE("tree: no contribution at all is a mismatch", "[group]") {
  const Judge judge = all_end({.code = ErrorCode::mismatch, .says = "no rank gives a contribution", .promptly = true});
  threads_on_each_backend(2, judge, [](Group& group) {
    std::vector<float> in, out(3);
    group.allreduce(in, out, {.order = Order::tree});
  });
}

TEST_CASE("tree: ranks that name different orders, or numbers, are told who gave what", "[group]") {
  const auto tell = [](const std::string& says, auto options_of) {
    const Judge judge = all_end({.code = ErrorCode::mismatch, .rank = 2, .says = says, .promptly = true});
    threads_on_each_backend(3, judge, [&](Group& group) {
      std::vector<float> data(5);
      group.allreduce(data, options_of(group.rank() == 2));
    });
  };
  tell("rank 2 called allreduce of 5 float32, sum, in the tree's order of 4 contributions",
       [](bool odd) { return Options{.order = Order::tree, .contributions = odd ? 4u : 3u}; });
  tell("in the tree's order, by direct",
       [](bool odd) { return Options{.algorithm = "direct", .order = odd ? Order::rank : Order::tree}; });
  tell("rank 2 called allreduce of 5 float32, sum, in rank order, by direct",
       [](bool odd) { return Options{.algorithm = "direct", .order = odd ? Order::rank : Order::any}; });
}

TEST_CASE("tree: COL_ORDER is the order of calls that name none, and scans stay as they are", "[group]") {
  const Setting setting("COL_ORDER", "tree");
  threads_on_each_backend(2, [](Group& group) {
    const std::vector<int> in(group.rank() == 0 ? 3u : 2u, 1);
    std::vector<int> out(1);
    group.allreduce(in, out);
    expect(out[0] == 5, fmt::format("{}", out[0]));
    std::vector<int> one = {1};
    group.scan(one, one);
    expect(one[0] == group.rank() + 1, "scan");
    group.allreduce(one, {.order = Order::rank});
    expect_error(ErrorCode::invalid_argument, "the group's order is tree", [&] { group.reduce(one, one); });
  });
}

TEST_CASE("tree: a context has an order of its own, and its word wins", "[group]") {
  const auto sum_of = [](Order order, std::vector<int> in) {
    ContextSpec spec;
    spec.order = order;
    Context context(spec);
    Group group = context.init_group({.rank = 0, .world_size = 1});
    std::vector<int> out(1);
    group.allreduce(in, out);
    return out[0];
  };
  CHECK(sum_of(Order::tree, {1, 2, 3}) == 6);
  {
    const Setting setting("COL_ORDER", "tree");
    CHECK(sum_of(Order::any, {1, 2, 3}) == 6);
    CHECK(sum_of(Order::rank, {7}) == 7);
    CHECK_THROWS_AS(sum_of(Order::rank, {1, 2}), Error);
    const Setting numerics("COL_NUMERICS", "deterministic");
    CHECK_THROWS_AS(sum_of(Order::any, {1}), Error);
  }
  CHECK_THROWS_AS(sum_of(Order::exact, {1}), Error);
}

}  // namespace
}  // namespace col::test
