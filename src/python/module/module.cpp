// The module col._col: what of the package col is C++. It sees <col/...> alone. The package's own files name everything
// that users see.
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <col/group.hpp>

#include "context.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "group.hpp"
#include "lists.hpp"
#include "memory.hpp"
#include "messages.hpp"
#include "operators.hpp"
#include "plan.hpp"
#include "prepared.hpp"
#include "store_server.hpp"
#include "work.hpp"

namespace nb = nanobind;

NB_MODULE(_col, module) {
  namespace py = col::python;
  // What lives when the interpreter ends does so on purpose: operations in flight use it.
  nb::set_leak_warnings(false);
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const col::Error& e) {
      py::set_error(e);
    }
  });
  py::bind_operators(module);
  py::bind_work(module);
  py::bind_prepared(module);
  py::bind_messages(module);
  auto group = py::bind_group(module);
  py::add_families(group);
  py::add_objects(group);
  py::add_insight(group);
  py::bind_tracing(module);
  py::add_multi_gpu(group);
  py::bind_context(module);
  py::bind_memory(module);
  py::bind_lists(module);
  py::bind_plan(module);
  py::bind_store_server(module);
  module.def("version", [] { return std::string(col::version()); });
  module.def("gloo_unavailable_reason", col::gloo_unavailable_reason,
             "Why Gloo is not available, in words; empty if it is.");
  module.def("nccl_unavailable_reason", col::nccl_unavailable_reason,
             "Why NCCL is not available, in words; empty if it is.");
  module.def("set_error_classes", py::set_error_classes);
  module.def("close", py::close, "Says that the interpreter ends.");
}
