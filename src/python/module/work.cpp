#include "work.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "arguments.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace col::python {
namespace {

// Never destroyed: at exit, libcol may still use what it holds.
std::vector<WorkObject::Parts>& dropped() {
  static auto* const list = new std::vector<WorkObject::Parts>;
  return *list;
}

}  // namespace

WorkObject::WorkObject(Parts parts, nb::object result) : parts_(std::move(parts)), result_(std::move(result)) {}

WorkObject::~WorkObject() {
  if (ended_ || parts_.buffers.empty() || parts_.work.has_ended()) return;
  dropped().push_back(std::move(parts_));
}

// Asks libcol. An exception of the user's own function comes before what libcol says of it.
template <class Call>
auto WorkObject::ask(Call&& call) {
  try {
    return without_gil(std::forward<Call>(call));
  } catch (...) {
    let_go_if_ended();
    parts_.operation.rethrow();
    throw;
  }
}

void WorkObject::let_go_if_ended() {
  ended_ = parts_.work.has_ended();  // else the error is about the question: another thread uses the group, say
  if (ended_) parts_.buffers.clear();
}

nb::object WorkObject::wait(nb::object timeout) {
  if (timeout.is_none()) {
    ask([this] { parts_.work.wait(); });
  } else {
    const Duration budget = duration_of(timeout, "wait");
    if (!ask([this, budget] { return parts_.work.wait_for(budget); }))
      throw Error(ErrorCode::timeout, "wait: the operation has not ended after " +
                                          nb::cast<std::string>(nb::str(timeout)) + " s; it goes on");
  }
  ended_ = true;
  parts_.buffers.clear();
  return result_;
}

bool WorkObject::wait_for(double seconds) {
  if (!(seconds > 0)) return done();
  const Duration budget = duration_of(nb::float_(seconds), "wait_for");
  ended_ = ask([this, budget] { return parts_.work.wait_for(budget); });
  if (ended_) parts_.buffers.clear();
  return ended_;
}

bool WorkObject::done() {
  ended_ = ask([this] { return parts_.work.test(); });
  if (ended_) parts_.buffers.clear();
  return ended_;
}

int WorkObject::source() const {
  return parts_.work.source();
}

void let_go_of_dropped() {
  if (dropped().empty()) return;
  const auto first_ended = std::partition(dropped().begin(), dropped().end(),
                                          [](const WorkObject::Parts& parts) { return !parts.work.has_ended(); });
  // What is let go may run code of Python's that drops another.
  const std::vector<WorkObject::Parts> ended(std::make_move_iterator(first_ended),
                                             std::make_move_iterator(dropped().end()));
  dropped().erase(first_ended, dropped().end());
}

void bind_work(nb::module_& module) {
  nb::class_<WorkObject>(module, "Work",
                         "An operation that an i-form has started. It can be awaited in asyncio.\n\n"
                         "The buffers belong to the operation until it has ended. The Work keeps them alive; if it is "
                         "dropped, they are kept until the end all the same.")
      .def("wait", &WorkObject::wait, nb::arg("timeout") = nb::none(),
           "Blocks until the operation has ended, and returns its result. Without a timeout in seconds, the "
           "operation's own counts, from now. Raises the operation's error, at every call; col.Timeout if `timeout` "
           "passes first: the operation then goes on.")
      .def("wait_for", &WorkObject::wait_for, nb::arg("seconds"),
           "The same for so long at most. Returns whether the operation has ended; if not, it goes on.")
      .def("done", &WorkObject::done,
           "Returns whether the operation has ended, without blocking. Raises the operation's error.")
      .def_prop_ro("source", &WorkObject::source,
                   "After the end of a receive: the rank that sent the message. Otherwise -1.")
      .def_prop_ro("result", &WorkObject::result, "The output, which is complete once the operation has ended.");
}

}  // namespace col::python
