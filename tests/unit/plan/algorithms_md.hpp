// docs/algorithms.md and its pictures: what the registry, the formulas, the verifier and the drawings say.
#pragma once

#include <string>
#include <vector>

namespace col::test {

struct DocFile {
  std::string path;  // below docs/
  std::string text;
};
std::vector<DocFile> algorithms_docs();

}  // namespace col::test
