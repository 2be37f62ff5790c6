#include <cstdlib>

#include "tests/report/fixture.h"

namespace perdura::report {
namespace {

using PageTest = ReportTest;

std::string cpu_figure() {
  return "[[figure]]\nid = \"22\"\npaper = \"erda\"\ntitle = \"CPU\"\nplot = \"normalized-cpu\"\n"
         "x = \"workload\"\ny = \"server_cpu_us_per_op\"\n"
         "where = { operation = \"all\" }\nnormalize = { system = \"erda\" }\n";
}

TEST_F(PageTest, ShowsEachFigureOnceAndWritesItsFiles) {
  result("run", latency_rows(), latency_figure("14", "paper = \"erda\"") + latency_figure("15"));
  const auto written = write_report(options());
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(written->figures, 2u);
  const std::string html = read("report/index.html");
  EXPECT_EQ(count(html, "<figure id=\"fig-14\">"), 1u);
  EXPECT_EQ(count(html, "<figure id=\"fig-15\">"), 1u);
  EXPECT_EQ(count(html, "<svg "), 2u);
  for (const char* file : {"14.csv", "14.svg", "14.png"}) {
    EXPECT_GT(std::filesystem::file_size(root() / "report/figures" / file), 100u) << file;
  }
}

TEST_F(PageTest, AsksNothingOfTheNetworkAndRunsNoScript) {
  result("run", latency_rows(), latency_figure("14", "paper = \"erda\""));
  const std::string html = page();
  for (const char* part : {"http:", "https:", "//", "src=", "@import", "<script", "<link", "<img",
                           "<iframe", "onload"}) {
    EXPECT_EQ(count(html, part), 0u) << part;
  }
  EXPECT_EQ(count(html, "url("), count(html, "url(#"));
  // What is linked lies beside the page.
  EXPECT_EQ(count(html, "href="),
            count(html, "href=\"#") + count(html, "href='#") + count(html, "href=\"figures/") +
                count(html, "href=\"designs.csv\"") + count(html, "href=\"../"));
}

// Each link leads to a file, whatever the folder's name and wherever the page is.
TEST_F(PageTest, LinksTheFilesThatItIsMadeOf) {
  result("results/a run", latency_rows(), latency_figure("14", "paper = \"erda\""));
  // A probe's folder has no experiment.
  std::filesystem::create_directories(root() / "results/probe");
  std::filesystem::copy(PERDURA_REFERENCE "/probe/probes.csv", root() / "results/probe/probes.csv");
  write("results/probe/manifest.json", "{}");
  for (const char* out : {"", "elsewhere/deep"}) {
    ReportOptions chosen = options();
    chosen.input = root() / "results";
    if (*out != '\0') chosen.output = root() / out;
    const auto written = write_report(chosen);
    ASSERT_TRUE(written) << written.error().message;
    const std::filesystem::path folder = written->page.parent_path();
    const std::string html = read(std::filesystem::relative(written->page, root()));
    std::size_t links = 0;
    const std::string start = "<a href=\"";
    for (std::size_t at = 0; (at = html.find(start, at)) != std::string::npos; ++at) {
      const std::size_t from = at + start.size();
      std::string link = html.substr(from, html.find('"', from) - from);
      if (link.starts_with("#")) continue;
      for (std::size_t space = 0; (space = link.find("%20")) != std::string::npos;) {
        link.replace(space, 3, " ");
      }
      EXPECT_TRUE(std::filesystem::exists(folder / link)) << link;
      ++links;
    }
    EXPECT_GE(links, 7U) << "data, SVG, PNG, script, points, experiment, manifest";
  }
}

// Each figure has a script of its own, which needs no arguments and may be called from anywhere.
TEST_F(PageTest, AFiguresScriptDrawsItAgain) {
  result("run", latency_rows(),
         latency_figure("14") +
             "[[figure]]\nid = \"quote\"\ntitle = \"It's `ls` \\\"here\\\"\"\n"
             "plot = \"latency-over-workload\"\nx = \"value_size\"\n"
             "y = \"latency_mean_us\"\n");
  const std::string html = page();
  for (const std::string name : {"14", "quote"}) {
    EXPECT_EQ(count(html, "<a href=\"figures/" + name + ".gp\">gnuplot script</a>"), 1U);
    EXPECT_EQ(count(html, "<a href=\"figures/" + name + ".csv\">data</a>"), 1U);
    const std::string drawn = read("report/figures/" + name + ".svg");
    std::filesystem::remove(root() / "report/figures" / (name + ".svg"));
    const std::string script = (root() / "report/figures" / (name + ".gp")).string();
    ASSERT_EQ(std::system(("gnuplot -d '" + script + "'").c_str()), 0);
    EXPECT_EQ(read("report/figures/" + name + ".svg"), drawn);
    const std::string other = (root() / "again.png").string();
    ASSERT_EQ(std::system(("gnuplot -d -c '" + script + "' '" + other + "' png").c_str()), 0);
    EXPECT_EQ(read("again.png"), read("report/figures/" + name + ".png"));
  }
}

TEST_F(PageTest, LongTablesFold) {
  std::vector<Cells> rows;
  for (int size = 1; size <= 17; ++size) {
    rows.push_back({{"value_size", std::to_string(size)}, {"latency_mean_us", "5"}});
  }
  const std::string by_points =
      "[[figure]]\nid = \"f\"\ntitle = \"F\"\nplot = \"latency-over-workload\"\n"
      "x = [\"value_size\", \"workload\"]\ny = \"latency_mean_us\"\n";
  result("run", rows, by_points);
  EXPECT_EQ(count(page(), "<details><summary>17 rows</summary>"), 1U);
  rows.pop_back();
  result("run", rows, by_points);
  EXPECT_EQ(count(page(), "<details><summary>16 rows</summary>"), 0U);
}

// A claim that is a ratio, or an order, of what a figure shows has no line in it.
TEST_F(PageTest, WhatAPaperStatesOfAFigureStandsBesideIt) {
  result("results/run", latency_rows(), latency_figure("14", "paper = \"p\""));
  Cells order = order_claim("system=erda", "system=redo-logging");
  order["figure"] = "13-15";
  Cells elsewhere = order_claim("system=erda", "system=redo-logging");
  elsewhere["figure"] = "2";
  write("claims.csv",
        claims_csv({number_claim("14", "workloadc", "erda", "60"), order, elsewhere}));
  ReportOptions chosen = options();
  chosen.input = root() / "results";
  chosen.claims = root() / "claims.csv";
  chosen.notes = root();
  ASSERT_TRUE(write_report(chosen));
  const std::string html = read("results/report/index.html");
  const std::size_t start = html.find("<figure id=\"fig-14\">");
  const std::string figure = html.substr(start, html.find("</figure>", start) - start);
  const std::string table = figure.substr(figure.find("What the paper states"));
  EXPECT_EQ(count(table, "<td class=\"n\">this order</td>"), 1U) << table;
  EXPECT_EQ(count(table, "in 2 of 2 pairs"), 1U) << table;
  EXPECT_EQ(count(table, "60"), 0U) << "it stands among the averages";
}

TEST_F(PageTest, IsTheSameToTheByteForTheSameInput) {
  result("run", latency_rows(), latency_figure("14", "paper = \"erda\""));
  const std::string first = page();
  EXPECT_EQ(first, page());
}

// A point of one repetition has no interval, one of two has.
TEST_F(PageTest, DrawsTheIntervalOverRepetitionsWithEveryPlot) {
  const auto paths = [this](const std::string& plot, bool repeated) {
    std::vector<Cells> rows;
    for (const std::string system : {"erda", "redo-logging"}) {
      const std::string cost = system == "erda" ? "10" : "20";
      rows.push_back({{"system", system}, {"server_cpu_us_per_op", cost}});
      if (repeated) {
        const std::string other = system == "erda" ? "10" : "24";
        rows.push_back({{"system", system}, {"server_cpu_us_per_op", other}, {"repetition", "1"}});
      }
    }
    const std::string x =
        plot == "normalized-cpu" || plot == "latency-over-workload" ? "workload" : "value_size";
    result("run", rows,
           "[[figure]]\nid = \"i\"\ntitle = \"CPU\"\nplot = \"" + plot + "\"\nx = \"" + x +
               "\"\ny = \"server_cpu_us_per_op\"\n" +
               (plot == "normalized-cpu" ? "normalize = { system = \"erda\" }\n" : ""));
    page();
    return count(read("report/figures/i.svg"), "<path");
  };
  for (const char* plot : {"latency-over-value-size", "throughput-over-clients",
                           "latency-over-workload", "normalized-cpu"}) {
    EXPECT_GT(paths(plot, true), paths(plot, false)) << plot;
  }
}

TEST_F(PageTest, SaysTheRatiosOfOursAndOfThePaper) {
  result("run", latency_rows(), latency_figure("14", "paper = \"erda\""));
  const std::string html = page();
  const std::string place =
      "<tr><td>Average latency</td><td class=\"apart\"><a href=\"#fig-14\">YCSB-C</a></td>"
      "<td class=\"apart\">";
  for (const char* row :
       {"Redo Logging</td><td class=\"apart\">Erda</td><td class=\"n\">1.49</td>"
        "<td class=\"n\">1.48</td></tr>",
        "Read After Write</td><td class=\"apart\">Erda</td><td class=\"n\">1.98</td>"
        "<td class=\"n\">1.47</td></tr>"}) {
    EXPECT_EQ(count(html, place + row), 1U) << row;
  }
}

TEST_F(PageTest, ShowsAVariantByItsTitleAndLeavesTheSystemsTheirColors) {
  std::vector<Cells> rows{{{"system", "erda-small"}, {"latency_mean_us", "66"}}};
  for (Cells& row : latency_rows()) rows.push_back(std::move(row));
  result("run", rows,
         latency_figure("14") +
             "[systems.erda-small]\nvariant_of = \"erda\"\ntitle = \"Erda <small>\"\n");
  const std::string html = page();
  EXPECT_NE(html.find("<td>Erda &lt;small&gt;</td>"), std::string::npos);
  EXPECT_EQ(html.find("Erda Small"), std::string::npos);
  const std::string csv = read("report/figures/14.csv");
  EXPECT_NE(csv.find("\nerda,Erda,0,0,"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\nerda-small,Erda <small>,3,3,"), std::string::npos) << csv;
}

TEST_F(PageTest, EscapesWhatPeopleWrote) {
  auto rows = latency_rows();
  rows[0]["verdict"] = "failed";
  rows[0]["reason"] = "<b>\"torn\" & lost</b>, twice";
  result("run", rows,
         "[[figure]]\nid = \"14\"\ntitle = \"<script>alert('x')</script> & more\"\n"
         "plot = \"latency-over-value-size\"\nx = \"value_size\"\ny = \"latency_mean_us\"\n"
         "where = { workload = \"workloadc\" }\n");
  const std::string html = page();
  EXPECT_EQ(count(html, "<script"), 0u);
  EXPECT_NE(html.find("&lt;script&gt;alert(&apos;x&apos;)&lt;/script&gt; &amp; more"),
            std::string::npos);
  EXPECT_NE(html.find("failed: &lt;b&gt;&quot;torn&quot; &amp; lost&lt;/b&gt;, twice"),
            std::string::npos);
  EXPECT_NE(html.find("a &lt;b&gt; &amp; c"), std::string::npos);  // from the manifest
}

TEST_F(PageTest, ListsRowsThatAreNotValidAndDrawsNoneOfThem) {
  auto rows = latency_rows();
  rows[3]["verdict"] = "invalid";
  rows[3]["reason"] = "the clock went backwards";
  rows[3]["latency_mean_us"] = "777777";
  result("run", rows, latency_figure("14"));
  const auto written = write_report(options());
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(written->rows_not_drawn, 1u);
  EXPECT_EQ(count(read("report/figures/14.csv"), "777777"), 0u);
  const std::string html = read("report/index.html");
  EXPECT_EQ(count(html, "777777"), 0u);
  EXPECT_NE(html.find(">run/points.csv, line 5</a></td>"), std::string::npos);
  EXPECT_NE(html.find("<td><b>invalid: the clock went backwards</b></td>"), std::string::npos);
}

TEST_F(PageTest, AFigureWithoutAValidRowSaysSo) {
  auto rows = latency_rows();
  for (Cells& row : rows) row["verdict"] = "failed";
  result("run", rows, latency_figure("14"));
  EXPECT_NE(page().find("Nothing to draw: none of the 6 rows is valid"), std::string::npos);
}

// Valid rows are not called invalid.
TEST_F(PageTest, AFigureThatNothingNormalizesSaysSo) {
  result("run", latency_rows(), latency_figure("14", "normalize = { system = \"nobody\" }"));
  EXPECT_NE(page().find("Nothing to draw: none of the 6 rows can be drawn: no valid row of nobody "
                        "to normalize by"),
            std::string::npos);
}

TEST_F(PageTest, ModelledAndMeasuredNeverShareAFigure) {
  auto rows = latency_rows();
  const std::size_t modelled = rows.size();
  for (std::size_t i = 0; i < modelled; ++i) {
    Cells row = measured(rows[i]);
    row["latency_mean_us"] = "5";
    rows.push_back(row);
  }
  // Even if one file holds both, as no run writes it.
  result("run", rows, latency_figure("14", "paper = \"erda\""));
  const std::string html = page();
  EXPECT_EQ(count(html, "<figure "), 2u);
  EXPECT_EQ(count(html, "<h3>Erda, Figure 14 <span class=\"badge modelled\">modelled"), 1u);
  EXPECT_EQ(count(html, "<h3>Erda, Figure 14 <span class=\"badge measured\">measured on this host"),
            1u);
  EXPECT_EQ(count(read("report/figures/14-sim.csv"), "\n"), 7u);
  EXPECT_EQ(count(read("report/figures/14-sim.csv"), ",5,"), 0u);
  EXPECT_EQ(count(read("report/figures/14-shm.csv"), "\n"), 7u);
  EXPECT_EQ(count(read("report/figures/14-shm.csv"), ",60,"), 0u);
}

TEST_F(PageTest, ThePapersAverageIsDrawnBesideTheModelOnly) {
  std::vector<Cells> rows = latency_rows();
  result("sim", rows, latency_figure("14", "paper = \"erda\""));
  for (Cells& row : rows) row = measured(row);
  result("shm", rows, latency_figure("14", "paper = \"erda\""));
  page();
  EXPECT_EQ(count(read("report/figures/14-sim.csv"), "62.84"), 2u);
  EXPECT_EQ(count(read("report/figures/14-sim.svg"), "paper, average"), 1u);
  EXPECT_EQ(count(read("report/figures/14-shm.csv"), "62.84"), 0u);
  EXPECT_EQ(count(read("report/figures/14-shm.svg"), "paper, average"), 0u);
}

TEST_F(PageTest, AnInfiniteRatioIsATextAndNotABar) {
  result("run",
         {{{"server_cpu_us_per_op", "0"}},
          {{"system", "redo-logging"}, {"server_cpu_us_per_op", "7"}},
          {{"workload", "workloadb"}, {"server_cpu_us_per_op", "0.5"}},
          {{"workload", "workloadb"}, {"system", "redo-logging"}, {"server_cpu_us_per_op", "10"}}},
         cpu_figure());
  page();
  const std::string svg = read("report/figures/22.svg");
  EXPECT_EQ(count(svg, "∞"), 1u);
  EXPECT_EQ(count(svg, ">20.0<"), 1u);
  EXPECT_EQ(count(read("report/figures/22.csv"), ",inf,inf,inf,"), 1u);  // and its interval
}

// A system that takes less when it is offered more: the line turns back.
TEST_F(PageTest, LatencyIsDrawnOverTheThroughputAtWhichItWasMeasured) {
  const auto row = [](const char* load, const char* repetition, const char* throughput,
                      const char* response) {
    return Cells{{"load", "poisson"},
                 {"offered_load", load},
                 {"repetition", repetition},
                 {"throughput_ops_s", throughput},
                 {"response_p99_us", response}};
  };
  const std::string figure =
      "[[figure]]\nid = \"load\"\ntitle = \"Load\"\nplot = \"latency-over-throughput\"\n"
      "x = \"offered_load\"\nat = \"throughput_ops_s\"\ny = \"response_p99_us\"\n";
  result("run",
         {row("1000", "0", "900", "100"), row("1000", "1", "1100", "100"),
          row("5000", "0", "3000", "2000"), row("5000", "1", "3000", "2000"),
          row("9000", "0", "2500", "40000"), row("9000", "1", "2500", "40000")},
         figure);
  const std::string html = page();
  EXPECT_EQ(count(html, "<figure id=\"fig-load\">"), 1U);
  EXPECT_EQ(read("report/figures/load.csv"),
            "series,label,series_index,style,x,x_label,x_index,y,y_low,y_high,repetitions,"
            "paper_average,noisy,text\n"
            "erda,Erda,0,0,1,1000,0,100,100,100,2,,0,100\n"
            "erda,Erda,0,0,3,5000,1,2000,2000,2000,2,,0,2000\n"
            "erda,Erda,0,0,2.5,9000,2,40000,40000,40000,2,,0,40000\n");
  const std::string svg = read("report/figures/load.svg");
  EXPECT_EQ(count(svg, "Throughput (kop/s)"), 1U);
  EXPECT_EQ(count(svg, "Response time, p99 (µs)"), 1U);
  // The table names the load, of which no average is taken.
  EXPECT_EQ(count(html, "<th>Offered load (op/s)</th>"), 1U);
  EXPECT_EQ(count(html, "<td>9000</td>"), 1U);
}

// Of two repetitions that differ much, the interval of the mean reaches below zero.
TEST_F(PageTest, NoWhiskerGoesBelowZero) {
  result("run",
         {{{"repetition", "0"}, {"latency_mean_us", "1"}},
          {{"repetition", "1"}, {"latency_mean_us", "100"}}},
         latency_figure("14"));
  page();
  EXPECT_EQ(count(read("report/figures/14.csv"), ",50.5,0,"), 1U) << read("report/figures/14.csv");
}

TEST_F(PageTest, PointsOfAHostThatWasNotQuietAreMarkedInTheirFigure) {
  const auto row = [](const char* size, const char* repetition, const char* noise) {
    return measured({{"value_size", size},
                     {"repetition", repetition},
                     {"noise", noise},
                     {"latency_mean_us", "50"}});
  };
  for (const std::string plot : {"latency-over-value-size", "latency-over-workload",
                                 "throughput-over-clients", "normalized-cpu"}) {
    const std::string figure = "[[figure]]\nid = \"x\"\ntitle = \"X\"\nplot = \"" + plot +
                               "\"\nx = \"value_size\"\ny = \"latency_mean_us\"\n";
    const std::string words = "* the host was not quiet";
    result("run", {row("16", "0", "quiet"), row("16", "1", "crowded"), row("64", "0", "quiet")},
           figure);
    EXPECT_EQ(count(page(), "* 1 of 2 points: measured while the host was busy"), 1U);
    EXPECT_EQ(count(read("report/figures/x.csv"), ",2,,1,50.0*\n"), 1U)
        << read("report/figures/x.csv");
    EXPECT_EQ(count(read("report/figures/x.csv"), ",1,,0,50.0\n"), 1U);
    EXPECT_EQ(count(read("report/figures/x.svg"), words), 1U) << plot;
    result("run", {row("16", "0", "quiet"), row("64", "0", "quiet")}, figure);
    EXPECT_EQ(count(page(), "measured while the host was busy"), 0U);
    EXPECT_EQ(count(read("report/figures/x.svg"), words), 0U) << plot;
  }
}

TEST_F(PageTest, WhatHasNoPlaceOnTheAxisIsNotDrawn) {
  result("run",
         {{{"offered_load", "5"}, {"throughput_ops_s", "5"}, {"response_p99_us", "1"}},
          {{"offered_load", "6"}, {"response_p99_us", "1"}}},
         "[[figure]]\nid = \"load\"\ntitle = \"Load\"\nplot = \"latency-over-throughput\"\n"
         "x = \"offered_load\"\nat = \"throughput_ops_s\"\ny = \"response_p99_us\"\n");
  EXPECT_NE(page().find("throughput_ops_s was not measured"), std::string::npos);
  EXPECT_EQ(count(read("report/figures/load.csv"), "\n"), 2U);
}

TEST_F(PageTest, Table1SetsTheCountedBytesBesideTheFormula) {
  const auto row = [](const char* system, const char* workload, const char* bytes) {
    return Cells{{"system", system}, {"workload", workload}, {"nvm_field_bytes_per_op", bytes}};
  };
  // Key 16, value 16: N = 32.
  result("run",
         {row("erda", "create-only", "58"), row("erda", "update-only", "41"),
          row("erda", "delete-only", "25"), row("redo-logging", "update-only", "69")},
         "[[table]]\nid = \"1\"\npaper = \"erda\"\ntitle = \"Writes\"\nkind = \"formula\"\n"
         "y = \"nvm_field_bytes_per_op\"\nwhere = { operation = \"all\" }\n");
  const std::string html = page();
  EXPECT_EQ(count(html, "<td>4 + 2·N<br><span class=\"no\">0 of 1 equal</span></td>"), 1U);
  EXPECT_EQ(count(html, "<span class=\"yes\">1 of 1 equal</span>"), 3U);
  EXPECT_EQ(count(html, "<details open><summary>Every case</summary>"), 1U) << "one differs";
  EXPECT_EQ(read("report/figures/table-1.csv"),
            "workload,series,key_size,value_size,counted,formula,paper,equal\n"
            "create-only,erda,16,16,58,key + 10 + N,58,yes\n"
            "update-only,erda,16,16,41,9 + N,41,yes\n"
            "update-only,redo-logging,16,16,69,4 + 2 * N,68,no\n"
            "delete-only,erda,16,16,25,key + 9,25,yes\n");
}

TEST_F(PageTest, ATableOfFormulasNamesWhatItRunsOver) {
  result("run",
         {{{"workload", "create-only"}, {"records", "1024"}, {"nvm_field_bytes_per_op", "58"}}},
         "[[table]]\nid = \"1\"\npaper = \"erda\"\ntitle = \"Writes\"\nkind = \"formula\"\n"
         "x = \"records\"\ny = \"nvm_field_bytes_per_op\"\n");
  const std::string html = page();
  EXPECT_EQ(count(html, "<th class=\"n\">Records</th>"), 1U);
  EXPECT_EQ(count(html, "<th class=\"n\">Value</th>"), 0U);
  EXPECT_EQ(read("report/figures/table-1.csv").substr(0, 32), "workload,series,key_size,records");
}

// There are eight styles; a ninth system must not look like another one of its figure.
TEST_F(PageTest, SeriesOfAFigureNeverShareAStyle) {
  const auto row = [](const std::string& system) {
    return Cells{{"system", system}, {"latency_mean_us", "1"}};
  };
  std::vector<Cells> others;
  for (int i = 0; i < 8; ++i) others.push_back(row("s" + std::to_string(i)));
  result("results/a", others, latency_figure("14"));
  result("results/b", {row("s0"), row("s8"), row("s1")}, latency_figure("15"));
  ReportOptions chosen = options();
  chosen.input = root() / "results";
  chosen.output = root() / "report";
  const auto written = write_report(chosen);
  ASSERT_TRUE(written) << written.error().message;
  const std::string first = read("report/figures/14.csv");
  for (int i = 0; i < 8; ++i) {
    const std::string number = std::to_string(i);
    EXPECT_EQ(count(first, "s" + number + ",S" + number + "," + number + "," + number + ","), 1U)
        << first;
  }
  const std::string second = read("report/figures/15.csv");
  EXPECT_EQ(count(second, "s0,S0,0,0,"), 1U) << second;
  EXPECT_EQ(count(second, "s1,S1,1,1,"), 1U) << second;
  EXPECT_EQ(count(second, "s8,S8,2,2,"), 1U) << second;
}

TEST_F(PageTest, NotesStandUnderTheirHeadingAndAreLinkedFromTheirFigures) {
  result("results/run", latency_rows(), latency_figure("14", "paper = \"p\""));
  write("claims.csv", claims_csv({number_claim("14", "workloadc", "erda", "60")}));
  write("p-notes.toml", "[[note]]\nfigures = [\"14\"]\ntext = \"One.\\n\\nTwo < three.\"\n");
  ReportOptions chosen = options();
  chosen.input = root() / "results";
  chosen.claims = root() / "claims.csv";
  chosen.notes = root();
  chosen.output = root() / "elsewhere";
  const auto written = write_report(chosen);
  ASSERT_TRUE(written) << written.error().message;
  const std::string html = read("elsewhere/index.html");
  EXPECT_NE(html.find("<a href=\"#note-p-1\">what differs and why</a>"), std::string::npos);
  EXPECT_NE(html.find("id=\"note-p-1\""), std::string::npos);
  EXPECT_NE(html.find("<p>One.</p>\n<p>Two &lt; three.</p>"), std::string::npos);
}

TEST_F(PageTest, ClaimsStandAfterTheTablesWithWhatBecameOfThem) {
  result("results/run", latency_rows(), latency_figure("14", "paper = \"p\""));
  Cells fitted = number_claim("14", "workloadc", "redo-logging", "91");
  fitted["basis"] = "fitted";
  write("claims.csv", claims_csv({number_claim("14", "workloadc", "erda", "50"), fitted,
                                  order_claim("system=<b>", "system=erda")}));
  write("p-notes.toml", "[[note]]\nclaims = [\"c1\"]\ntext = \"So.\"\n");
  ReportOptions chosen = options();
  chosen.input = root() / "results";
  chosen.claims = root() / "claims.csv";
  chosen.notes = root();
  const auto written = write_report(chosen);
  ASSERT_TRUE(written) << written.error().message;
  const std::string html = read("results/report/index.html");
  const std::string table = html.substr(html.find("<h2 id=\"claims\">"));
  EXPECT_LT(html.find("<h2 id=\"tables\">"), html.find("<h2 id=\"claims\">"));
  EXPECT_EQ(count(table, "<td class=\"n\">50 µs</td>"), 1U);
  EXPECT_EQ(count(table, "<td class=\"n\">+22.0 %</td>"), 1U);
  EXPECT_EQ(count(table, "<b>differs</b> · <a href=\"#note-p-1\">why</a></td>"), 1U);
  EXPECT_EQ(count(table, ">holds, fitted</td>"), 1U);
  EXPECT_EQ(count(table, ">not measured</td>"), 1U);
}

}  // namespace
}  // namespace perdura::report
