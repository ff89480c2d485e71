// Groups from groups.
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "gil.hpp"
#include "group.hpp"

namespace col::python {

namespace {

nb::object named_or_none(Group group) {
  return group ? nb::cast(NamedGroup(std::move(group))) : nb::none();
}

}  // namespace

void add_families(GroupClass& group) {
  group
      .def(
          "split",
          [](Group& g, int color, int key) { return group_or_none(without_gil([&] { return g.split(color, key); })); },
          nb::arg("color"), nb::arg("key") = 0,
          "Ranks of equal color form a group, ordered by key, then by rank. None for a negative color. Collective.")
      .def(
          "subgroup",
          [](Group& g, const std::vector<int>& ranks, const std::string& name) {
            return named_or_none(without_gil([&] { return g.subgroup(ranks, name); }));
          },
          nb::arg("ranks"), nb::arg("name"),
          "The listed ranks form a group, in the order of the list; None on the others. Collective.")
      .def(
          "dup", [](Group& g) { return group_or_none(without_gil([&] { return g.dup(); })); },
          "A group of all ranks, in the same order. Collective.")
      .def(
          "shrink",
          [](Group& g, const std::vector<int>& excluded, const std::string& name) {
            Group rest = without_gil([&] { return g.shrink(excluded, name); });
            return name.empty() ? group_or_none(std::move(rest)) : named_or_none(std::move(rest));
          },
          nb::arg("excluded"), nb::arg("name") = "",
          "After the loss of ranks: a group of all the others, in the same order. Works on a broken group. Collective "
          "over the ranks that stay.");
}

}  // namespace col::python
