// The page in a real browser, as wide as a phone and as wide as a desk's screen: nothing sticks
// out. The page has no script of its own; it is measured from a page around it.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "report/guarantees.h"
#include "report/templates.h"
#include "tests/report/fixture.h"

namespace perdura::report {
namespace {

// The page goes into a frame, since a browser's window is never as narrow as a phone.
constexpr const char* kAround =
    "<!DOCTYPE html><html><head><title>not measured</title></head><body style=\"margin:0\">"
    "<iframe id=\"page\" style=\"border:0;width:{}px;height:900px\" srcdoc=\"{}\"></iframe><script>"
    "document.getElementById('page').onload = event => {{"
    "  const page = event.target.contentDocument;"
    "  const root = page.documentElement;"
    "  const outside = [];"
    "  const touching = [];"
    "  for (const svg of page.querySelectorAll('figure svg')) {{"
    "    const box = svg.getBoundingClientRect();"
    "    const texts = [...svg.querySelectorAll('text')].map("
    "        text => [text.textContent.trim(), text.getBoundingClientRect()]);"
    "    for (const [name, own] of texts) {{"
    "      if (name.length < 8 || own.height < 2 * own.width) continue;" /* of a vertical axis */
    "      for (const [text, other] of texts) {{"
    "        const apart = other.left > own.right + 2 || other.right < own.left - 2 ||"
    "                      other.top > own.bottom || other.bottom < own.top;"
    "        if (text != '' && text != name && !apart) touching.push(name + ' and ' + text);"
    "      }}"
    "    }}"
    "    for (const text of svg.querySelectorAll('text')) {{"
    "      const own = text.getBoundingClientRect();"
    "      if (own.left < box.left - 1 || own.right > box.right + 1 || own.top < box.top - 1 ||"
    "          own.bottom > box.bottom + 1) outside.push(text.textContent.trim());"
    "    }}"
    "  }}"
    "  document.title = `width ${{root.clientWidth}}, content ${{root.scrollWidth}}, "
    "${{page.querySelectorAll('figure svg').length}} figures, outside: ${{outside.join('; ')}}, "
    "touching: ${{touching.join('; ')}}`;"
    "}};"
    "</script></body></html>\n";

class BrowserTest : public ReportTest, public testing::WithParamInterface<int> {
 protected:
  /// What `kAround` says of the page, as the browser's title.
  std::string title(const std::string& page, int width) {
    write("around.html", fmt::format(kAround, width, escaped(page)));
    const std::string command = fmt::format(
        "timeout 120 chromium --headless --hide-scrollbars --no-sandbox --disable-gpu "
        "--disable-quic --no-first-run "
        "--disable-background-networking --disable-component-update --disable-sync "
        "--user-data-dir={0}/profile --window-size=1400,1000 --dump-dom file://{0}/around.html "
        "2>/dev/null",
        root().string());
    std::string dom;
    FILE* pipe = popen(command.c_str(), "r");
    std::array<char, 65536> buffer{};
    while (const std::size_t got = fread(buffer.data(), 1, buffer.size(), pipe)) {
      dom.append(buffer.data(), got);
    }
    pclose(pipe);
    const auto start = dom.find("<title>");
    const auto end = dom.find("</title>");
    if (start == std::string::npos || end == std::string::npos) return "no page: " + dom;
    return dom.substr(start + 7, end - start - 7);
  }

