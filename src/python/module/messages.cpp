// Messages of Group: send, recv and their like.
#include "messages.hpp"

#include <string>
#include <utility>

#include <col/group.hpp>

#include "errors.hpp"
#include "gil.hpp"
#include "methods.hpp"
#include "tensor.hpp"
#include "work.hpp"

namespace col::python {
namespace {

using Names = std::vector<Name>;

const Names kSendKeywords = {Name::tag, Name::timeout, Name::stream};
const Names kRecvKeywords = {Name::tag, Name::timeout, Name::stream};
const Names kBatchKeywords = {Name::timeout, Name::stream};

// A call of messages, with what all of them read. `is_started`: it returns a Work.
struct MessageCall {
  const Signature& signature;
  Arguments arguments;
  Group& group;
  Operation none = {};
  Options options;

  MessageCall(const Signature& signature_, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords)
      : signature(signature_),
        arguments(signature_, args, count, keywords),
        group(*nb::inst_ptr<Group>(self)),
        options(arguments.options(none)) {}

  PyObject* given(Name name) const { return arguments[name] == nullptr ? Py_None : arguments[name]; }
  Tensor input() const { return as_input(given(Name::x), {signature.function, "x"}, options.stream); }
  Tensor output() const { return as_output(given(Name::out), {signature.function, "out"}, options.stream); }
  int destination() const { return arguments.integer(Name::destination, -1); }
  int source() const { return arguments.integer(Name::source, -1); }
};

PyObject* none() {
  return nb::none().release().ptr();
}

PyObject* returned(const Tensor& tensor) {
  return nb::borrow(tensor.object).release().ptr();
}

// The Work that `start` gives, which keeps the buffers; `result` is new.
template <class Start>
PyObject* work_of(Start&& start, std::vector<Buffer> buffers, PyObject* result) {
  nb::object output = nb::steal(result);
  Work work = without_gil(start);
  return nb::cast(WorkObject({.work = std::move(work), .buffers = std::move(buffers)}, std::move(output)))
      .release()
      .ptr();
}

template <bool is_started>
PyObject* send(MessageCall& call) {
  const Tensor x = call.input();
  const int destination = call.destination();
  if constexpr (is_started)
    return work_of([&] { return call.group.isend(x.view, destination, call.options); }, {Buffer::of(x)}, none());
  without_gil([&] { call.group.send(x.view, destination, call.options); });
  return none();
}

template <bool is_started>
PyObject* recv(MessageCall& call) {
  const Tensor out = call.output();
  const int source = call.source();
  if constexpr (is_started)
    return work_of([&] { return call.group.irecv(out.view, source, call.options); }, {Buffer::of(out)}, returned(out));
  without_gil([&] { call.group.recv(out.view, source, call.options); });
  return returned(out);
}

template <bool is_started>
PyObject* recv_any(MessageCall& call) {
  const Tensor out = call.output();
  if constexpr (is_started)
    return work_of([&] { return call.group.irecv_any(out.view, call.options); }, {Buffer::of(out)}, returned(out));
  return PyLong_FromLong(without_gil([&] { return call.group.recv_any(out.view, call.options); }));
}

PyObject* sendrecv(MessageCall& call) {
  const Tensor x = call.input();
  const Tensor out = call.output();
  const int destination = call.destination();
  const int source = call.source();
  without_gil([&] { call.group.sendrecv(x.view, destination, out.view, source, call.options); });
  return returned(out);
}

// The messages of a batch, and what they use.
struct Batch {
  std::vector<Message> messages;
  std::vector<Buffer> buffers;

