// Cases for properties about one circumstance: all other circumstances are taken in turn, or drawn at random.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "colcheck/engine/forms.hpp"
#include "colcheck/engine/property.hpp"

namespace col::colcheck {

// Deterministic in its arguments and the order of the calls.
class Draw {
 public:
  Draw(const Selection& selection, std::string_view property);

  bool quick() const noexcept { return selection_.effort == Effort::quick; }
  // The forms of the selection, without algorithms of backends that are not in it.
  const std::vector<Form>& forms() const noexcept { return forms_; }
  std::vector<Form> forms_of(Primitive primitive) const;
  // How many cases in a row take every backend: several for messages, which have one form, and one for collectives,
  // which have many.
  int times(const Form& form) const;
  // Numbers of ranks from the selection. In a quick run, those up to five, and at least one above one, if there is any.
  const std::vector<int>& ranks() const noexcept { return ranks_; }

  // Those of them that the form serves. A world of one runs no algorithm: where there are others, it is for the default
  // alone.
  std::vector<int> served(const Form& form) const;

  // A case of `form`, with the next backend and the next number of ranks for its primitive. Its type, operator, root,
  // seed and count (not zero, unless there is one rank) are drawn. It is blocking, out of place, with margins. Nothing
  // if the form serves none of the numbers of ranks.
  std::optional<Case> next(const Form& form);
  // With that number of ranks, which the form must serve.
  Case next(const Form& form, int ranks);

 private:
  Case draw(const Form& form, int ranks, const std::string& backend);
  std::vector<std::string> backends_of(const Form& form) const;

  const Selection& selection_;
  std::string property_;
  std::vector<Form> forms_;
  std::vector<int> ranks_;
  std::uint64_t seed_;
  std::uint64_t number_ = 0;                               // number of cases drawn
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
