// The object forms: anything that can be pickled.
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "errors.hpp"
#include "gil.hpp"
#include "group.hpp"

namespace col::python {
namespace {

using Bytes = std::vector<std::byte>;

nb::object pickle(const char* function) {
  return nb::module_::import_("pickle").attr(function);
}

Bytes dumped(nb::handle object) {
  constexpr int kProtocol = 5;  // the same on all ranks, whatever their Python
  const auto bytes = nb::cast<nb::bytes>(pickle("dumps")(object, kProtocol));
  const auto* const begin = reinterpret_cast<const std::byte*>(bytes.c_str());
  return {begin, begin + bytes.size()};
}

nb::object loaded(const Bytes& bytes) {
  return pickle("loads")(nb::bytes(bytes.data(), bytes.size()));
}

nb::list all_loaded(const std::vector<Bytes>& objects) {
  nb::list list;
  for (const Bytes& bytes : objects) list.append(loaded(bytes));
  return list;
}

nb::object broadcast_object(Group& group, nb::object object, int root, nb::object timeout) {
  const Options options = options_with(timeout, "broadcast_object", root);
  const bool is_root = group.rank() == root;
  Bytes bytes;
  if (is_root) bytes = dumped(object);
  without_gil([&] { group.broadcast_object(bytes, options); });
  return is_root ? object : loaded(bytes);
}

nb::list allgather_object(Group& group, nb::object object, nb::object timeout) {
  const Options options = options_with(timeout, "allgather_object");
  const Bytes bytes = dumped(object);
  return all_loaded(without_gil([&] { return group.allgather_object(bytes, options); }));
}

nb::object gather_object(Group& group, nb::object object, int root, nb::object timeout) {
  const Options options = options_with(timeout, "gather_object", root);
  const Bytes bytes = dumped(object);
  const std::vector<Bytes> all = without_gil([&] { return group.gather_object(bytes, options); });
  return group.rank() == root ? nb::object(all_loaded(all)) : nb::none();
}

nb::object scatter_object(Group& group, nb::object objects, int root, nb::object timeout) {
  const Options options = options_with(timeout, "scatter_object", root);
  std::vector<Bytes> all;
  if (group.rank() == root) {
    if (objects.is_none()) refuse("scatter_object: the root passes a list of objects, one for each rank");
    for (const nb::handle object : objects) all.push_back(dumped(object));
  }
  return loaded(without_gil([&] { return group.scatter_object(all, options); }));
}

void send_object(Group& group, nb::object object, int destination, int tag, nb::object timeout) {
  const Options options = options_with(timeout, "send_object", 0, tag);
  const Bytes bytes = dumped(object);
  without_gil([&] { group.send_object(bytes, destination, options); });
}

nb::object recv_object(Group& group, int source, int tag, nb::object timeout) {
  const Options options = options_with(timeout, "recv_object", 0, tag);
  return loaded(without_gil([&] { return group.recv_object<Bytes>(source, options); }));
}

}  // namespace

void add_objects(GroupClass& group) {
  group
      .def("broadcast_object", broadcast_object, nb::arg("object") = nb::none(), nb::kw_only(), nb::arg("root") = 0,
           nb::arg("timeout") = nb::none(), "Returns the root's object. Other ranks pass nothing.")
      .def("allgather_object", allgather_object, nb::arg("object").none(), nb::kw_only(),
           nb::arg("timeout") = nb::none(), "Returns a list of every rank's object, in rank order.")
      .def("gather_object", gather_object, nb::arg("object").none(), nb::kw_only(), nb::arg("root") = 0,
           nb::arg("timeout") = nb::none(),
           "Returns a list of every rank's object, in rank order, on the root; None on other ranks.")
      .def("scatter_object", scatter_object, nb::arg("objects") = nb::none(), nb::kw_only(), nb::arg("root") = 0,
           nb::arg("timeout") = nb::none(), "Returns objects[rank] of the root. Other ranks pass nothing.")
      .def("send_object", send_object, nb::arg("object").none(), nb::arg("destination"), nb::kw_only(),
           nb::arg("tag") = 0, nb::arg("timeout") = nb::none(), "Sends an object to a rank, which calls recv_object().")
      .def("recv_object", recv_object, nb::arg("source"), nb::kw_only(), nb::arg("tag") = 0,
           nb::arg("timeout") = nb::none(), "Returns the object that a rank has sent with equal tag.");
}

}  // namespace col::python
