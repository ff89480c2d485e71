// Order::tree: what is refused, what ranks that do not agree are told, and whose order it is.
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"

namespace col::test {
namespace {

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
    refuses("whole contributions of 12", [&] { group.reduce_scatter(seven, out, tree({})); });
    refuses("overlap", [&] {
      std::vector<float> two(24);
      group.reduce_scatter(ConstTensorView(two), TensorView(two).slice(3u * static_cast<unsigned>(group.rank()), 3),
                           tree({}));
    });
    refuses("overlap", [&] { group.allreduce(ConstTensorView(in), TensorView(in).slice(0, 3), tree({})); });
    refuses("exact is not there yet", [&] { group.allreduce(out, {.order = Order::exact}); });
    refuses("is for what combines the data of all ranks", [&] { group.scan(in, in, tree({})); });
    refuses("does not combine contributions in the tree's order",
            [&] { group.reduce(in, out, tree({.algorithm = "mst"})); });
    refuses("does not combine contributions in the tree's order",
            [&] { group.reduce_scatter(more, out, tree({.algorithm = "ring"})); });
    refuses("contributions are counted in order = tree", [&] { group.allreduce(out, {.contributions = 4}); });
    refuses("contributions are counted in order = tree", [&] { group.broadcast(out, {.contributions = 4}); });
    group.allreduce(in, out, tree({.contributions = 8}));
    refuses("gives 1 of 8 contributions, but 2", [&] { group.allreduce(out, out, tree({.contributions = 8})); });
    refuses("gives 1 of 8 contributions, but 2", [&] { group.reduce_scatter(more, out, tree({.contributions = 8})); });
    // Away from the root, a rank knows by its share how long the result is.
    if (group.rank() != 0)
      refuses("gives 7 elements, no whole number of 8 contributions, but 2",
              [&] { group.reduce(seven, {}, tree({.contributions = 8})); });
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

TEST_CASE("tree: a reduce of parts of contributions is a mismatch that says whose", "[group]") {
  const Judge judge = all_end({.code = ErrorCode::mismatch,
                               .rank = 2,
                               .says = "rank 2 gives 7 elements, which are not whole contributions: the output of root "
                                       "1 has 3",
                               .promptly = true});
  for (const std::size_t contributions : {0u, 8u}) {
    threads_on_each_backend(4, judge, [&](Group& group) {
      std::vector<float> in(group.rank() == 2 ? 7 : 6), out(3);
      group.reduce(in, out, {.root = 1, .order = Order::tree, .contributions = contributions});
    });
  }
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
    group.reduce(in, out, {.op = ReduceOp::avg});
    expect(group.rank() != 0 || out[0] == 1, fmt::format("{}", out[0]));
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
