// A reader of XML that is small and strict, to see what a report is.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace col::colcheck {

struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;  // references resolved
  std::vector<Element> children;
  std::string text;  // of this element alone, references resolved

  std::vector<const Element*> all(std::string_view name) const;  // those below it of that name, in order
};

// The root. Throws std::runtime_error that says where the text is no XML 1.0 in UTF-8: tags that do not match, a
// repeated attribute, an unknown reference, a character that XML does not have.
Element parse_xml(std::string_view text);

}  // namespace col::colcheck
