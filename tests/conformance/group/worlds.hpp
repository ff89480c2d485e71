// One body on a group of every usable backend: ranks as threads, or as processes.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include <col/channel.hpp>
#include <col/col.hpp>
#include <col/store.hpp>

#include "support/divided_hosts.hpp"
#include "support/outcomes.hpp"
#include "support/ranks.hpp"

namespace col::test {

// COL_TEST_BACKENDS, a list: a test that names its backends does not pass because it found none. Empty: all that are
// usable.
inline std::vector<std::string> named_backends() {
  const char* const text = std::getenv("COL_TEST_BACKENDS");
  std::vector<std::string> names;
  std::istringstream list(text != nullptr ? text : "");
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  return names;
}

// For host memory: all that this build has and this machine can use, and ranks that are divided among hosts in two
// ways, in one of them over UCX, too; or those of them that COL_TEST_BACKENDS names. Between ranks of one host, "hosts"
// itself is another name of shm.
inline std::vector<std::string> usable_backends() {
  register_divided_hosts();
  std::vector<std::string> names;
  for (const std::string& name : backend_names()) {
    if (name == "hosts" || name == "hosts_ucx" || name == "hosts_of_two") continue;
    const BackendFactory& factory = *find_backend(name);
    if (!factory.unavailable_reason() && factory.device() == Device::Type::cpu) names.push_back(name);
  }
  const std::vector<std::string> named = named_backends();
  for (const std::string& name : named)
    expect(std::find(names.begin(), names.end(), name) != names.end(), "COL_TEST_BACKENDS: " + name + " is not usable");
  return named.empty() ? names : named;
}

// What a rank does on one backend. A body takes the group "default", which the rank has joined by then, and the context
// if it likes; or its rank, the context and the backend's name, and joins groups by itself.
template <class Given>
Body rank_body(int ranks, const std::string& backend, const Given& given) {
  return [=](int rank, Context& context) {
    if constexpr (std::is_invocable_v<Given, int, Context&, const std::string&>) {
      given(rank, context, backend);
    } else {
      Group group = context.init_group({.rank = rank, .world_size = ranks, .backend_name = backend});
      if constexpr (std::is_invocable_v<Given, Group&>)
        given(group);
      else
        given(group, context);
    }
  };
}

// Of this process.
inline std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// Another group of the same ranks, over the same backend.
inline Group join_another(Context& context, const std::string& name, const Group& group) {
  return context.init_group(
      {.name = name, .rank = group.rank(), .world_size = group.size(), .backend_name = std::string(group.backend())});
}

// `run` runs the body of all ranks, and `judge` looks at how they ended.
template <class Given, class Run>
void on_each_backend(int ranks, const Judge& judge, const Given& given, Run run) {
  for (const std::string& backend : usable_backends()) {
    INFO(backend << " with " << ranks << " ranks");
    const std::vector<Outcome> outcomes = run(rank_body(ranks, backend, given));
    INFO(show(outcomes));
    judge(outcomes);
  }
}

// What a rank has not finalized when its body ends is broken off.
template <class Given>
void threads_on_each_backend(int ranks, const Judge& judge, const Given& given, const RankOptions& options = {}) {
  on_each_backend(ranks, judge, given, [&](const Body& body) { return run_threads(ranks, body, options); });
}
template <class Given>
void threads_on_each_backend(int ranks, const Given& given) {
  threads_on_each_backend(ranks, check_good, given);
}

template <class Given>
void processes_on_each_backend(int ranks, const Judge& judge, const Given& given) {
  on_each_backend(ranks, judge, given, [&](const Body& body) { return run_processes(ranks, body); });
}
// All ranks are to end well, and leave in good order.
template <class Given>
void processes_on_each_backend(int ranks, const Given& given) {
  on_each_backend(ranks, check_good, given, [&](const Body& body) {
    return run_processes(ranks, [&](int rank, Context& context) {
      body(rank, context);
      context.finalize();
    });
  });
}

// Kills the ranks `dying` when all others are out of a barrier. One that dies right behind a barrier of its own may
// take with it the word that it has had a message, and then the sender is still in there.
inline void kill_behind_barrier(Group& group, Context& context, const std::vector<int>& dying) {
  const auto is_dying = [&](int rank) { return std::find(dying.begin(), dying.end(), rank) != dying.end(); };
  const auto store = make_prefix_store(context.spec().store, "out of the barrier");
  group.barrier();
  if (!is_dying(group.rank())) return store->set(std::to_string(group.rank()), "yes");
  for (int rank = 0; rank < group.size(); ++rank) {
    if (!is_dying(rank)) store->wait_for(std::to_string(rank), std::chrono::seconds(20));
  }
  ::kill(::getpid(), SIGKILL);
}

// Calls of each kind, against what they must give.
inline void check_works(Group& group) {
  const int ranks = group.size(), me = group.rank();
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{300000}}) {
    std::vector<float> data(count, static_cast<float>(me + 1));
    group.allreduce(data);
    expect(data == std::vector<float>(count, static_cast<float>(ranks * (ranks + 1) / 2)), "allreduce");
  }
  std::vector<int> token{me == ranks - 1 ? 7 : 0};
  group.broadcast(token, {.root = ranks - 1});
  expect(token[0] == 7, "broadcast");
  std::vector<int> from{-1};
  group.sendrecv(std::vector{me}, (me + 1) % ranks, from, (me + ranks - 1) % ranks);
  expect(from[0] == (me + ranks - 1) % ranks, "sendrecv");
  group.iallreduce(token, token).wait();
  expect(token[0] == 7 * ranks, "iallreduce");
  group.barrier();
}

}  // namespace col::test
