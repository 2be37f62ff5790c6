// Each mistake in a TOML file gives one line that says where it is, what is wrong and what to do.
#include "platform/base/toml_section.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>

#include "platform/base/error.h"
#include "tests/support/temporary_directory.h"

namespace perdura {
namespace {

constexpr std::array<std::string_view, 2> kModes{"event", "polling"};
constexpr Parameter kMode{.name = "mode", .type = OneOf{kModes}};
constexpr Parameter kCores{.name = "cores", .type = Count{1, 64}};
constexpr Parameter kHost{.name = "host", .type = Name{}};

// Reads a section as a program would that has one key of each type.
void read_device(const TomlSection& top) {
  constexpr std::array<std::string_view, 2> sections{"job", "device"};
  top.allow_only(sections);
  if (!top.text("job")) top.missing("job", "add job = \"...\"");
  const auto device = top.section("device");
  if (!device) return;
  constexpr std::array<std::string_view, 8> known{"port", "ratio", "name",  "odp",
                                                  "mode", "cores", "inner", "host"};
  device->allow_only(known);
  device->number("port", 1, 255);
  if (const toml::node* const node = device->table().get("ratio")) {
    device->real_of(*node, "ratio", 0.5, 2);
  }
  device->text("name");
  device->flag("odp");
  for (const Parameter& parameter : {kMode, kCores, kHost}) device->value(parameter);
  if (const auto inner = device->section("inner")) inner->allow_only({});
}

std::string message_for(const std::string& text) {
  try {
    read_device(TomlFile::parse(text, "lab.toml").top());
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no mistake";
}

// The message about a line of [device], which is line 3.
std::string of_device(const std::string& line) {
  return message_for("job = \"x\"\n[device]\n" + line + "\n");
}

TEST(TomlSection, AcceptsWhatIsAllowed) {
  EXPECT_EQ(of_device("port = 255\nratio = 2\nname = \"a\"\nodp = true\nmode = \"event\"\n"
                      "cores = 64\nhost = \"b\"\ninner = {}"),
            "no mistake");
}

TEST(TomlSection, ReturnsWhatIsWritten) {
  const TomlFile file = TomlFile::parse(
      "[device]\nport = 3\nname = \"a\"\nodp = true\nratio = 1\nmode = \"polling\"\n", "lab.toml");
  const TomlSection device = file.top().section("device").value();
  EXPECT_EQ(device.name(), "device");
  EXPECT_EQ(device.where(), "lab.toml:1");
  EXPECT_EQ(device.where("name"), "lab.toml:3");
  EXPECT_EQ(device.where("absent"), "lab.toml:1") << "the place of the section";
  EXPECT_EQ(device.number("port", 0, 9), 3U);
  EXPECT_EQ(device.text("name"), "a");
  EXPECT_EQ(device.flag("odp"), true);
  EXPECT_EQ(device.real_of(*device.table().get("ratio"), "ratio", 0, 1), 1.0);
  EXPECT_EQ(device.value(kMode).value().text(), "polling");
  EXPECT_FALSE(device.number("absent", 0, 9) || device.text("absent") || device.flag("absent"));
  EXPECT_FALSE(device.section("absent") || device.value(kCores));
}

TEST(TomlSection, NamesAnUnknownKeyWithThoseThatItKnows) {
  EXPECT_EQ(message_for("jib = 1"),
            "lab.toml:1: unknown key 'jib' (did you mean 'job'?); known are: job, device");
  EXPECT_EQ(of_device("prot = 1"),
            "lab.toml:3: unknown key 'prot' in [device] (did you mean 'port'?); known are: port, "
            "ratio, name, odp, mode, cores, inner, host");
  EXPECT_EQ(of_device("\n[device.inner]\na = 1"),
            "lab.toml:5: unknown key 'a' in [device.inner]; known are: none");
}

TEST(TomlSection, NamesAValueThatIsNotAllowed) {
  for (const auto& [value, shown] : {std::pair{"0", "0"},
                                     {"256", "256"},
                                     {"-1", "-1"},
                                     {"1.5", "1.5"},
                                     {"nan", "nan"},
                                     {"true", "true"},
                                     {"\"1\"", "\"1\""}}) {
    EXPECT_EQ(
        of_device(std::string("port = ") + value),
        std::string("lab.toml:3: port in [device] must be a whole number from 1 to 255, but is ") +
            shown);
  }
  EXPECT_EQ(of_device("port = [1]"),
            "lab.toml:3: port in [device] must be a whole number from 1 to 255, but is a list");
  EXPECT_EQ(of_device("port = \"\""),
            "lab.toml:3: port in [device] must be a whole number from 1 to 255, but is \"\"");
  EXPECT_EQ(of_device("port = {}"),
            "lab.toml:3: port in [device] must be a whole number from 1 to 255, but is a section");
  EXPECT_EQ(of_device("name = 2024-01-01"),
            "lab.toml:3: name in [device] must be text in quotes, but is a time");
  for (const auto* value : {"0.4", "3", "inf", "nan", "\"1\""}) {
    EXPECT_EQ(of_device(std::string("ratio = ") + value),
              std::string("lab.toml:3: ratio in [device] must be a number from 0.5 to 2, but is ") +
                  value);
  }
  EXPECT_EQ(of_device("name = 5"), "lab.toml:3: name in [device] must be text in quotes, but is 5");
  EXPECT_EQ(of_device("odp = 2"), "lab.toml:3: odp in [device] must be true or false, but is 2");
  EXPECT_EQ(of_device("inner = 1"),
            "lab.toml:3: inner in [device] must be a section, [device.inner], but is 1");
}

TEST(TomlSection, NamesAParametersValueThatIsNotAllowed) {
  EXPECT_EQ(of_device("mode = \"busy\""),
            "lab.toml:3: mode in [device] must be \"event\" or \"polling\", but is \"busy\"");
  EXPECT_EQ(of_device("cores = 65"),
            "lab.toml:3: cores in [device] must be a whole number from 1 to 64, but is 65");
  EXPECT_EQ(of_device("cores = -1"),
            "lab.toml:3: cores in [device] must be a whole number from 1 to 64, but is -1");
  EXPECT_EQ(of_device("cores = [1]"),
            "lab.toml:3: cores in [device] must be a whole number from 1 to 64, but is a list");
  EXPECT_EQ(of_device("host = \"\""), "lab.toml:3: host in [device] must not be empty");
}

TEST(TomlSection, ReportsTheMistypedKeyOfSeveralUnknownOnes) {
  EXPECT_EQ(of_device("another = 1\nprot = 1").find("lab.toml:4: unknown key 'prot'"), 0U);
}

TEST(TomlSection, ReadsListsOfTextsAndOfSections) {
  const auto read = [](const std::string& text) -> std::string {
    try {
      std::string found;
      const TomlFile file = TomlFile::parse(text, "lab.toml");
      for (const TomlSection& host : file.top().sections("host")) {
        for (const std::string& name : host.texts("names")) found += name + ' ';
        found += host.where() + '\n';
      }
      return found;
    } catch (const UsageError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(read("[[host]]\nnames = [\"a\", \"b\"]\n[[host]]\n"), "a b lab.toml:1\nlab.toml:3\n");
  EXPECT_EQ(read("guest = 1"), "");
  EXPECT_EQ(read("host = 1"), "lab.toml:1: host must be written as [[host]], but is 1");
  EXPECT_EQ(read("[host]"), "lab.toml:1: host must be written as [[host]], but is a section");
  EXPECT_EQ(read("host = [{}, 2]"), "lab.toml:1: host must be written as [[host]], but is 2");
  EXPECT_EQ(read("[[host]]\nnames = \"a\""),
            "lab.toml:2: names in [host] must be a list of texts, but is \"a\"");
  EXPECT_EQ(read("[[host]]\nnames = [\"a\", 2]"),
            "lab.toml:2: names in [host] must be text in quotes, but is 2");
}

TEST(TomlSection, ReadsTheValuesOfATablesParameters) {
  static constexpr std::array kSample = std::to_array<Parameter>({
      {.name = "cores", .type = Count{1, 64}, .usual = 1},
      {.name = "ratio", .type = Real{0, 2}},
      {.name = "odp", .type = Flag{}, .usual = false},
  });
  EXPECT_EQ(names_of(kSample), (std::vector<std::string_view>{"cores", "ratio", "odp"}));
  const TomlFile file = TomlFile::parse("ratio = 1\nodp = 1\nother = 5\n", "lab.toml");
  ParameterValues values(kSample);
  values.set("cores", 5, "before");
  values.set("ratio", 0.5, "before");
  file.top().read(values);
  EXPECT_EQ(values.number("cores"), 5U)
      << "what was given before, unless the section gives another";
  EXPECT_EQ(values.real("ratio"), 1.0);
  EXPECT_EQ(values.where("ratio"), "lab.toml:1");
  EXPECT_TRUE(values.flag("odp"));
  GivenParameters given{{"cores", 5}, {"ratio", 0.5}};
  file.top().read(kSample, given);
  EXPECT_EQ(given, (GivenParameters{{"cores", 5}, {"ratio", 1.0}, {"odp", true}}));
  const TomlFile wrong = TomlFile::parse("odp = 2\n", "lab.toml");
  EXPECT_THROW(wrong.top().read(values), UsageError);
  EXPECT_THROW(wrong.top().read(kSample, given), UsageError);
}

TEST(TomlSection, NamesWhatIsMissing) {
  EXPECT_EQ(message_for("\n[device]"), "lab.toml:1: job is missing; add job = \"...\"");
}

TEST(TomlFile, NamesTheLineThatIsNotToml) {
  EXPECT_EQ(message_for("job = \"x\"\n[device").rfind("lab.toml:2: Error while parsing", 0), 0U);
}

TEST(TomlFile, SaysWhyAFileCannotBeRead) {
  const test::TemporaryDirectory folder(testing::TempDir(), "toml-file");
  const std::string empty = folder.path() / "empty.toml";
  std::ofstream{empty};
  const auto message = [](const std::string& file) -> std::string {
    try {
      TomlFile::read(file);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "was read";
  };
  EXPECT_EQ(message("no/such.toml"), "no/such.toml: there is no such file");
  EXPECT_EQ(message(empty), empty + ": is empty");
  EXPECT_EQ(message(folder.path()), folder.path().string() + ": is a folder; give a file");
  std::ofstream(empty) << "a = 1\n";
  EXPECT_EQ(TomlFile::read(empty).text(), "a = 1\n");
}

}  // namespace
}  // namespace perdura
