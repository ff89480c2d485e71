#include "markup.hpp"

#include <charconv>
#include <cstdint>
#include <stdexcept>

#include <fmt/format.h>

namespace col::colcheck {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Element document() {
    check_characters();
    if (take("<?xml")) skip_to("?>");
    spaces();
    if (take("<!DOCTYPE")) skip_to(">");
    spaces();
    Element root = element();
    spaces();
    if (at_ != text_.size()) fail("something follows the root");
    return root;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(fmt::format("byte {}: {}: {}", at_, what, text_.substr(at_, 40)));
  }
  char here() const {
    if (at_ >= text_.size()) throw std::runtime_error("the text ends too early");
    return text_[at_];
  }
  bool take(std::string_view part) {
    if (!text_.substr(at_).starts_with(part)) return false;
    at_ += part.size();
    return true;
  }
  void need(std::string_view part) {
    if (!take(part)) fail(fmt::format("'{}' expected", part));
  }
  void skip_to(std::string_view end) {
    at_ = text_.find(end, at_);
    if (at_ == std::string_view::npos) throw std::runtime_error("the text ends too early");
    at_ += end.size();
  }
  void spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  // All of them at once: XML 1.0, section 2.2.
  void check_characters() {
    for (at_ = 0; at_ < text_.size();) {
      const auto first = static_cast<unsigned char>(text_[at_]);
      const std::size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
      if (length == 0 || first > 0xf4 || at_ + length > text_.size()) fail("no UTF-8");
      std::uint32_t code = length == 1 ? first : first & (0x7fu >> length);
      for (std::size_t i = 1; i < length; ++i) {
        const auto next = static_cast<unsigned char>(text_[at_ + i]);
        if (next >> 6 != 2) fail("no UTF-8");
        code = code << 6 | (next & 0x3fu);
      }
      const bool shortest = code >= (length == 4 ? 0x10000u : length == 3 ? 0x800u : 0u);
      const bool allowed = (code >= 0x20 || code == '\n' || code == '\t' || code == '\r') &&
                           (code < 0xd800 || code > 0xdfff) && code != 0xfffe && code != 0xffff && code <= 0x10ffff;
      if (!shortest || !allowed) fail("no character of XML");
      at_ += length;
    }
    at_ = 0;
  }

  std::string name() {
    const std::size_t start = at_;
    while (here() == '_' || here() == '-' || (here() >= '0' && here() <= '9') || (here() >= 'A' && here() <= 'Z') ||
           (here() >= 'a' && here() <= 'z')) {
      ++at_;
    }
    if (at_ == start) fail("a name expected");
    return std::string(text_.substr(start, at_ - start));
  }

  // Text up to `end`, which stays.
  std::string text_until(char end) {
    static const std::map<std::string, char> kNamed = {
        {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    std::string text;
    while (here() != end) {
      if (here() == '<') fail("'<' in text");
      if (!take("&")) {
        text += text_[at_++];
        continue;
      }
      const std::size_t semicolon = text_.find(';', at_);
      if (semicolon == std::string_view::npos) fail("'&' without an end");
      const std::string reference(text_.substr(at_, semicolon - at_));
      if (kNamed.count(reference) > 0) {
        text += kNamed.at(reference);
      } else {
        int code = 0;
        const char* last = reference.data() + reference.size();
        if (reference.size() < 2 || reference[0] != '#' ||
            std::from_chars(reference.data() + 1, last, code).ptr != last || (code < 0x20 && code != 9 && code != 10))
          fail("unknown reference");
        text += static_cast<char>(code);
      }
      at_ = semicolon + 1;
    }
    return text;
  }

  Element element() {
    need("<");
    Element element{name(), {}, {}, {}};
    for (spaces(); here() != '>' && here() != '/'; spaces()) {
      const std::string key = name();
      need("=\"");
      if (!element.attributes.emplace(key, text_until('"')).second) fail("an attribute twice");
      need("\"");
      if (here() != ' ' && here() != '\n' && here() != '>' && here() != '/') fail("attributes without a space between");
    }
    if (take("/>")) return element;
    need(">");
    for (;;) {
      element.text += text_until('<');
      if (take("</")) break;
      element.children.push_back(this->element());
    }
    if (name() != element.name) fail(fmt::format("this does not end <{}>", element.name));
    need(">");
    return element;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

void collect(const Element& element, std::string_view name, std::vector<const Element*>& found) {
  for (const Element& child : element.children) {
    if (child.name == name) found.push_back(&child);
    collect(child, name, found);
  }
}

}  // namespace

std::vector<const Element*> Element::all(std::string_view wanted) const {
  std::vector<const Element*> found;
  collect(*this, wanted, found);
  return found;
}

Element parse_xml(std::string_view text) {
  return Reader(text).document();
}

}  // namespace col::colcheck
