// ContextSpec::serialize: threads that use one group take turns.
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

RankOptions serialized(Duration timeout = 20s) {
  return {.timeout = timeout, .adapt = [](ContextSpec& spec) { spec.serialize = true; }};
}

// The words of what `call` throws; empty if it throws nothing.
template <class Call>
std::string words_of(Call&& call) {
  try {
    call();
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST_CASE("serialize: threads make the same calls at once, and all are right", "[group]") {
  threads_on_each_backend(
      3, check_good,
      [](Group& group) {
        constexpr int kThreads = 4, kCalls = 50;
        for (const bool asynchronous : {false, true}) {
          std::vector<std::string> troubles(kThreads);
          {
            std::vector<std::jthread> threads;
            for (std::string& trouble : troubles) {
              threads.emplace_back([&] {
                trouble = words_of([&] {
                  std::vector<int> data(500), out(500);
                  for (int i = 0; i < kCalls; ++i) {
                    data.assign(data.size(), 1);
                    if (asynchronous)
                      group.iallreduce(data, out).wait();  // two turns
                    else
                      group.allreduce(data, out);
                    expect(out.front() == 3 && out.back() == 3);
                  }
                });
              });
            }
          }
          for (const std::string& trouble : troubles) expect(trouble.empty(), trouble);
          group.barrier();
        }
      },
      serialized());
}

TEST_CASE("serialize: a call of several parts is not cut by another thread", "[group]") {
  threads_on_each_backend(
      2, check_good,
      [](Group& group) {
        constexpr int kThreads = 3;
        std::vector<std::string> troubles(kThreads);
        {
          std::vector<std::jthread> threads;
          for (std::string& trouble : troubles) {
            threads.emplace_back([&] {
              trouble = words_of([&] {
                for (int i = 0; i < 20; ++i) {
                  const auto all = group.allgather_object(std::string(100, 'x'));
                  expect(all.size() == 2 && all[0] == all[1]);
                }
              });
            });
          }
        }
        for (const std::string& trouble : troubles) expect(trouble.empty(), trouble);
      },
      serialized());
}

TEST_CASE("serialize: ranks whose threads make different calls in different orders get a mismatch", "[group]") {
  threads_on_each_backend(
      2, check_good,
      [](Group& group) {
        std::vector<int> data(10, 1);
        const Error error = error_of([&] {
          if (group.rank() == 0)
            group.allreduce(data);
          else
            group.broadcast(data);
        });
        expect(error.code() == ErrorCode::mismatch, error.what());
      },
      serialized());
}

TEST_CASE("serialize: a thread that waits for its turn times out, and the call before goes on", "[group]") {
  threads_on_each_backend(
      2, check_good,
      [](Group& group, Context& context) {
        const std::string key = "timed out on " + std::string(group.backend());
        if (group.rank() == 1) {
          context.spec().store->wait_for(key, 20s);
          group.barrier();
          group.barrier();
          return;
        }
        std::atomic<bool> inside{false};
        std::string trouble;
        std::jthread other([&] {
          // Its calls wait for the other rank, one after the other: a user's reduction would tell nothing more.
          trouble = words_of([&] {
            inside = true;
            group.barrier();
          });
        });
        const auto deadline = Deadline::after(20s);
        while (!inside) expect(!deadline.expired());
        // Until the other thread is in its call, this one may come first, and would wait for the other rank itself.
        std::vector<int> nothing;
        Error error(ErrorCode::internal, "");
        do {
          expect(!deadline.expired());
          error = error_of([&] { group.send(nothing, 5, {.timeout = 200ms}); });
        } while (error.code() == ErrorCode::invalid_argument);
        context.spec().store->set(key, "");
        expect(error.code() == ErrorCode::timeout && has(error.message(), "another thread's call"), error.what());
        other.join();
        expect(trouble.empty(), trouble);
        group.barrier();
      },
      serialized());
}

TEST_CASE("serialize: a test of a Work does not wait for another thread's turn, nor does a short wait", "[group]") {
  // The interrupt is called in the thread that waits: then the other thread has its turn.
  const auto inside = std::make_shared<std::atomic<bool>>(false);
  RankOptions options = serialized();
  options.adapt = [inside](ContextSpec& spec) {
    spec.serialize = true;
    if (spec.rank == 0) spec.interrupt = [inside] { *inside = true; };
  };
  threads_on_each_backend(
      2, check_good,
      [inside](Group& group, Context& context) {
        const std::string key = "tested on " + std::string(group.backend());
        int value = 0;
        if (group.rank() == 1) {
          context.spec().store->wait_for(key, 20s);
          group.send(TensorView(&value, 1, DType::int32), 0);
          group.barrier();
          return;
        }
        *inside = false;
        Work work = group.irecv(TensorView(&value, 1, DType::int32), 1);
        std::string trouble;
        std::jthread other([&] { trouble = words_of([&] { group.barrier(); }); });
        const auto deadline = Deadline::after(20s);
        while (!*inside) expect(!deadline.expired());
        const auto begin = Deadline::Clock::now();
        expect(!work.test() && !work.wait_for(1ms) && !wait_any(std::span(&work, 1), 1ms));
        expect(Deadline::Clock::now() - begin < kPrompt);
        context.spec().store->set(key, "");
        other.join();
        expect(trouble.empty(), trouble);
        work.wait();
      },
      options);
}

TEST_CASE("serialize: a reduction that uses its group is refused, and does not wait for itself", "[group]") {
  threads_on_each_backend(
      2, check_good,
      [](Group& group) {
        std::vector<int> in(100, 1), out(100);
        const Op op = Op::user([&](auto&&...) { group.barrier(); }, true);
        const Error error = error_of([&] { group.allreduce(in, out, {.op = op}); });
        expect(error.code() == ErrorCode::invalid_argument || error.code() == ErrorCode::aborted ||
                   error.code() == ErrorCode::internal,
               error.what());
        expect(has(error.message(), "in use") || has(error.message(), "reduction"), error.what());
      },
      serialized());
}

TEST_CASE("serialize: destroying the group ends the threads that wait", "[group]") {
  threads_on_each_backend(
      2, check_good,
      [](Group& group, Context& context) {
        const std::string key = "destroyed on " + std::string(group.backend());
        if (group.rank() == 1) {
          context.spec().store->wait_for(key, 20s);
          return;
        }
        constexpr int kThreads = 3;
        std::atomic<int> begun{0};
        std::vector<std::string> said(kThreads);
        {
          std::vector<std::jthread> threads;
          for (std::string& words : said) {
            threads.emplace_back([&] {
              ++begun;
              words = words_of([&] { group.barrier(); });
            });
          }
          const auto deadline = Deadline::after(20s);
          while (begun < kThreads) expect(!deadline.expired());
          group.destroy();
        }
        context.spec().store->set(key, "");
        for (const std::string& words : said) expect(has(words, "destroyed"), words);
      },
      serialized());
}

TEST_CASE("without serialize, the second thread is told what to do", "[group]") {
  threads_on_each_backend(2, [](Group& group, Context& context) {
    const std::string key = "told on " + std::string(group.backend());
    if (group.rank() == 1) {
      context.spec().store->wait_for(key, 20s);
      group.barrier();
      return;
    }
    std::string trouble;
    std::jthread other([&] {
      do trouble = words_of([&] { group.barrier(); });
      while (has(trouble, "in use"));  // by the calls below
    });
    const auto deadline = Deadline::after(20s);
    std::vector<int> nothing;
    std::string said;
    while (!has(said, "in use by another thread")) {
      expect(!deadline.expired());
      said = words_of([&] { group.send(nothing, 5); });  // not sent in any case: there is no such rank
    }
    expect(has(said, "ContextSpec::serialize"), said);
    context.spec().store->set(key, "");
    other.join();
    expect(trouble.empty(), trouble);
  });
}

}  // namespace
}  // namespace col::test
