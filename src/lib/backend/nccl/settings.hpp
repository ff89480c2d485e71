// Settings of NCCL that a group may have, by name: GroupSpec::nccl_settings and COL_NCCL_SETTINGS.
#pragma once

#include <nccl.h>

#include <map>
#include <string>
#include <string_view>

namespace col::nccl_backend {

class Settings {
 public:
  // "cta_policy=efficiency,max_ctas=8". Throws invalid_argument (an unknown name, a value that does not fit), and
  // unavailable: NCCL of `version`, or the header that this was built with, is too old for one of them.
  static Settings parse(std::string_view text, int version);
  // What `more` says wins.
  void add(const Settings& more);
  // Throws invalid_argument if they contradict each other.
  void require_consistent() const;

  // Whether groups that are made from this one share its connections.
  bool shares_with_children() const;
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  // In the order of the names: equal for equal settings.
  std::string text() const;
  void apply(ncclConfig_t& config) const;

 private:
  std::map<std::string, int, std::less<>> values_;
};

}  // namespace col::nccl_backend
