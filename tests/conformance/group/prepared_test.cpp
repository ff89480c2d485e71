// Calls that are prepared once and started again and again: <col/prepared.hpp>.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"
#include "unit/shm/again.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

constexpr Collective kAll[] = {Collective::allreduce, Collective::reduce,         Collective::broadcast,
                               Collective::allgather, Collective::gather,         Collective::scatter,
                               Collective::alltoall,  Collective::reduce_scatter, Collective::scan};

// One of this rank's calls, with its buffers: started with other data at every step.
class Repeated {
 public:
  Repeated(Group& group, const Again& again)
      : group_(group), again_(again), part_(std::make_unique<AgainPart>(group.rank(), group.size(), again.count)) {
    call_ = prepare_data(0);
    prepared_ = group.prepare(call_, options());
  }

  void start(int step) {
    call_ = prepare_data(step);
    prepared_.start();
  }
  // The same without the preparation.
  Work start_unprepared(int step) {
    call_ = prepare_data(step);
    return group_.start(call_, options());
  }
  PreparedCall& prepared() { return prepared_; }
  void expect_right() const { expect(part_->is_right(), std::string(to_string(again_.collective))); }
  Options options() const { return {.op = again_.op, .root = again_.root}; }

 private:
  Call prepare_data(int step) {
    const Request& request = part_->prepare(again_, step, 0);
    return {.collective = request.collective, .in = request.in, .out = request.out};
  }

  Group& group_;
  const Again again_;
  std::unique_ptr<AgainPart> part_;
  Call call_;
  PreparedCall prepared_;
};

// The largest int, by a function of the user's.
Op largest_of() {
  const auto largest = [](const void* left, const void* right, void* result, std::size_t count, DType /*dtype*/) {
    const auto* const a = static_cast<const int*>(left);
    const auto* const b = static_cast<const int*>(right);
    for (std::size_t i = 0; i < count; ++i) static_cast<int*>(result)[i] = std::max(a[i], b[i]);
  };
  return Op::user(largest, true, "largest");
}

std::vector<Repeated> one_of_each(Group& group, int count) {
  std::vector<Repeated> all;
  for (const Collective collective : kAll) all.emplace_back(group, Again{collective, count, group.size() - 1});
  return all;
}

TEST_CASE("prepared: every collective, started again and again with other data", "[group][prepared]") {
  for (const int n : {1, 2, 5}) {
    threads_on_each_backend(n, [](Group& group) {
      for (const int count : {1, 26, 3000}) {
        std::vector<Repeated> all = one_of_each(group, count);
        for (int step = 1; step < 8; ++step) {
          for (Repeated& one : all) {
            one.start(step);
            one.prepared().wait();
            expect(one.prepared().has_ended() && one.prepared().test(), "it has ended");
            one.expect_right();
          }
        }
      }
    });
  }
}

TEST_CASE("prepared: all in flight at once, beside calls that are not prepared", "[group][prepared]") {
  threads_on_each_backend(3, [](Group& group) {
    std::vector<Repeated> all = one_of_each(group, 500);
    std::vector<int> sums(100);
    for (int step = 1; step < 6; ++step) {
      for (Repeated& one : all) one.start(step);
      std::fill(sums.begin(), sums.end(), group.rank());
      Work beside = group.iallreduce(sums, sums);
      for (auto one = all.rbegin(); one != all.rend(); ++one) {
        while (!one->prepared().wait_for(10ms)) {
        }
        one->expect_right();
      }
      beside.wait();
      expect(sums.back() == 3, "the call beside");
      group.barrier();
    }
  });
}

TEST_CASE("prepared: it meets the i-forms of ranks that have not prepared", "[group][prepared]") {
  threads_on_each_backend(4, [](Group& group) {
    std::vector<Repeated> all = one_of_each(group, 40);
    for (int step = 1; step < 12; ++step) {
      for (Repeated& one : all) {
        if ((group.rank() + step) % 2 == 0) {
          one.start(step);
          one.prepared().wait();
        } else {
          one.start_unprepared(step).wait();
        }
        one.expect_right();
      }
    }
  });
}

