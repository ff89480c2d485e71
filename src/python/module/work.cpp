#include "work.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <stdexcept>
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

// The function of then(). libcol calls it in a thread without the GIL.
void tell(PyObject* function, const std::optional<Error>& error) {
  const WithGil gil;
  try {
    const nb::object given = error ? exception_of(*error) : nb::none();
    const nb::object returned = nb::steal(call_function(function, given.ptr()));
    if (!returned) throw nb::python_error();
  } catch (const nb::python_error& raised) {
    throw std::runtime_error(std::string(nb::type_name(raised.type()).c_str()) + ": " + said(raised));
  }
}

}  // namespace

// The operations of a list of Works, as the free functions take them.
struct WorkObject::Several {
  nb::list kept;
  std::vector<WorkObject*> objects;
  std::vector<Work> works;

  explicit Several(nb::iterable list) {
    for (const nb::handle item : list) {
      if (!nb::isinstance<WorkObject>(item)) refuse("wait_all and wait_any take a list of Works");
      kept.append(item);
      objects.push_back(nb::inst_ptr<WorkObject>(item));
      works.push_back(objects.back()->parts_.work);
    }
  }

  template <class Call>
  auto ask(Call&& call) {
    try {
      return without_gil(std::forward<Call>(call));
    } catch (...) {
      for (WorkObject* const object : objects) {
        object->let_go_if_ended();
        object->parts_.operation.rethrow();
      }
      throw;
    }
  }

  // The timeout of the first that has not ended.
  Error first_overdue(Duration waited) {
    const auto late = std::find_if(works.begin(), works.end(), [](const Work& work) { return !work.has_ended(); });
    return ask([&] { return (late != works.end() ? *late : works.front()).overdue(waited); });
  }
};

WorkObject::WorkObject(Parts parts, nb::object result) : parts_(std::move(parts)), result_(std::move(result)) {}

WorkObject::~WorkObject() {
  if (ended_ || parts_.work.has_ended()) return;
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
  // Else the error is about the question: another thread uses the group, say.
  let_go(parts_.work.has_ended());
}

void WorkObject::let_go(bool has_ended) {
  ended_ = has_ended;
  if (!ended_) return;
  // Out of the list first: what a buffer takes with it may run code of Python's, and another thread, that comes here.
  const std::vector<Buffer> buffers = std::exchange(parts_.buffers, {});
}

nb::object WorkObject::wait(nb::object timeout, nb::object stream) {
  if (!stream.is_none()) {
    if (!timeout.is_none()) refuse("wait: a stream waits without a timeout; name only one of the two");
    const Stream given{PyLong_AsVoidPtr(stream.ptr())};
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    ask([this, given] { parts_.work.wait(given); });
    return result_;
  }
  if (timeout.is_none()) {
    ask([this] { parts_.work.wait(); });
  } else {
    const Duration budget = duration_of(timeout, "wait");
    if (!ask([this, budget] { return parts_.work.wait_for(budget); })) throw overdue_by(budget);
  }
  let_go(true);
  return result_;
}

bool WorkObject::wait_for(double seconds) {
  if (!(seconds > 0)) return done();
  const Duration budget = duration_of(nb::float_(seconds), "wait_for");
  let_go(ask([this, budget] { return parts_.work.wait_for(budget); }));
  return ended_;
}

bool WorkObject::done() {
  let_go(ask([this] { return parts_.work.test(); }));
  return ended_;
}

Error WorkObject::overdue_by(Duration waited) {
  return ask([this, waited] { return parts_.work.overdue(waited); });
}

nb::object WorkObject::overdue(double seconds) {
  return exception_of(overdue_by(duration_of(nb::float_(seconds), "overdue")));
}

int WorkObject::source() const {
  return parts_.work.source();
}

nb::object WorkObject::error() const {
  const std::optional<Error> error = parts_.work.error();
  return error ? exception_of(*error) : nb::none();
}

