#include "prepared.hpp"

#include "errors.hpp"
#include "gil.hpp"

namespace col::python {

nb::object PreparedObject::start() {
  let_go_of_dropped();
  without_gil([this] { call_.start(); });
  work_ = nb::cast(WorkObject({.work = call_.work(), .buffers = buffers_, .operation = operation_}, result_));
  return work_;
}

nb::object PreparedObject::wait(nb::object timeout, nb::object stream) {
  if (!work_.is_valid()) return result_;
  return nb::inst_ptr<WorkObject>(work_)->wait(std::move(timeout), std::move(stream));
}

bool PreparedObject::done() {
  return !work_.is_valid() || nb::inst_ptr<WorkObject>(work_)->done();
}

void bind_prepared(nb::module_& module) {
  nb::class_<PreparedObject>(module, "PreparedCall",
                             "A collective that comes again with the same buffers: Group.prepare() makes it. It is "
                             "started as often as wanted, one after the other. Every rank starts it, or calls the "
                             "i-form of the same collective.")
      .def("start", &PreparedObject::start,
           "Starts the call with what its buffers hold now, and returns its Work at once. Raises col.InvalidArgument "
           "if the start before has not ended, and what the i-form raises.")
      .def("wait", &PreparedObject::wait, nb::arg("timeout") = nb::none(), nb::kw_only(),
           nb::arg("stream") = nb::none(),
           "As Work.wait() of the last start: blocks until it has ended, and returns the result. Returns at once if "
           "nothing was started.")
      .def("done", &PreparedObject::done,
           "As Work.done() of the last start: whether it has ended. True if nothing was started.")
      .def_prop_ro("result", &PreparedObject::result, "The output, which is complete once a start has ended.");
}

}  // namespace col::python
