// How the page looks, after tools::kPageStyle.
#pragma once

#include <string_view>

namespace col::colbench {

inline constexpr std::string_view kReportStyle = R"(
pre { padding: .75rem 1rem; background: var(--panel); border-radius: .25rem; white-space: pre-wrap; }
.verdict.good { background: var(--good-back); color: var(--good); }
.verdict.bad { background: var(--bad-back); color: var(--bad); }
.verdict.odd { background: var(--odd-back); color: var(--odd); }
.findings { padding-left: 1.2rem; }
figure { margin: 0; }
figure svg { display: block; width: 100%; height: auto; }
@media (min-width: 80rem) {
  .widest { position: relative; left: 50%; width: max-content; max-width: calc(100vw - 3rem);
    transform: translateX(-50%); }
}
table { font-size: .875rem; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); }
.number { text-align: right; }
td.words { min-width: 28rem; }
tr.bad td { background: var(--bad-back); color: var(--bad); }
tr.faint td { color: var(--faint); }
summary { cursor: pointer; color: var(--faint); }
)";

}  // namespace col::colbench