WorkObject WorkObject::then(nb::object function) {
  if (function.is_none()) {
    const auto nothing = [](const std::optional<Error>&) {};
    return {{.work = without_gil([&] { return parts_.work.then(nothing); })}, nb::none()};
  }
  if (PyCallable_Check(function.ptr()) == 0)
    refuse("then: it takes a function of one argument, the error or None; or None instead of a function");
  const auto call = [kept = held(function.release().ptr())](const std::optional<Error>& error) {
    tell(kept.get(), error);
  };
  return {{.work = without_gil([&] { return parts_.work.then(call); })}, nb::none()};
}

nb::list WorkObject::wait_all(nb::iterable works, nb::object timeout) {
  Several several(works);
  const Duration budget = timeout.is_none() ? Duration::zero() : duration_of(timeout, "wait_all");
  if (!several.ask([&] { return col::wait_all(several.works, budget); })) throw several.first_overdue(budget);
  nb::list results;
  for (WorkObject* const object : several.objects) results.append(object->wait(nb::none(), nb::none()));
  return results;
}

std::size_t WorkObject::wait_any(nb::iterable works, nb::object timeout) {
  Several several(works);
  const Duration budget = timeout.is_none() ? Duration::zero() : duration_of(timeout, "wait_any");
  const auto place = several.ask([&] { return col::wait_any(several.works, budget); });
  if (!place) throw several.first_overdue(budget);
  several.objects[*place]->let_go_if_ended();
  return *place;
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
  nb::class_<WorkObject>(module, "Work", nb::is_weak_referenceable(),
                         "An operation that an i-form has started. It can be awaited in asyncio.\n\n"
                         "The buffers belong to the operation until it has ended. The Work keeps them alive; if it is "
                         "dropped, they are kept until the end all the same.")
      .def(
          "wait", &WorkObject::wait, nb::arg("timeout") = nb::none(), nb::kw_only(), nb::arg("stream") = nb::none(),
          "Blocks until the operation has ended, and returns its result. Without a timeout in seconds, the "
          "operation's own counts, from now. Raises the operation's error, at every call; col.Timeout, which names the "
          "missing ranks, if `timeout` passes first: the operation then goes on.\n\n"
          "With a stream, a cudaStream_t as an int such as torch.cuda.current_stream().cuda_stream, the stream waits "
          "and not the host: what it gets from now on comes after the operation. The result is complete for this "
          "stream. Only in a group of GPUs, else col.Unavailable. Nobody counts a timeout meanwhile.")
      .def("wait_for", &WorkObject::wait_for, nb::arg("seconds"),
           "The same for so long at most. Returns whether the operation has ended; if not, it goes on.")
      .def("overdue", &WorkObject::overdue, nb::arg("seconds"),
           "After a wait_for(seconds) that returned False: the col.Timeout that wait(seconds) would have raised. It is "
           "not raised.")
      .def("done", &WorkObject::done,
           "Returns whether the operation has ended, without blocking. Raises the operation's error.")
      .def("then", &WorkObject::then, nb::arg("function").none(),
           "Calls the function with None when the operation has ended, or with its error, in a thread of the library. "
           "Returns the Work of the function. The function may start operations, and must not wait.\n\n"
           "With None in place of a function, that thread only moves the operation on and counts its timeout, where "
           "the host makes no call meanwhile: after wait(stream=…), say. It takes no lock of the interpreter.")
      .def_prop_ro("error", &WorkObject::error,
                   "The operation's error, an exception that is not raised; None after success, and before the end.")
      .def_prop_ro("source", &WorkObject::source,
                   "After the end of a receive: the rank that sent the message. Otherwise -1.")
      .def_prop_ro("result", &WorkObject::result, "The output, which is complete once the operation has ended.");
  module.def("wait_all", &WorkObject::wait_all, nb::arg("works"), nb::arg("timeout") = nb::none(),
             "Waits for all of them, and returns their results. Raises the first error in the order of the list; "
             "col.Timeout if `timeout` passes first: those that have not ended go on.");
  module.def("wait_any", &WorkObject::wait_any, nb::arg("works"), nb::arg("timeout") = nb::none(),
             "Waits until one of them has ended, and returns its place in the list, or raises its error.");
}

}  // namespace col::python