TEST_CASE("prepared: lists of counts, a barrier, and a function of the user's", "[group][prepared]") {
  threads_on_each_backend(3, [](Group& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    std::vector<int> in(rank + 1), out(6);
    PreparedCall gathered;
    {
      const std::vector<std::size_t> counts{1, 2, 3};  // gone when it is started
      gathered = group.prepare({.collective = Collective::allgatherv, .in = in, .out = out, .out_counts = counts});
    }
    PreparedCall barrier = group.prepare({});
    std::vector<int> own(20), most(20);
    PreparedCall largest =
        group.prepare({.collective = Collective::allreduce, .in = own, .out = most}, {.op = largest_of()});
    for (int step = 0; step < 5; ++step) {
      std::fill(in.begin(), in.end(), group.rank() + step);
      std::fill(own.begin(), own.end(), group.rank() * step);
      gathered.start();
      barrier.start();
      largest.start();
      gathered.wait();
      expect(out == std::vector<int>{step, step + 1, step + 1, step + 2, step + 2, step + 2}, "gathered");
      barrier.wait();
      largest.wait();
      expect(most.back() == 2 * step, "the largest");
    }
  });
}

TEST_CASE("prepared: a wrong call is refused when it is prepared, and breaks nothing", "[group][prepared]") {
  threads_on_each_backend(2, [](Group& group) {
    std::vector<int> data(4);
    expect_error(ErrorCode::invalid_argument, "",
                 [&] { group.prepare({.collective = Collective::broadcast, .out = data}, {.root = 7}); });
    expect_error(ErrorCode::invalid_argument, "", [&] { group.prepare({.collective = Collective::send, .in = data}); });
    expect_error(ErrorCode::invalid_argument, "", [] { PreparedCall().start(); });
    PreparedCall none;
    none.wait();
    expect(none.test() && none.has_ended(), "nothing to wait for");
    group.barrier();
  });
}

TEST_CASE("prepared: to start one that is in progress is an error, which breaks nothing", "[group][prepared]") {
  threads_on_each_backend(2, [](Group& group) {
    std::vector<int> sum{group.rank() + 1};
    PreparedCall call = group.prepare({.collective = Collective::allreduce, .in = sum, .out = sum});
    if (group.rank() == 0) {
      call.start();
      if (!call.has_ended()) expect_error(ErrorCode::invalid_argument, "has not ended", [&] { call.start(); });
      group.send(std::vector<int>{0}, 1);  // now the other one may start
    } else {
      std::vector<int> word(1);
      group.recv(word, 0);
      call.start();
    }
    call.wait();
    expect(sum[0] == 3, "the sum");
  });
}

TEST_CASE("prepared: one that is dropped in progress goes on", "[group][prepared]") {
  threads_on_each_backend(3, [](Group& group) {
    std::vector<int> data(1000, group.rank() + 1);
    {
      PreparedCall call = group.prepare({.collective = Collective::allreduce, .in = data, .out = data});
      call.start();
    }
    group.barrier();
    expect(data.back() == 6, "the sum");
  });
}

TEST_CASE("prepared: ranks that start different calls are told which", "[group][prepared]") {
  const Judge judge = all_end({.code = ErrorCode::mismatch, .says = "allreduce of 8 int32"});
  threads_on_each_backend(2, judge, [](Group& group) {
    std::vector<int> data(8);
    const Op op = group.rank() == 0 ? ReduceOp::sum : ReduceOp::max;
    PreparedCall call = group.prepare({.collective = Collective::allreduce, .in = data, .out = data}, {.op = op});
    call.start();
    call.wait();
  });
}

TEST_CASE("prepared: a start that fails before it is in flight leaves nothing to wait for", "[group][prepared]") {
  const Setting strict("COL_CHECK", "strict");
  threads_on_each_backend(2, [](Group& group) {
    std::vector<int> data(8);
    const Op op = group.rank() == 0 ? ReduceOp::sum : ReduceOp::max;
    PreparedCall call = group.prepare({.collective = Collective::allreduce, .in = data, .out = data}, {.op = op});
    expect_error(ErrorCode::mismatch, "allreduce of 8 int32", [&] { call.start(); });
    expect(call.has_ended(), "it has ended");
    expect_error(ErrorCode::mismatch, "", [&] { call.wait(); });
    expect_error(ErrorCode::aborted, "", [&] { call.start(); });
  });
}

TEST_CASE("prepared: after the group's end, a start says so", "[group][prepared]") {
  threads_on_each_backend(2, [](Group& group) {
    std::vector<int> data(8);
    PreparedCall call = group.prepare({.collective = Collective::allreduce, .in = data, .out = data});
    call.start();
    call.wait();
    group.destroy();
    expect_error(ErrorCode::not_initialized, "destroyed", [&] { call.start(); });
    call.wait();
  });
}

}  // namespace
}  // namespace col::test