  explicit Batch(const MessageCall& call) {
    for (const nb::handle item : nb::iter(call.given(Name::messages))) {
      if (!nb::isinstance<MessageObject>(item))
        refuse(std::string(call.signature.function) +
               ": a batch is a list of col.Message.send(x, destination) and col.Message.recv(out, source)");
      const auto& message = *nb::inst_ptr<MessageObject>(item);
      if (message.is_send) {
        const Tensor x = as_input(message.tensor.ptr(), {call.signature.function, "x"}, call.options.stream);
        messages.push_back(Message::send(x.view, message.peer, message.tag));
        buffers.push_back(Buffer::of(x));
      } else {
        const Tensor out = as_output(message.tensor.ptr(), {call.signature.function, "out"}, call.options.stream);
        messages.push_back(Message::recv(out.view, message.peer, message.tag));
        buffers.push_back(Buffer::of(out));
      }
    }
  }
};

template <bool is_started>
PyObject* batch(MessageCall& call) {
  Batch all(call);
  if constexpr (is_started)
    return work_of([&] { return call.group.ibatch(all.messages, call.options); }, std::move(all.buffers), none());
  without_gil([&] { call.group.batch(all.messages, call.options); });
  return none();
}

struct Row {
  Signature signature;
  const char* doc;
};

enum Which { kSend, kRecv, kRecvAny, kSendrecv, kBatch, kIsend, kIrecv, kIrecvAny, kIbatch };

const Row& row_of_message(Which which) {
  static const auto* const rows = new std::vector<Row>{
      {{"send", {Name::x, Name::destination}, 2, kSendKeywords},
       "Sends x to a rank, which receives it with equal tag."},
      {{"recv", {Name::out, Name::source}, 2, kRecvKeywords}, "Receives from a rank into out, and returns out."},
      {{"recv_any", {Name::out}, 1, kRecvKeywords},
       "Receives the first message with this tag from any rank, and returns the rank that sent it."},
      {{"sendrecv", {Name::x, Name::destination, Name::out, Name::source}, 4, kRecvKeywords},
       "Sends and receives at once: ranks in a ring that all call it do not deadlock. Returns out."},
      {{"batch", {Name::messages}, 1, kBatchKeywords},
       "All messages at once; see col.Message. They do not deadlock, whatever their order."},
      {{"isend", {Name::x, Name::destination}, 2, kSendKeywords}, "Starts send(), and returns its Work at once."},
      {{"irecv", {Name::out, Name::source}, 2, kRecvKeywords}, "Starts recv(), and returns its Work at once."},
      {{"irecv_any", {Name::out}, 1, kRecvKeywords},
       "Starts recv_any(), and returns its Work at once. Its source is the rank that sent the message."},
      {{"ibatch", {Name::messages}, 1, kBatchKeywords}, "Starts batch(), and returns its Work at once."}};
  return (*rows)[which];
}

template <Which which, PyObject* (*function)(MessageCall&)>
PyObject* message(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keyword_names) {
  return guarded([&] {
    if (which >= kIsend) let_go_of_dropped();
    MessageCall call(row_of_message(which).signature, self, args, count, keyword_names);
    return function(call);
  });
}

template <Which which, PyObject* (*function)(MessageCall&)>
void add(MethodTable& table) {
  const Row& row = row_of_message(which);
  table.add(row.signature, message<which, function>, row.doc);
}

}  // namespace

void add_messages(MethodTable& table) {
  add<kSend, send<false>>(table);
  add<kRecv, recv<false>>(table);
  add<kRecvAny, recv_any<false>>(table);
  add<kSendrecv, sendrecv>(table);
  add<kBatch, batch<false>>(table);
  add<kIsend, send<true>>(table);
  add<kIrecv, recv<true>>(table);
  add<kIrecvAny, recv_any<true>>(table);
  add<kIbatch, batch<true>>(table);
}

void bind_messages(nb::module_& module) {
  nb::class_<MessageObject>(module, "Message", nb::is_weak_referenceable(),
                            "One message of a batch: see Group.batch().")
      .def_static(
          "send",
          [](nb::object x, int destination, int tag) {
            return MessageObject{true, std::move(x), destination, tag};
          },
          nb::arg("x"), nb::arg("destination"), nb::arg("tag") = 0)
      .def_static(
          "recv",
          [](nb::object out, int source, int tag) {
            return MessageObject{false, std::move(out), source, tag};
          },
          nb::arg("out"), nb::arg("source"), nb::arg("tag") = 0);
}

}  // namespace col::python
