// Pages list what tables declare.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "systems/registry/registry.h"
#include "tests/harness/declarations.h"

namespace perdura::harness {
namespace {

std::string page(const std::string& path) {
  std::ifstream input(PERDURA_SOURCE_DIR "/" + path);
  std::stringstream text;
  text << input.rdbuf();
  return text.str();
}

TEST(Parameters, OfDriversAreInThePageOfExperiments) {
  const std::string text = page("experiments/README.md");
  std::size_t checked = 0;
  for (const DriverDeclarations& driver : test::declarations().drivers) {
    for (const Parameter& parameter : driver.parameters) {
      if (parameter.what.starts_with("filled in: ")) continue;
      EXPECT_NE(text.find("\n" + std::string(parameter.name) + " = "), std::string::npos)
          << driver.name << ": " << parameter.name;
      ++checked;
    }
  }
  EXPECT_GT(checked, 30U);
}

TEST(Parameters, OfSystemsAreInTheirPages) {
  std::size_t checked = 0;
  for (const kv::KvSystem& system : systems::kv_systems()) {
    std::string text = page("docs/systems/" + std::string(system.name) + ".md");
    if (system.name == "read-after-write") text += page("docs/systems/redo-logging.md");
    for (const Parameter& parameter : system.parameters) {
      EXPECT_NE(text.find("| `" + std::string(parameter.name) + "` |"), std::string::npos)
          << system.name << ": " << parameter.name;
      ++checked;
    }
  }
  EXPECT_GT(checked, 20U);
}

TEST(Parameters, SayWhatTheyDoAndWhatTheirColumnsAreCalled) {
  for (const DriverDeclarations& driver : test::declarations().drivers) {
    for (const Parameter& parameter : driver.parameters) {
      EXPECT_FALSE(parameter.what.empty()) << parameter.name;
      if (!parameter.identifies) continue;
      const auto* const column = test::declarations().columns.find(parameter.name);
      ASSERT_NE(column, nullptr) << parameter.name;
      EXPECT_TRUE(column->identifies()) << parameter.name;
      EXPECT_FALSE(column->shown.noun.empty()) << parameter.name << " needs a noun and a title";
    }
    for (const auto& system : driver.systems) {
      for (const Parameter& parameter : system.parameters) {
        EXPECT_FALSE(parameter.what.empty()) << system.name << ": " << parameter.name;
      }
    }
  }
}

}  // namespace
}  // namespace perdura::harness