  /// All kinds of figures and tables, with names as long as ours are.
  std::string whole_page() {
    std::vector<Cells> rows;
    const std::vector<std::pair<std::string, std::string>> systems{
        {"erda", "atomic"}, {"redo-logging", "durable"}, {"read-after-write", "durable"}};
    for (const auto& [system, guarantee] : systems) {
      for (const std::string domain : {"dmp", "mhp", "wsp"}) {
        for (const std::string ddio : {"on", "off"}) {
          for (const std::string size : {"16", "4096"}) {
            rows.push_back({{"system", system},
                            {"guarantee", guarantee},
                            {"domain", domain},
                            {"ddio", ddio},
                            {"value_size", size},
                            {"latency_mean_us", system == "erda" ? "1234.5" : "92345.6"},
                            {"server_cpu_us_per_op", system == "erda" ? "1" : "20.5"},
                            {"nvm_field_bytes_per_op", "58"}});
          }
        }
      }
    }
    const std::string one = "domain = \"dmp\", ddio = \"on\", operation = \"all\"";
    result(
        "an-experiment-with-a-name-that-goes-on", rows,
        "[[figure]]\nid = \"14\"\npaper = \"erda\"\ntitle = \"Average latency, YCSB-C (100 % "
        "read)\"\n"
        "plot = \"latency-over-value-size\"\nx = \"value_size\"\ny = \"latency_mean_us\"\n"
        "where = { workload = \"workloadc\", " +
            one +
            " }\n"
            "[[figure]]\nid = \"cells\"\ntitle = \"Update latency: as published, and durable when "
            "acknowledged\"\nplot = \"latency-over-workload\"\nx = [\"domain\", \"ddio\"]\n"
            "y = \"latency_mean_us\"\nwhere = { value_size = 16 }\n"
            "[[figure]]\nid = \"22\"\ntitle = \"Normalized server CPU time\"\n"
            "plot = \"normalized-cpu\"\nx = \"workload\"\ny = \"server_cpu_us_per_op\"\n"
            "where = { value_size = 16, " +
            one +
            " }\nnormalize = { system = \"erda\" }\n"
            "[[table]]\nid = \"1\"\npaper = \"erda\"\ntitle = \"NVM writes in bytes per "
            "operation\"\n"
            "kind = \"formula\"\ny = \"nvm_field_bytes_per_op\"\nwhere = { " +
            one + " }\n");
    const auto written = write_report(options());
    EXPECT_TRUE(written) << written.error().message;
    return read("report/index.html");
  }
};

TEST_P(BrowserTest, NothingSticksOut) {
  if (std::system("command -v chromium >/dev/null") != 0) {
    GTEST_SKIP() << "there is no chromium; scripts/packages --tests installs it";
  }
  std::filesystem::create_directories(root() / "guarantees");
  GuaranteeTable table{"cells", "Which method", "All of them", true, {}};
  table.cells.header = {"configuration", "single write", "single write-imm", "ordered write-imm"};
  for (int i = 0; i < 3; ++i) {
    table.cells.rows.push_back({0,
                                {"dmp no-ddio dram", "right: write-imm-message",
                                 "right: ordered-write-imm-message", "out of order, torn, lost"}});
  }
  ASSERT_TRUE(write_guarantees(root() / "guarantees", {table}));
  const std::string page = whole_page();
  EXPECT_EQ(title(page, GetParam()),
            fmt::format("width {0}, content {0}, 3 figures, outside: , touching: ", GetParam()));
}

// What the test above rests on: it sees what does stick out.
TEST_P(BrowserTest, WhatSticksOutIsSeen) {
  if (std::system("command -v chromium >/dev/null") != 0) {
    GTEST_SKIP() << "there is no chromium; scripts/packages --tests installs it";
  }
  EXPECT_EQ(
      title(
          "<!DOCTYPE html><body style=\"margin:0\"><div style=\"width:2000px\">wide</div>"
          "<figure><svg width=\"50\" height=\"50\"><text x=\"40\" y=\"20\">words that are "
          "long</text></svg><svg width=\"300\" height=\"300\"><text transform=\"translate(20,200) "
          "rotate(-90)\">name of an axis</text><text x=\"22\" y=\"150\">1000</text></svg></figure>",
          GetParam()),
      fmt::format("width {}, content 2000, 2 figures, outside: words that are long, touching: name "
                  "of an axis and 1000",
                  GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Widths, BrowserTest, testing::Values(390, 1280));

}  // namespace
}  // namespace perdura::report
