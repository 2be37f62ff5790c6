// A parameter is one line in its driver's table: whatever its type, from there it comes to
// experiments, errors, labels, results, manifests, comparisons and figures. Here a driver gets one
// more, of each type in turn.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <stdexcept>

#include "harness/config/override.h"
#include "harness/run/sweep.h"
#include "harness/text/whole_file.h"
#include "platform/base/error.h"
#include "report/compare/matching.h"
#include "report/page_data.h"
#include "report/result_folder.h"
#include "report/templates.h"
#include "tests/harness/temporary_folder.h"

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 2> kShapes{"flat", "deep"};

constexpr Parameter kOfSystem[] = {
    {.name = "fill", .type = Share{}, .usual = 0.5, .what = "of each leaf"},
    {.name = "sorted", .type = Flag{}, .usual = false},
    {.name = "shape", .type = OneOf{kShapes}, .usual = "flat"},
};

// Of trees: knows nothing of keys, values, clients or workloads.
class TreeDriver final : public Driver {
 public:
  explicit TreeDriver(std::vector<Parameter> table) : table_(std::move(table)) {}

  std::string_view name() const override { return "trees"; }
  std::span<const Parameter> parameters() const override { return table_; }
  std::vector<DriverDeclarations::System> systems() const override {
    return {{"oak", kOfSystem, "Q. robur"}, {"elm", kOfSystem}};
  }
  Roles roles(const PointSettings&, NodeId) const override { return Roles({{"tree"}}); }
  void check(const Point&) const override {}
  Measurement run(Platform&, const Point& point) const override {
    seen.push_back(point.parameters);
    Measurement measured;
    auto& kind = measured.kinds[{0, "growth"}];
    kind.operations = 10;
    kind.latency.record(1000 * point.settings.number("height") + point.seed, 10);
    measured.elapsed = Microseconds(1);
    measured.at_work = {{0, Time(), Time(Microseconds(1)), 10}};
    return measured;
  }

  mutable std::vector<GivenParameters> seen;

 private:
  std::vector<Parameter> table_;
};

// One more parameter: two values as an experiment writes them and as results have them, and one
// that is refused.
struct Addition {
  Parameter parameter;
  std::array<const char*, 2> written;
  std::array<const char*, 2> in_results;
  const char* wrong;
  const char* message;

  friend void PrintTo(const Addition& addition, std::ostream* out) {
    *out << addition.parameter.name;
  }
};
constexpr Parameter described(std::string_view name, ParameterType type, UsualValue usual) {
  return {.name = name,
          .type = type,
          .usual = usual,
          .identifies = true,
          .noun = "age of trees",
          .title = "Age",
          .unit = "years"};
}
const Addition kAdditions[] = {
    {described("rings", Count{3, 99}, 3),
     {"4", "5"},
     {"4", "5"},
     "2",
     "must be a whole number from 3 to 99, but is 2"},
    {described("shade", Share{}, 0.25),
     {"0.5", "1.0"},
     {"0.5", "1"},
     "1.5",
     "must be a decimal number above 0, at most 1, such as 0.02, but is 1.5"},
    {described("bend", Real{-1, 2}, 1.0),
     {"-0.5", "2"},
     {"-0.5", "2"},
     "2.5",
     "must be a decimal number from -1 to 2, but is 2.5"},
    {described("alive", Flag{}, true),
     {"true", "false"},
     {"true", "false"},
     "\"yes\"",
     "must be true or false, but is \"yes\""},
    {described("form", OneOf{kShapes}, "flat"),
     {"\"deep\"", "\"flat\""},
     {"deep", "flat"},
     "\"round\"",
     "must be \"flat\" or \"deep\", but is \"round\""},
    {described("kind", Name{}, "beech"),
     {"\"ash\"", "\"elm\""},
     {"ash", "elm"},
     "\"\"",
     "must not be empty"},
};

