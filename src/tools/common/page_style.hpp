// The style of the tools' HTML reports. Each report adds its own rules.
#pragma once

#include <string_view>

namespace col::tools {

// Every text colour has a contrast of at least 4.5 to its background. Symbols and words repeat what colours say.
inline constexpr std::string_view kPageStyle = R"(
:root { color-scheme: light dark; --text: #1b1f24; --faint: #59616b; --page: #ffffff; --panel: #f5f7f9;
  --line: #d8dde3; --good: #0f5c2e; --good-back: #e3f5e9; --bad: #9c1414; --bad-back: #fde7e7;
  --odd: #6d4600; --odd-back: #fff3d6; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e8ec; --faint: #a3adb8; --page: #14171a; --panel: #1d2226; --line: #363d45;
    --good: #7edc9c; --good-back: #15321f; --bad: #ff9f9a; --bad-back: #45191a; --odd: #f0c56b; --odd-back: #3a2e10; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 72rem; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { margin: 0 0 1rem; font-size: 1.6rem; }
h2 { margin: 2.5rem 0 .75rem; font-size: 1.2rem; }
code { font-family: ui-monospace, monospace; font-size: .875em; overflow-wrap: anywhere; }
.verdict { padding: .75rem 1rem; border-left: .4rem solid; border-radius: .25rem; font-weight: 600; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.25rem; margin: 1rem 0; }
.facts dt { color: var(--faint); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { padding: 0 0 .5rem; text-align: left; color: var(--faint); }
th, td { text-align: left; white-space: nowrap; }
thead th { background: var(--panel); }
td.words { white-space: normal; }
.note { color: var(--faint); }
)";

}  // namespace col::tools
