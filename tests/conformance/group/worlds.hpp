// One body on a group of every usable backend: ranks as threads, or as processes; and settings from the environment.
#pragma once

#include <cstdlib>
#include <functional>
#include <string>
#include <utility>

#include <col/col.hpp>

#include "conformance/group/backends.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

namespace col::test {

using GroupBody = std::function<void(Group& group, Context& context)>;

// The body of a rank that joins group "default" on `backend` first.
inline Body joined(int ranks, const std::string& backend, const GroupBody& body) {
  return [=](int rank, Context& context) {
    Group group = context.init_group({.rank = rank, .world_size = ranks, .backend_name = backend});
    body(group, context);
  };
}

inline void threads_on_each_backend(int ranks, const GroupBody& body, const RankOptions& options = {}) {
  for (const std::string& backend : usable_backends()) {
    const auto outcomes = run_threads(ranks, joined(ranks, backend, body), options);
    INFO(backend << " with " << ranks << " ranks\n" << show(outcomes));
    CHECK(all_good(outcomes));
  }
}

// Where the context does not matter.
inline void on_each_backend(int ranks, const std::function<void(Group&)>& body) {
  threads_on_each_backend(ranks, [&](Group& group, Context&) { body(group); });
}

inline void processes_on_each_backend(int ranks, const GroupBody& body, const RankOptions& options = {}) {
  for (const std::string& backend : usable_backends()) {
    const auto good_end = [&body](Group& group, Context& context) {
      body(group, context);
      context.finalize();
    };
    const auto outcomes = run_processes(ranks, joined(ranks, backend, good_end), options);
    INFO(backend << " with " << ranks << " ranks\n" << show(outcomes));
    CHECK(all_good(outcomes));
  }
}

// The error that `call` ends with; none is not as expected.
template <class Call>
Error error_of(Call&& call, CallPlace where = CallPlace::here()) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  expect(false, "no error", where);
  return Error(ErrorCode::internal, "");
}

// A variable of the environment, for as long as it lives. Contexts read theirs when they are made.
class Setting {
 public:
  Setting(std::string name, const std::string& value) : name_(std::move(name)) {
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Setting() { unsetenv(name_.c_str()); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  std::string name_;
};

}  // namespace col::test