class ParameterTest : public testing::TestWithParam<Addition> {
 protected:
  static std::vector<Parameter> table(bool with_addition = true) {
    std::vector<Parameter> rows{{.name = "height", .type = Count{1, 9}, .usual = 2},
                                {.name = "water", .type = Count{0, 9}, .what = "not in results"}};
    if (with_addition) rows.push_back(GetParam().parameter);
    return rows;
  }
  // Line 6 is the first of `more`.
  fs::path write(const std::string& more) {
    const fs::path file = temporary_.path() / "grow.toml";
    std::ofstream(file) << "name = \"grow\"\ndriver = \"trees\"\nprofile = \"erda-connectx3\"\n"
                           "[workload]\nsystem = \"oak\"\n"
                        << more;
    return file;
  }
  ExitCode run(const Driver& driver, const std::string& more, const std::string& out,
               std::vector<Override> changes = {}) {
    const Driver* const drivers[] = {&driver};
    RunRequest request;
    request.experiment.experiment = write(more).string();
    request.experiment.overrides = std::move(changes);
    request.out = folder(out);
    request.command_line = "test";
    request.quiet = true;
    return run_experiment(request, Locations({PERDURA_SOURCE_DIR}), drivers, ranks_);
  }
  std::string error_of(const std::string& more, std::vector<Override> changes = {}) {
    try {
      run(TreeDriver(table()), more, "refused", std::move(changes));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  }
  fs::path folder(const std::string& name) const { return temporary_.path() / name; }
  static std::string both_values() {
    const Addition& added = GetParam();
    return fmt::format("[matrix]\n{} = [{}, {}]\n", added.parameter.name, added.written[0],
                       added.written[1]);
  }

  test::TemporaryFolder temporary_;
  int argc_ = 0;
  char** argv_ = nullptr;
  Ranks ranks_{argc_, argv_};
};

INSTANTIATE_TEST_SUITE_P(OfEachType, ParameterTest, testing::ValuesIn(kAdditions),
                         [](const auto& added) { return std::string(added.param.parameter.name); });

TEST_P(ParameterTest, IsReadAndRefusedOutsideItsRangeWithItsPlace) {
  const auto& [parameter, written, in_results, wrong, message] = GetParam();
  const std::string file = (temporary_.path() / "grow.toml").string();
  for (const char* value : written) {
    EXPECT_EQ(error_of(fmt::format("{} = {}\n", parameter.name, value)), "no error");
    fs::remove_all(folder("refused"));
  }
  EXPECT_EQ(error_of(fmt::format("{} = {}\n", parameter.name, wrong)),
            fmt::format("{}:6: {} in [workload] {}", file, parameter.name, message));
  EXPECT_EQ(error_of(fmt::format("[matrix]\n{} = [{},\n{}]\n", parameter.name, written[0], wrong)),
            fmt::format("{}:8: {} in [matrix] {}", file, parameter.name, message));
  const std::string set = fmt::format("workload.{}={}", parameter.name, wrong);
  EXPECT_EQ(error_of("", {parse_override(set)}),
            fmt::format("--set {}: {} in [workload] {}", set, parameter.name, message));
  EXPECT_NE(error_of(std::string(parameter.name) + "x = 1\n").find("did you mean"),
            std::string::npos);
}

TEST_P(ParameterTest, IsInLabelsResultsAndFigures) {
  const auto& [parameter, written, in_results, wrong, message] = GetParam();
  const TreeDriver driver(table());
  ASSERT_EQ(run(driver, both_values(), "a"), ExitCode::done);
  for (std::size_t i = 0; i < 2; ++i) {
    const bool name = std::holds_alternative<Name>(parameter.type);
    EXPECT_NE(read_whole(folder("a") / "times.csv")
                  .value()
                  .find(fmt::format(",{}{}{},", name ? "" : parameter.name, name ? "" : "=",
                                    in_results[i])),
              std::string::npos);
  }

  std::ofstream(folder("a") / "experiment.toml", std::ios::app)
      << "[[figure]]\nid = \"1\"\ntitle = \"Trees\"\nx = \"" << parameter.name
      << "\"\ny = \"latency_mean_us\"\nplot = \"bars\"\n";
  const auto folders = report::read_result_folders(folder("a"));
  ASSERT_TRUE(folders) << folders.error().message;
  const report::Points& points = folders->front().points;
  ASSERT_EQ(points.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(points.text(i, parameter.name), in_results[i]);
  EXPECT_FALSE(points.schema().find("height")) << "it was not declared to tell points apart";
  const auto* const column = points.schema().find(parameter.name);
  ASSERT_NE(column, nullptr) << "the manifest describes it";
  EXPECT_EQ(column->role, schema::Column::Role::parameter);
  EXPECT_EQ(column->usual, parameter.usual.value().to_text());
  EXPECT_EQ(folders->front().specs.figures.front().shown_x_axis(), "Age (years)");
  EXPECT_EQ(folders->front().specs.systems.shown("oak"), "Q. robur") << "and names the systems";
  EXPECT_EQ(folders->front().specs.systems.shown("elm-tree"), "Elm Tree");
  report::Data data;
  data["settings"] = report::settings_data(*folders, folder("a"));
  const std::string page = report::render("appendix.html", data);
  EXPECT_NE(page.find("<th>age of trees, years</th>"), std::string::npos) << page;
  const bool usual = column->usual == in_results[0];
  EXPECT_EQ(report::constants(points, {0}).find("age of trees") == std::string::npos, usual)
      << "what goes without saying is not said";
}

TEST_P(ParameterTest, TellsPointsApartInComparisons) {
  const Addition& added = GetParam();
  const TreeDriver driver(table());
  ASSERT_EQ(run(driver, both_values(), "a"), ExitCode::done);
  ASSERT_EQ(run(driver, both_values(), "b", {parse_override("seed=9")}), ExitCode::done);
  const auto compared = [&](const char* one, const char* other) {
    return compare::match({folder(one) / "points.csv"}, {folder(other) / "points.csv"},
                          {"latency_mean_us"});
  };
  const auto same = compared("a", "b");
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_EQ(same->pairs.size(), 2U);

  // A run from before there was the parameter is one of its usual value.
  ASSERT_EQ(run(TreeDriver(table(false)), "", "old"), ExitCode::done);
  ASSERT_EQ(run(driver, "", "usual"), ExitCode::done);
  const auto older = compared("old", "usual");
  ASSERT_TRUE(older) << older.error().message;
  EXPECT_EQ(older->pairs.size(), 1U);
  ASSERT_EQ(run(driver,
                fmt::format(
                    "{} = {}\n", added.parameter.name,
                    added.written[added.in_results[0] == added.parameter.usual.value().to_text()]),
                "other"),
            ExitCode::done);
  EXPECT_FALSE(compared("old", "other")) << "no point is in both";
}

TEST_F(ParameterTest, OfASystemIsCheckedByItsTable) {
  const TreeDriver driver({{.name = "height", .type = Count{1, 9}, .usual = 2}});
  const auto error = [&](const std::string& line) -> std::string {
    try {
      run(driver, "[systems.oak]\n" + line + "\n", "refused");
    } catch (const UsageError& problem) {
      return problem.what();
    }
    return "no error";
  };
  const std::string place = (temporary_.path() / "grow.toml").string() + ":7: ";
  EXPECT_EQ(error("fill = 1.5"),
            place +
                "fill in [systems.oak] must be a decimal number above 0, at most 1, such as "
                "0.02, but is 1.5");
  EXPECT_EQ(error("sorted = 2"), place + "sorted in [systems.oak] must be true or false, but is 2");
  EXPECT_EQ(error("shape = \"round\""),
            place + "shape in [systems.oak] must be \"flat\" or \"deep\", but is \"round\"");
  EXPECT_EQ(error("sort = 1"), place +
                                   "unknown key 'sort' in [systems.oak] (did you mean 'sorted'?); "
                                   "known are: fill, sorted, shape, variant_of, title, workload");
  EXPECT_EQ(error("fill = 0.75\nsorted = 1\nshape = \"deep\""), "no error");
  ASSERT_EQ(driver.seen.size(), 1U);
  EXPECT_EQ(driver.seen[0].at("fill").real(), 0.75);
  EXPECT_TRUE(driver.seen[0].at("sorted").flag());
  EXPECT_EQ(driver.seen[0].at("shape").text(), "deep");
}

TEST_F(ParameterTest, ASystemMayHaveValuesOfItsOwn) {
  const TreeDriver driver({described("rings", Count{3, 99}, 3)});
  const auto rings = [&](const std::string& system) {
    const std::string folder_name = "of-" + system;
    run(driver,
        "rings = 4\n"
        "[systems.elm.workload]\nrings = 5\n"
        "[systems.old]\nvariant_of = \"elm\"\n[systems.old.workload]\nrings = 90\n"
        "[systems.same]\nvariant_of = \"elm\"\n",
        folder_name, {parse_override(fmt::format("workload.system=\"{}\"", system))});
    const auto folders = report::read_result_folders(folder(folder_name));
    return folders ? folders->front().points.text(0, "rings") : folders.error().message;
  };
  EXPECT_EQ(rings("oak"), "4");
  EXPECT_EQ(rings("elm"), "5");
  EXPECT_EQ(rings("old"), "90");
  EXPECT_EQ(rings("same"), "5") << "as those of the system that it varies";
}

TEST_F(ParameterTest, ASystemCannotReplaceWhatTheMatrixVaries) {
  const TreeDriver driver({described("rings", Count{3, 99}, 3)});
  try {
    run(driver, "[matrix]\nrings = [3, 4]\n[systems.oak.workload]\nrings = 5\n", "refused");
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    const std::string file = (temporary_.path() / "grow.toml").string();
    EXPECT_EQ(error.what(), fmt::format("{0}:9: rings in [systems.oak.workload] is in [matrix] too "
                                        "({0}:7); keep one",
                                        file));
  }
}

TEST_F(ParameterTest, ThatIsNotInResultsCannotVary) {
  const TreeDriver driver({{.name = "height", .type = Count{1, 9}, .usual = 2}});
  EXPECT_THROW(run(driver, "[matrix]\nheight = [1, 2]\n", "a"), UsageError);
  EXPECT_EQ(run(driver, "[matrix]\nheight = [1]\n", "a"), ExitCode::done);
}

}  // namespace
}  // namespace perdura::harness
