// Writes docs/algorithms.md and docs/algorithms/*.svg; docs/ is the argument.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "algorithms_md.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: print_algorithms_md DOCS_DIRECTORY\n", stderr);
    return 2;
  }
  for (const col::test::DocFile& file : col::test::algorithms_docs()) {
    const std::filesystem::path path = std::filesystem::path(argv[1]) / file.path;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream out(path, std::ios::binary);
    if (!(out << file.text << std::flush)) {
      std::fprintf(stderr, "print_algorithms_md: cannot write %s\n", path.c_str());
      return 1;
    }
  }
}
