// Group for Python.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#include <col/group.hpp>

namespace nb = nanobind;

namespace col::python {

using GroupClass = nb::class_<Group>;

// A call that makes a group by a name of the program's own returns it so. The name finds the group, so it does not go
// with this object: a program that seems to believe it does gets a ResourceWarning.
class NamedGroup : public Group {
 public:
  explicit NamedGroup(Group group) : Group(std::move(group)) {}
  NamedGroup(NamedGroup&&) = default;
  ~NamedGroup();
  NamedGroup& operator=(NamedGroup&&) = delete;
  NamedGroup(const NamedGroup&) = delete;
  NamedGroup& operator=(const NamedGroup&) = delete;
};

GroupClass bind_group(nb::module_& module);
// More of its methods; each is a file.
void add_objects(GroupClass& group);
void add_families(GroupClass& group);
void add_insight(GroupClass& group);
void bind_tracing(nb::module_& module);
void add_multi_gpu(GroupClass& group);

// A Group, or None for the group that a rank has not joined.
nb::object group_or_none(Group group);
// The options of the calls that take a timeout alone, and a root or a tag at most.
Options options_with(nb::handle timeout, const char* function, int root = 0, int tag = 0);

}  // namespace col::python
