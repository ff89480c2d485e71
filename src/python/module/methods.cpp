#include "methods.hpp"

#include <cstring>

namespace col::python {
namespace {

const char* kept(const std::string& text) {
  return strdup(text.c_str());  // Python keeps the pointer
}

}  // namespace

void MethodTable::add(const Signature& signature, Function function, const std::string& doc) {
  // Python makes its __text_signature__ of the first line.
  const std::string text = std::string(signature.function) + signature.text() + "\n--\n\n" + doc;
  methods_.push_back({kept(signature.function), reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)),
                      METH_FASTCALL | METH_KEYWORDS, kept(text)});
}

PyMethodDef* MethodTable::take() {
  methods_.push_back({nullptr, nullptr, 0, nullptr});
  auto* const all = new std::vector<PyMethodDef>(std::move(methods_));
  return all->data();
}

}  // namespace col::python
