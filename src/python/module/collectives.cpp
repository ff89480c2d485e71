// The collectives of Group, made of the rows of the table in <col/collective.hpp>.
#include <array>
#include <numeric>
#include <string>
#include <utility>

#include <col/group.hpp>

#include "errors.hpp"
#include "gil.hpp"
#include "methods.hpp"
#include "prepared.hpp"
#include "tensor.hpp"
#include "work.hpp"

namespace col::python {
namespace {

constexpr std::size_t kMethodCount = static_cast<std::size_t>(Collective::send);  // messages are no collectives

// In the order of the table.
constexpr std::array<const char*, kMethodCount> kDocs = {
    "out[i] = op over all ranks of x[i]. Without out, in place. Returns the output. Integers wrap, also in an \"avg\".",
    "As allreduce, but only the root gets the result: without out, in its x. Returns the output; None on other ranks.",
    "Every rank gets the root's elements, in its x. Returns x.",
    "out holds every rank's x, in rank order. Without out, a new array, along the first axis. Returns the output.",
    "As allgather, but rank r gives counts[r] elements. A new output has one axis.",
    "Rank r gets block r of x, reduced over all ranks. Without out, a new array: the first axis of x is cut. Returns "
    "the "
    "output.",
    "As reduce_scatter, but rank r gets counts[r] elements. A new output has one axis.",
    "The root gets every rank's x, in rank order. Without out, it makes a new array, along the first axis. Returns the "
    "output; None on other ranks.",
    "As gather, but rank r gives counts[r] elements. Only the root passes counts. A new output has one axis.",
    "Rank r gets block r of the root's x. Other ranks pass None as x, and an out. Without out, the root makes a new "
    "array: "
    "the first axis of x is cut. Returns the output.",
    "As scatter, but rank r gets counts[r] elements. Only the root passes x and counts. A new output has one axis.",
    "Block r of x goes to rank r, and block r of out comes from it. Without out, a new array like x. Returns the "
    "output.",
    "As alltoall, but in_counts[r] elements go to rank r, and out_counts[r] come from it. A new output has one axis.",
    "out[i] = op over x[i] of ranks 0 to this one. Without out, a new array like x. Returns the output.",
    "As scan, but over the ranks before this one. Rank 0 gets nothing: None, and its out is not touched.",
    "Returns after every rank has entered. Ends the collectives that this rank has in flight in the group.",
};

// Input and output are the same vector unless the caller says otherwise, as for the methods of the C++ Group that take
// one view.
bool is_in_place_by_default(const CollectiveRow& row) {
  return row.in == Extent::vector && row.out == Extent::vector && row.folds == Folds::all;
}

Signature make_signature(const CollectiveRow& row, const char* function) {
  Signature signature{.function = function};
  auto& positional = signature.positional;
  if (row.has_data()) positional.push_back(Name::x);
  if (row.counts == BlockCounts::pairs) {
    positional.push_back(Name::in_counts);
    positional.push_back(Name::out_counts);
  } else if (row.has_counts()) {
    positional.push_back(Name::counts);
  }
  // Only the root has what the others leave out.
  signature.required = row.in_on_root ? 0 : row.counts == BlockCounts::root ? 1 : positional.size();
  if (row.in != Extent::nothing && row.out != Extent::nothing) positional.push_back(Name::out);
  auto& keywords = signature.keywords;
  if (row.reduces()) keywords.push_back(Name::op);
  if (row.rooted) keywords.push_back(Name::root);
  keywords.push_back(Name::algorithm);
  keywords.push_back(Name::timeout);
  if (row.reduces())
    keywords.insert(keywords.end(), {Name::deterministic, Name::compress, Name::order, Name::contributions});
  if (row.has_data()) keywords.push_back(Name::stream);
  return signature;
}

const Signature& signature_of(Collective collective, bool is_started) {
  using Table = std::array<Signature, 2 * kMethodCount>;
  static const Table* const table = [] {
    auto* const made = new Table;
    static std::array<std::string, 2 * kMethodCount> names;
    for (std::size_t i = 0; i < kMethodCount; ++i) {
      names[2 * i] = kCollectives[i].name;
      names[2 * i + 1] = "i" + names[2 * i];
      for (const std::size_t k : {2 * i, 2 * i + 1}) (*made)[k] = make_signature(kCollectives[i], names[k].c_str());
    }
    return made;
  }();
  return (*table)[2 * static_cast<std::size_t>(collective) + (is_started ? 1 : 0)];
}

// One call, from Python's arguments to the result.
class CollectiveCall {
 public:
  CollectiveCall(Group& group, Collective collective, const Signature& signature, const Arguments& arguments)
      : group_(group),
        row_(row_of(collective)),
        function_(signature.function),
        arguments_(arguments),
        options_(arguments.options(operation_)) {
    call_.collective = collective;
    if (!row_.has_data()) return;
    rank_ = group.rank();
    size_ = group.size();
    const bool is_root = !row_.rooted || rank_ == options_.root;
    if (row_.has_counts()) read_counts();
    if (row_.has_input(is_root)) in_ = as_input(require(Name::x), {function_, "x"}, options_.stream);
    if (row_.has_output(is_root)) read_output(is_root);
    call_.in = in_.view;
    call_.out = out_.view;
    // Rank 0 of an exscan gets nothing.
    if (!row_.has_output(is_root) || (row_.folds == Folds::below_rank && rank_ == 0)) result_ = nb::none();
  }

