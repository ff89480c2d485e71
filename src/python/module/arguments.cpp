#include "arguments.hpp"

#include <algorithm>
#include <cmath>

#include <nanobind/stl/string.h>

#include "errors.hpp"

namespace col::python {
namespace {

struct NameRow {
  const char* text;
  const char* standard;  // the default
};

// In the order of the enumerators.
constexpr std::array<NameRow, kNameCount> kNames = {{
    {"x", "None"},          {"out", "None"},    {"counts", "None"},     {"in_counts", "None"},
    {"out_counts", "None"}, {"op", "'sum'"},    {"root", "0"},          {"algorithm", "None"},
    {"timeout", "None"},    {"stream", "None"}, {"tag", "0"},           {"deterministic", "False"},
    {"compress", "False"},  {"order", "'any'"}, {"contributions", "0"}, {"destination", ""},
    {"source", ""},         {"object", "None"}, {"messages", ""},
}};

const NameRow& row_of_name(Name name) {
  return kNames[static_cast<std::size_t>(name)];
}

// Keywords in a program are interned, so that most are found by their address.
PyObject* interned(Name name) {
  static const auto* const all = [] {
    auto* const made = new std::array<PyObject*, kNameCount>;
    for (std::size_t i = 0; i < kNameCount; ++i) (*made)[i] = PyUnicode_InternFromString(kNames[i].text);
    return made;
  }();
  return (*all)[static_cast<std::size_t>(name)];
}

const Name* find(const std::vector<Name>& names, PyObject* keyword) {
  for (const Name& name : names)
    if (interned(name) == keyword) return &name;
  for (const Name& name : names)
    if (PyUnicode_Compare(interned(name), keyword) == 0) return &name;
  return nullptr;
}

template <class... Args>
[[noreturn]] void type_error(const char* format, Args... args) {
  PyErr_Format(PyExc_TypeError, format, args...);
  throw nb::python_error();
}

}  // namespace

std::string Signature::text() const {
  std::string text = "($self";
  if (in_words != nullptr) return text + ", " + in_words + ")";
  for (std::size_t i = 0; i < positional.size(); ++i)
    text += std::string(", ") + row_of_name(positional[i]).text +
            (i < required ? "" : std::string("=") + row_of_name(positional[i]).standard);
  if (!keywords.empty()) text += ", *";
  for (const Name name : keywords)
    text += std::string(", ") + row_of_name(name).text + "=" + row_of_name(name).standard;
  return text + ")";
}

Arguments::Arguments(const Signature& signature, PyObject* const* args, Py_ssize_t count, PyObject* keyword_names)
    : function_(signature.function) {
  const auto given = static_cast<std::size_t>(count);
  if (given > signature.positional.size())
    type_error("%s() takes at most %zu positional arguments, but %zu were given; the others are keywords", function_,
               signature.positional.size(), given);
  for (std::size_t i = 0; i < given; ++i) values_[static_cast<std::size_t>(signature.positional[i])] = args[i];
  const Py_ssize_t keywords = keyword_names == nullptr ? 0 : NB_TUPLE_GET_SIZE(keyword_names);
  for (Py_ssize_t i = 0; i < keywords; ++i) {
    PyObject* const keyword = NB_TUPLE_GET_ITEM(keyword_names, i);
    const Name* name = find(signature.keywords, keyword);
    if (name == nullptr) name = find(signature.positional, keyword);
    if (name == nullptr) type_error("%s() got an unexpected keyword argument '%U'", function_, keyword);
    PyObject*& value = values_[static_cast<std::size_t>(*name)];
    if (value != nullptr) type_error("%s() got multiple values for argument '%U'", function_, keyword);
    value = args[count + i];
  }
  for (std::size_t i = given; i < signature.required; ++i)
    if ((*this)[signature.positional[i]] == nullptr)
      type_error("%s() missing required argument: '%s'", function_, row_of_name(signature.positional[i]).text);
  for (PyObject*& value : values_)
    if (value == Py_None) value = nullptr;
}

int Arguments::integer(Name name, int otherwise) const {
  PyObject* const value = (*this)[name];
  if (value == nullptr) return otherwise;
  const Py_ssize_t number = PyNumber_AsSsize_t(value, PyExc_OverflowError);
  if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  if (number != static_cast<int>(number))
    refuse(std::string(function_) + ": " + row_of_name(name).text + "=" + std::to_string(number) + " is no rank");
  return static_cast<int>(number);
}

bool Arguments::flag(Name name) const {
  PyObject* const value = (*this)[name];
  if (value == nullptr || value == Py_False) return false;
  const int is_true = PyObject_IsTrue(value);
  if (is_true < 0) throw nb::python_error();
  return is_true != 0;
}

Order order_of(PyObject* name, const char* function) {
  Py_ssize_t length = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(name, &length);
  if (text == nullptr) throw nb::python_error();
  const std::string_view word(text, static_cast<std::size_t>(length));
  for (const Order order : {Order::any, Order::rank, Order::tree, Order::exact})
    if (to_string(order) == word) return order;
  refuse(std::string(function) + ": '" + text + "' is no order; use 'any', 'rank', 'tree' or 'exact'");
}

Options Arguments::options(Operation& operation) const {
  Options options;
  if (PyObject* const op = (*this)[Name::op]) options.op = operation.read(op, function_);
  options.root = integer(Name::root, 0);
  if (PyObject* const algorithm = (*this)[Name::algorithm]) {
    Py_ssize_t length = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(algorithm, &length);
    if (text == nullptr) throw nb::python_error();
    options.algorithm = {text, static_cast<std::size_t>(length)};
  }
  if (PyObject* const timeout = (*this)[Name::timeout]) options.timeout = duration_of(timeout, function_);
  if (PyObject* const stream = (*this)[Name::stream]) {
    options.stream.handle = PyLong_AsVoidPtr(stream);
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
  }
  options.tag = integer(Name::tag, 0);
  options.deterministic = flag(Name::deterministic);
  options.compress = flag(Name::compress);
  if (PyObject* const order = (*this)[Name::order]) options.order = order_of(order, function_);
  if (PyObject* const contributions = (*this)[Name::contributions]) {
    options.contributions = PyLong_AsSize_t(contributions);
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
  }
  return options;
}

double seconds_of(nb::handle given) {
  nb::object seconds = nb::borrow(given);
  if (nb::hasattr(given, "total_seconds")) seconds = given.attr("total_seconds")();
  const double value = PyFloat_AsDouble(seconds.ptr());
  if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return value;
}

Duration duration_of(nb::handle given, const char* function) {
  const double value = seconds_of(given);
  if (!(value > 0))
    refuse(std::string(function) + ": a timeout must be above zero seconds, not " + std::to_string(value) +
           "; None means the group's");
  return std::max(Duration(1), duration_of(value));
}

Duration duration_of(double seconds) {
  const double longest = std::chrono::duration<double>(Deadline::kMaxBudget).count();
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::min(seconds, longest)));
}

std::vector<std::size_t> counts_of(PyObject* list, const char* function, const char* name) {
  const nb::object items = nb::steal(PySequence_Tuple(list));
  if (!items) {
    PyErr_SetString(PyExc_TypeError, "counts must be a list of numbers, one for each rank");
    throw nb::python_error();
  }
  std::vector<std::size_t> counts;
  for (Py_ssize_t i = 0; i < NB_TUPLE_GET_SIZE(items.ptr()); ++i) {
    const Py_ssize_t count = PyNumber_AsSsize_t(NB_TUPLE_GET_ITEM(items.ptr(), i), PyExc_OverflowError);
    if (count == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    if (count < 0)
      refuse(std::string(function) + ": " + name + "[" + std::to_string(i) + "] is " + std::to_string(count) +
             "; a count cannot be negative");
    counts.push_back(static_cast<std::size_t>(count));
  }
  return counts;
}

}  // namespace col::python
