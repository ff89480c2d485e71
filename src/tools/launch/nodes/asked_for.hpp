// What a question about the ranks of a job asks for.
#pragma once

namespace col::launch {

struct AskedFor {
  int calls = 0;        // so many of the last ones of each rank
  bool stacks = false;  // where each rank is in its program
  bool use = false;     // RankStory::use
};

}  // namespace col::launch
