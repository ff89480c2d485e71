// The arguments of a call from Python, without a tuple, a dict or a string made for it.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include <col/job.hpp>
#include <col/options.hpp>

#include "operators.hpp"

namespace nb = nanobind;

namespace col::python {

enum class Name : std::uint8_t {
  x,
  out,
  counts,
  in_counts,
  out_counts,
  op,
  root,
  algorithm,
  timeout,
  stream,
  tag,
  deterministic,
  compress,
  order,
  contributions,
  destination,
  source,
  object,
  messages
};
inline constexpr std::size_t kNameCount = 19;

// As Python writes them: the positional ones in their order, then those by keyword alone, with their defaults.
struct Signature {
  const char* function;
  std::vector<Name> positional = {};
  std::size_t required = 0;  // how many of the positional ones
  std::vector<Name> keywords = {};
  const char* in_words = nullptr;  // of one whose arguments are another method's

  std::string text() const;  // "($self, x, out=None, *, op='sum')"
};

class Arguments {
 public:
  // Throws Python's TypeError for arguments that the signature does not have, as Python does.
  Arguments(const Signature& signature, PyObject* const* args, Py_ssize_t count, PyObject* keyword_names);

  // Null if it was left out, or is None.
  PyObject* operator[](Name name) const noexcept { return values_[static_cast<std::size_t>(name)]; }
  int integer(Name name, int otherwise) const;
  bool flag(Name name) const;

  // What of them the C++ calls take as Options. `operation` gets what a function of Python's needs.
  Options options(Operation& operation) const;

 private:
  const char* function_;
  std::array<PyObject*, kNameCount> values_ = {};
};

// Seconds as a number, or a datetime.timedelta. Throws invalid_argument unless it is above zero.
Duration duration_of(nb::handle seconds, const char* function);
// A number of seconds, or a timedelta, also zero and below; and what a deadline takes of it.
double seconds_of(nb::handle given);
Duration duration_of(double seconds);
// "any", "rank", "tree" or "exact".
Order order_of(PyObject* name, const char* function);
// A list of counts. Throws invalid_argument for negative ones.
std::vector<std::size_t> counts_of(PyObject* list, const char* function, const char* name);

}  // namespace col::python
