// Every rank is the root of every rooted primitive. Quick runs take the algorithms and backends in turn.
#include "colcheck/engine/call.hpp"
#include "colcheck/properties/draw.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

void add(Draw& draw, const Form& form, int ranks, int root, std::vector<Case>& all) {
  Case c = draw.next(form, ranks);
  c.root = root;
  all.push_back(std::move(c));
}

std::vector<Form> serving(const std::vector<Form>& forms, int ranks) {
  std::vector<Form> found;
  for (const Form& form : forms) {
    if (serves(form, ranks)) found.push_back(form);
  }
  return found;
}

void cases(const Selection& selection, std::vector<Case>& all) {
  Draw draw(selection, "roots");
  for (int i = 0; i < kPrimitiveCount; ++i) {
    if (!is_rooted(static_cast<Primitive>(i))) continue;
    std::size_t turn = 0;
    for (const int ranks : selection.ranks) {
      const std::vector<Form> forms = serving(draw.forms_of(static_cast<Primitive>(i)), ranks);
      for (int root = 0; root < ranks && !forms.empty(); ++root) {
        if (!draw.quick()) {
          for (const Form& form : forms) add(draw, form, ranks, root, all);
        } else {
          add(draw, forms[turn++ % forms.size()], ranks, root, all);
        }
      }
      // A backend's own may not have had its turn.
      for (const Form& form : forms) {
        if (draw.quick() && form.is_native()) add(draw, form, ranks, static_cast<int>(turn++) % ranks, all);
      }
    }
  }
}

Finding run(Rank& rank, const Case& c) {
  return Finding::of(run_case(rank.group(), c));
}

}  // namespace

const Property kRoots{
    "roots",        "rooted primitives are right with every rank as the root", Property::Kind::group, &cases, &run,
    OnGpus::buffers};

}  // namespace col::colcheck