  nb::object run() {
    try {
      without_gil([this] { group_.run(call_, options_); });
    } catch (const Error&) {
      operation_.rethrow();
      throw;
    }
    return std::move(result_);
  }

  WorkObject start() {
    WorkObject::Parts parts;
    // First: nothing may fail between the start and the handle that keeps them.
    parts.buffers = buffers();
    try {
      parts.work = without_gil([this] { return group_.start(call_, options_); });
    } catch (const Error&) {
      operation_.rethrow();
      throw;
    }
    parts.operation = std::move(operation_);
    return {std::move(parts), std::move(result_)};
  }

  PreparedObject prepare() {
    PreparedCall prepared;
    try {
      prepared = group_.prepare(call_, options_);
    } catch (const Error&) {
      operation_.rethrow();
      throw;
    }
    return {std::move(prepared), buffers(), std::move(operation_), std::move(result_)};
  }

 private:
  std::vector<Buffer> buffers() const {
    std::vector<Buffer> all;
    for (const Tensor* tensor : {&in_, &out_})
      if (tensor->object != nullptr) all.push_back(Buffer::of(*tensor));
    if (made_) all.push_back({made_, {}});
    return all;
  }

  PyObject* require(Name name) const {
    PyObject* const value = arguments_[name];
    return value == nullptr ? Py_None : value;  // which is no tensor, and is refused as such
  }

  void read_counts() {
    if (row_.counts == BlockCounts::pairs) {
      in_counts_ = counts_of(require(Name::in_counts), function_, "in_counts");
      out_counts_ = counts_of(require(Name::out_counts), function_, "out_counts");
    } else if (PyObject* const counts = arguments_[Name::counts]) {
      (row_.out == Extent::blocks ? out_counts_ : in_counts_) = counts_of(counts, function_, "counts");
    }
    call_.in_counts = in_counts_;
    call_.out_counts = out_counts_;
  }

  void read_output(bool is_root) {
    const Role role{function_, row_.in == Extent::nothing ? "x" : "out"};
    if (row_.in == Extent::nothing) {  // on the root, it is what the others get
      out_ = is_root ? as_input(require(Name::x), role, options_.stream)
                     : as_output(require(Name::x), role, options_.stream);
    } else if (PyObject* const given = arguments_[Name::out]) {
      out_ = as_output(given, role, options_.stream);
    } else if (is_in_place_by_default(row_)) {
      require_writable(in_, {function_, "x"});
      out_ = in_;
    } else {
      if (in_.object == nullptr)
        refuse(std::string(function_) + ": pass out=, an array for this rank's block: only the root knows its length");
      made_ = new_array(in_, shape_of_output(), role);
      out_ = as_output(made_.ptr(), role, options_.stream);
    }
    result_ = nb::borrow(out_.object);
  }

