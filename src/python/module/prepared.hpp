// Collectives that come again, for Python.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>
#include <vector>

#include <col/group.hpp>

#include "work.hpp"

namespace nb = nanobind;

namespace col::python {

class PreparedObject {
 public:
  PreparedObject(PreparedCall call, std::vector<Buffer> buffers, Operation operation, nb::object result)
      : call_(std::move(call)),
        buffers_(std::move(buffers)),
        operation_(std::move(operation)),
        result_(std::move(result)) {}

  // Returns the Work, which keeps what the call uses.
  nb::object start();
  // These are about the Work of the start before; without one, there is nothing to wait for.
  nb::object wait(nb::object timeout, nb::object stream);
  bool done();
  nb::object result() const { return result_; }

 private:
  PreparedCall call_;
  std::vector<Buffer> buffers_;
  Operation operation_;
  nb::object result_, work_;
};

void bind_prepared(nb::module_& module);

}  // namespace col::python
