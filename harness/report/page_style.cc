#include "harness/report/page_parts.h"

namespace perdura::report {

// The colors named --c-... are those of plots/style.gp (see svg.h); in dark mode the same figure is
// shown with lighter ones.
std::string_view page_style() {
  return R"css(
:root { color-scheme: light dark; --bg: #ffffff; --ink: #1b1b1b; --muted: #5a5a5a;
  --rule: #d6d6d6; --panel: #f5f5f3; --link: #00558a; --tint: #ecebe6; }
@media (prefers-color-scheme: dark) { :root { --bg: #16181a; --ink: #e4e4e2; --muted: #a4a6a8;
  --rule: #3a3d40; --panel: #1e2123; --link: #7cc0f0; --tint: #2a2d30;
  --c-222222: #e4e4e2; --c-6b6b6b: #a4a6a8; --c-dddddd: #34373a; --c-ece5d5: #3d3a30;
  --c-0072b2: #58b4ee; --c-d55e00: #ff9650; --c-009e73: #3fce9f; --c-cc79a7: #e29cc2;
  --c-56b4e9: #9ad4f5; --c-e69f00: #f5bf4a; --c-7a4b9d: #b99ad6; --c-8a6d3b: #d0b27a; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0 auto; padding: 1.25rem 1rem 4rem; max-width: 70rem; background: var(--bg);
  color: var(--ink); font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans",
  "DejaVu Sans", sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; line-height: 1.25; margin: 3rem 0 .75rem; padding-top: .75rem;
  border-top: 1px solid var(--rule); }
h3 { font-size: 1rem; margin: 0; }
h4 { font-size: .9rem; margin: 1rem 0 .25rem; }
p, ul { margin: .5rem 0; max-width: 68ch; }
ul { padding-left: 1.1rem; }
li { margin: .3rem 0; }
a { color: var(--link); text-underline-offset: .15em; }
code, pre { font: .8125rem/1.45 ui-monospace, "SF Mono", Consolas, "DejaVu Sans Mono", monospace; }
pre { overflow-x: auto; background: var(--panel); padding: .75rem; margin: .5rem 0; }
.small { font-size: .8125rem; line-height: 1.45; color: var(--muted); margin: .4rem 0; }
.badge { display: inline-block; font-size: .75rem; font-weight: 600; line-height: 1;
  padding: .2rem .45rem; border: 1px solid currentColor; border-radius: .2rem;
  vertical-align: .1em; white-space: nowrap; }
.modelled { border-style: dashed; color: var(--muted); }
.measured { background: var(--ink); color: var(--bg); border-color: var(--ink); }
nav ul { padding: 0; list-style: none; display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 27rem), 1fr));
  gap: 2.5rem 2.5rem; margin-top: 1.25rem; align-items: start; }
figure, .block { margin: 0; min-width: 0; scroll-margin-top: .75rem; }
figcaption p { margin: .1rem 0 .4rem; }
figure svg { display: block; width: 100%; height: auto; color: var(--c-222222, #222222);
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans",
  sans-serif; }
section > .block { margin-top: 2.5rem; }
.thirds { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr));
  gap: 1rem 2rem; }
.scroll { overflow-x: auto; margin: .5rem 0; }
table { border-collapse: collapse; font-size: .8125rem; line-height: 1.35;
  font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .22rem .6rem .22rem 0; vertical-align: top;
  border-bottom: 1px solid var(--rule); }
th { font-weight: 600; }
thead th { color: var(--muted); font-weight: 500; vertical-align: bottom; }
td.n, th.n { text-align: right; padding: .22rem 0 .22rem .6rem; white-space: nowrap; }
th.n { white-space: normal; }
td.apart, th.apart { padding-left: 1.1rem; }
tr.head th { background: var(--tint); padding: .3rem .4rem; font-weight: 600; }
th.over { border-bottom: 0; padding-bottom: 0; text-align: right; }
table.words td { padding-right: .8rem; }
td.right { color: #00735a; } td.wasteful { color: #8a5a00; }
td.wrong { color: #b23b00; font-weight: 600; }
@media (prefers-color-scheme: dark) { td.right { color: #3fce9f; } td.wasteful { color: #f5bf4a; }
  td.wrong { color: #ff9650; } }
.yes { color: var(--muted); }
.no { font-weight: 700; }
td b { font-weight: 600; }
td:first-child { white-space: nowrap; }
details { margin: .6rem 0; }
summary { cursor: pointer; }
.none { border: 1px dashed var(--rule); padding: 1rem; }
@media (max-width: 26rem) { body { padding: 1rem .75rem 3rem; }
  table { font-size: .75rem; } td.n, th.n { padding-left: .45rem; }
  td.apart, th.apart { padding-left: .7rem; } }
@media (max-width: 22rem) { table { font-size: .6875rem; } td.n, th.n { padding-left: .3rem; }
  th, td { padding-right: .3rem; } td.apart, th.apart { padding-left: .45rem; }
  td:first-child { white-space: normal; } }
@media print { .grid, .thirds { display: block; } figure, .block { break-inside: avoid;
  margin-bottom: 2rem; max-width: 34rem; } }
)css";
}

}  // namespace perdura::report
