// Work for Python: an operation in flight, with all that it uses.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include <col/group.hpp>

#include "operators.hpp"
#include "tensor.hpp"

namespace nb = nanobind;

namespace col::python {

// Memory that an operation uses: it must not go before the operation has ended.
struct Buffer {
  nb::object object;
  std::shared_ptr<void> lease;  // see Tensor

  static Buffer of(const Tensor& tensor) { return {nb::borrow(tensor.object), tensor.lease}; }
};

// If the program drops it before the end, its group and what it uses are kept until the operation has ended.
class WorkObject {
 public:
  struct Parts {
    Work work;
    std::vector<Buffer> buffers = {};
    Operation operation = {};
  };

  WorkObject(Parts parts, nb::object result);
  ~WorkObject();
  WorkObject(WorkObject&&) = default;
  WorkObject& operator=(WorkObject&&) = delete;
  WorkObject(const WorkObject&) = delete;
  WorkObject& operator=(const WorkObject&) = delete;

  nb::object wait(nb::object timeout, nb::object stream);
  bool wait_for(double seconds);
  nb::object overdue(double seconds);
  bool done();
  int source() const;
  nb::object error() const;
  WorkObject then(nb::object function);
  nb::object result() const { return result_; }

  // Several at once: see <col/group.hpp>.
  static nb::list wait_all(nb::iterable works, nb::object timeout);
  static std::size_t wait_any(nb::iterable works, nb::object timeout);

 private:
  struct Several;
  template <class Call>
  auto ask(Call&& call);
  Error overdue_by(Duration waited);
  void let_go_if_ended();
  void let_go(bool has_ended);

  Parts parts_;
  nb::object result_;
  bool ended_ = false;
};

// Lets go of what dropped operations have used that have ended meanwhile. Cheap if there is none.
void let_go_of_dropped();

void bind_work(nb::module_& module);

}  // namespace col::python
