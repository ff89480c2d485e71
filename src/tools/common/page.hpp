// The tools' HTML reports: what is the same in all of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace col::tools {

struct PageSection {
  std::string id;     // where the contents list leads
  std::string title;  // plain text
  std::string body;   // markup
};

struct Page {
  std::string title;         // plain text, of the window
  std::string heading;       // plain text
  std::string summary = {};  // markup: what a reader should know who reads nothing else
  std::vector<PageSection> sections = {};
  std::string data = {};        // markup that shows nothing, at the end
  std::string_view style = "";  // rules beside those that all pages have
};

// A complete HTML document in UTF-8 that refers to nothing outside of itself and runs no scripts: the heading, the
// summary, a list of contents, the sections. Light and dark, for wide windows and narrow ones. Pure.
std::string page_text(const Page& page);

}  // namespace col::tools
