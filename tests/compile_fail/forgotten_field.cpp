// A member that a struct gets must not be forgotten where the struct becomes JSON, as options were that did not reach
// other hosts.
#include <string>

#include "json/json_fields.hpp"

struct Job {
  std::string program;
  int ranks = 1;
  bool added = false;
};

template <class Visit>
void fields(Job& job, Visit& visit) {
  auto& [program, ranks] = job;  // expected-error: only 2 names
  visit("program", program);
  visit("ranks", ranks);
}

std::string text(const Job& job) {
  return col::core::json_line(job);
}

int main() {}
