// Makes the cases of a property: what it leaves open is taken in turn, or drawn at random.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "colcheck/engine/forms.hpp"
#include "colcheck/engine/property.hpp"

namespace col::colcheck {

// Counts up to draw several things in turn, so that a few cases contain all of them.
template <class T>
const T& in_turn(const std::vector<T>& all, std::size_t number) {
  return all[number % all.size()];
}
// The n-th primitive, round and round.
inline Primitive primitive_in_turn(std::size_t n) {
  return static_cast<Primitive>(n % kPrimitiveCount);
}

// Appends cases of one property, each with a seed of its own. Deterministic in its arguments and the order of the
// calls. A case stays where it is until the next one is added.
class Draw {
 public:
  Draw(const Property& property, const Selection& selection, std::vector<Case>& cases);

  const Selection& selection() const noexcept { return selection_; }
  bool quick() const noexcept { return selection_.effort == Effort::quick; }
  // Numbers of ranks from the selection that are enough for the property. In a quick run, those up to five, and at
  // least one above one, if there is any.
  const std::vector<int>& ranks() const noexcept { return ranks_; }
  // How many cases have been made.
  std::size_t number() const noexcept { return number_; }
  // Appends one that has been made here.
  Case& add(Case c) { return cases_.emplace_back(std::move(c)); }

  // ---- Calls in every form

  // The forms of the selection, without algorithms of backends that are not in it.
  const std::vector<Form>& forms() const noexcept { return forms_; }
  std::vector<Form> forms_of(Primitive primitive) const;
  // How many cases in a row take every backend: several for messages, which have one form, and one for collectives,
  // which have many; `full` times as many in a full run.
  int times(const Form& form, int full) const;
  // Numbers of ranks that the form serves. A world of one runs no algorithm: where there are others, it is for the
  // default alone.
  std::vector<int> served(const Form& form, int fewest = 1) const;
  // A case of `form`, with the next backend and the next number of ranks for its primitive. Its type, operator, root
  // and count (not zero, unless there is one rank) are drawn. It is blocking, out of place, with margins. Null if the
  // form serves no such number of ranks.
  Case* add(const Form& form, int fewest = 1);
  // So many of them, if there is one: `vary(c)` makes of each what the property wants.
  template <class Vary>
  void add(const Form& form, int times, Vary vary) {
    for (; times > 0; --times) {
      if (Case* const c = add(form)) vary(*c);
    }
  }
  // With that number of ranks, which the form must serve.
  Case& add_on(const Form& form, int ranks);

  // ---- Cases that are about a primitive

  // The backends of the selection; none if there is no number of ranks, or if it has no place for what is chosen by
  // default.
  std::vector<std::string> backends() const;
  // Its root is drawn; it has no type and no count. Without `ranks`, it has the next of their numbers.
  Case next(const std::string& backend, Primitive primitive, std::uint64_t variant = 0, int ranks = 0);
  Case& add(const std::string& backend, Primitive primitive, std::uint64_t variant = 0, int ranks = 0) {
    return add(next(backend, primitive, variant, ranks));
  }

 private:
  std::vector<std::string> backends_of(const Form& form) const;

  const Property& property_;
  const Selection& selection_;
  std::vector<Case>& cases_;
  std::vector<Form> forms_;
  std::vector<int> ranks_;
  std::uint64_t seed_;
  std::uint64_t number_ = 0;
  std::array<std::uint64_t, kPrimitiveCount> turns_ = {};  // for each primitive
};

// The number of elements of the case's type for this number of bytes. It is smaller if the case's algorithm must use
// short segments, because sending many of them takes long.
std::size_t count_of_bytes(const Case& c, std::size_t bytes);

// Makes the case's call, and checks all of its memory: Property::run.
Finding run_whole_case(Rank& rank, const Case& c);

// Gives a reduction another type, and a matching operator if its own does not match.
void set_dtype(Case& c, DType dtype);

}  // namespace col::colcheck
