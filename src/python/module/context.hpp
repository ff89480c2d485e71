// The job of this process: init(), finalize(), and the groups by their names.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include <col/group.hpp>

namespace nb = nanobind;

namespace col::python {

// The context that init() has made, else the one of the environment. Made with the GIL, for a call without it: the
// context stays until the call has ended, though finalize() lets go of it meanwhile.
class CurrentContext {
 public:
  CurrentContext();
  // The one of a Context of Python's, unless that is None.
  explicit CurrentContext(nb::handle context);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  Context& operator*() const { return own_ ? *own_ : Context::current(); }
  Context* operator->() const { return &**this; }

 private:
  std::shared_ptr<Context> own_;  // shared with init(), and other calls
};

// A group of a Context of Python's: keeps the context, which otherwise ends with its object.
class ContextGroup : public Group {
 public:
  ContextGroup(Group group, std::shared_ptr<Context> context);
  ContextGroup(ContextGroup&&) = default;
  ~ContextGroup();
  ContextGroup& operator=(ContextGroup&&) = delete;
  ContextGroup(const ContextGroup&) = delete;
  ContextGroup& operator=(const ContextGroup&) = delete;

  const std::shared_ptr<Context>& context() const { return context_; }

 private:
  std::shared_ptr<Context> context_;  // shared with its object, and with other groups
};

void bind_context(nb::module_& module);

}  // namespace col::python
