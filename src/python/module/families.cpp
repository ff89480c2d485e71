// Groups from groups, and the epochs of a group.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arguments.hpp"
#include "context.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "group.hpp"

namespace col::python {

namespace {

nb::object named_or_none(Group group) {
  return group ? nb::cast(NamedGroup(std::move(group))) : nb::none();
}

// As the object of the epoch before: it may own its name, or keep its context.
nb::object renew(nb::handle self, int size, int min, nb::object wait, const std::vector<int>& excluded,
                 std::uint64_t progress) {
  Group& before = nb::cast<Group&>(self);
  const double seconds = seconds_of(wait);
  if (!(seconds >= 0)) refuse("renew: wait must be zero seconds or more, not " + std::to_string(seconds));
  const Renewal wishes{
      .size = size, .min = min, .wait = duration_of(seconds), .excluded = excluded, .progress = progress};
  Group next = without_gil([&] { return before.renew(wishes); });
  if (next && nb::isinstance<ContextGroup>(self))
    return nb::cast(ContextGroup(std::move(next), nb::cast<ContextGroup&>(self).context()));
  return nb::isinstance<NamedGroup>(self) ? named_or_none(std::move(next)) : group_or_none(std::move(next));
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
          "over the ranks that stay.")
      .def("renew", renew, nb::kw_only(), nb::arg("size") = 0, nb::arg("min") = 1, nb::arg("wait") = 0.0,
           nb::arg("excluded") = std::vector<int>(), nb::arg("progress") = std::uint64_t{0},
           "The next epoch of a group that init() or init_collective_group() has made, under its name: of all its "
           "ranks but those that were lost and those in excluded, and of those that wait in join(), up to size (0: as "
           "many as before). Collective over the ranks that live and stay; works on a broken group, and on one that "
           "is not. Returns the new group, or None on a rank that is excluded. With fewer than min ranks, PeerLost on "
           "all. wait: for how many seconds to wait for ranks that join, where there are fewer than size. progress: "
           "how far this rank's state is, see source. size, min and excluded are equal on all ranks.\n\n"
           "Blocks for the group's timeout at most, without the GIL. This group is over then: what is in flight in "
           "it, and in groups that were made from it, ends with Aborted, whose is_loss is true. Inputs are "
           "intact.\n\n"
           "An error is the same on all ranks that live, and all can call again on this group: Mismatch (about size, "
           "min or excluded), Timeout (names the ranks that did not call), PeerLost. Of this rank alone: Aborted "
           "(others have left it out), IoError (the job's store cannot be reached), InvalidArgument. One thread at a "
           "time.")
      .def(
          "renewal_wanted", [](Group& g) { return without_gil([&] { return g.renewal_wanted(); }); },
          "Whether somebody waits in join(). Collective, and the same on all ranks: where it is true, they can call "
          "renew(). Blocks, and fails, as any call.")
      .def_prop_ro("epoch", &Group::epoch,
                   "The number of this epoch, from 0; of the group that this one was made from, if it was. Equal on "
                   "all ranks, as the next four are, which raise InvalidArgument on a group that was made from "
                   "another one.")
      .def_prop_ro("newcomers", &Group::newcomers, "Ranks that were not in the epoch before. In epoch 0, all.")
      .def_prop_ro("lost", &Group::lost, "Ranks of the epoch before that are not in this one, by their numbers there.")
      .def_prop_ro(
          "source", &Group::source,
          "The rank whose state the others can take: the lowest of those with the most progress. In epoch 0, 0.")
      .def("progress", &Group::progress, nb::arg("rank"), "What that rank gave to renew() as progress. In epoch 0, 0.");
}

}  // namespace col::python