  // Of a new array. Blocks lie along the first axis, as they lie in memory.
  std::vector<Py_ssize_t> shape_of_output() const {
    const auto rank = static_cast<std::size_t>(rank_);
    if (row_.has_counts()) {
      if (row_.out == Extent::blocks)
        return {static_cast<Py_ssize_t>(std::accumulate(out_counts_.begin(), out_counts_.end(), std::size_t{0}))};
      return {rank < in_counts_.size() ? static_cast<Py_ssize_t>(in_counts_[rank]) : 0};  // libcol refuses a short list
    }
    std::vector<Py_ssize_t> shape = shape_of(in_);
    if (row_.in == row_.out) return shape;
    if (shape.empty()) shape.push_back(1);
    if (row_.out == Extent::blocks) {
      shape[0] *= size_;
    } else {
      if (shape[0] % size_ != 0)
        refuse(std::string(function_) + ": the first axis of x has " + std::to_string(shape[0]) +
               " entries, which cannot be cut into " + std::to_string(size_) +
               " equal blocks, one for each rank; pass out=, or use " + std::string(row_.name) + "v");
      shape[0] /= size_;
    }
    return shape;
  }

  Group& group_;
  const CollectiveRow& row_;
  const char* function_;
  const Arguments& arguments_;
  Operation operation_;
  Options options_;
  Call call_;
  int rank_ = 0, size_ = 1;
  Tensor in_, out_;
  nb::object made_, result_ = nb::none();
  std::vector<std::size_t> in_counts_, out_counts_;
};

template <std::size_t I, bool is_started>
PyObject* collective(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keyword_names) {
  return guarded([&] {
    constexpr auto which = static_cast<Collective>(I);
    if (is_started || which == Collective::barrier) let_go_of_dropped();
    const Signature& signature = signature_of(which, is_started);
    const Arguments arguments(signature, args, count, keyword_names);
    CollectiveCall call(*nb::inst_ptr<Group>(self), which, signature, arguments);
    if constexpr (is_started)
      return nb::cast(call.start()).release().ptr();
    else
      return call.run().release().ptr();
  });
}

// prepare("allreduce", x, op="max"): the arguments of the collective, behind its name.
PyObject* prepare(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keyword_names) {
  return guarded([&] {
    if (count == 0 || PyUnicode_Check(args[0]) == 0)
      refuse("prepare: name the collective first, and then its arguments: prepare(\"allreduce\", x)");
    const Collective which = collective_from_string(nb::cast<std::string>(nb::handle(args[0])));
    if (row_of(which).is_message) refuse("prepare: " + std::string(row_of(which).name) + " is no collective");
    const Signature& signature = signature_of(which, true);
    const Arguments arguments(signature, args + 1, count - 1, keyword_names);
    CollectiveCall call(*nb::inst_ptr<Group>(self), which, signature, arguments);
    return nb::cast(call.prepare()).release().ptr();
  });
}

template <std::size_t... I>
void add_all(MethodTable& table, std::index_sequence<I...>) {
  (table.add(signature_of(static_cast<Collective>(I), false), collective<I, false>, kDocs[I]), ...);
  (table.add(signature_of(static_cast<Collective>(I), true), collective<I, true>,
             "Starts " + std::string(kCollectives[I].name) + "(), and returns its Work at once."),
   ...);
}

}  // namespace

void add_collectives(MethodTable& table) {
  add_all(table, std::make_index_sequence<kMethodCount>());
  static const Signature kPrepare{.function = "prepare", .in_words = "collective, *args, **kwargs"};
  table.add(kPrepare, prepare,
            "prepare(collective, *args, **kwargs) -> PreparedCall\n\n"
            "Prepares a collective that comes again with the same buffers: prepare(\"allreduce\", x, op=\"max\"). The "
            "arguments are those of the method of that name, and are checked now. Local: no other rank takes part, and "
            "nothing blocks. It meets the i-forms of ranks that have not prepared theirs.");
}

}  // namespace col::python
