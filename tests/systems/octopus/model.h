// The specification of systems/octopus, limits included: the tree of paths that each operation leaves.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "systems/octopus/file_system.h"
#include "systems/octopus/octopus.h"
#include "tests/services/fs/home.h"

namespace perdura::systems::octopus::test {

using Bytestring = std::vector<std::byte>;

struct Limits {
  std::size_t paths = ~std::size_t{0};  // the root included
  std::size_t entries = 60;
  Bytes extent = 64 * KiB;
};

class Model {
 public:
  struct Path {
    bool is_directory = false;
    Bytestring data{};
    std::uint64_t modified = 0;
    bool operator==(const Path&) const = default;
  };

  explicit Model(const Limits& limits = {}) : limits_(limits) { paths_[""].is_directory = true; }

  const std::map<std::string, Path>& paths() const { return paths_; }
  bool operator==(const Model& other) const { return paths_ == other.paths_; }

  // 0: done.
  std::errc create(const std::string& path, bool is_directory, std::uint64_t now) {
    if (paths_.contains(path)) return std::errc::file_exists;
    const auto parent = paths_.find(parent_of(path));
    if (parent == paths_.end()) return std::errc::no_such_file_or_directory;
    if (!parent->second.is_directory) return std::errc::not_a_directory;
    if (paths_.size() == limits_.paths || children(parent->first).size() == limits_.entries) {
      return std::errc::no_space_on_device;
    }
    parent->second.modified = now;
    paths_[path] = {is_directory, {}, now};
    return {};
  }
  std::errc remove(const std::string& path, bool is_directory, std::uint64_t now) {
    if (path.empty()) return std::errc::device_or_resource_busy;
    const auto found = paths_.find(path);
    if (found == paths_.end()) return std::errc::no_such_file_or_directory;
    if (found->second.is_directory != is_directory) {
      return is_directory ? std::errc::not_a_directory : std::errc::is_a_directory;
    }
    if (!children(path).empty()) return std::errc::directory_not_empty;
    paths_.erase(found);
    paths_[parent_of(path)].modified = now;
    return {};
  }
  std::errc write(const std::string& path, Bytes offset, const Bytestring& data,
                  std::uint64_t now) {
    const std::errc error = file(path);
    if (error != std::errc{}) return error;
    if (offset + data.size() > limits_.extent) return std::errc::file_too_large;
    Path& found = paths_[path];
    if (!data.empty() && offset + data.size() > found.data.size()) {
      found.data.resize(offset + data.size());
      found.modified = now;
    }
    std::copy(data.begin(), data.end(),
              found.data.begin() + (data.empty() ? 0 : static_cast<std::ptrdiff_t>(offset)));
    return {};
  }
  std::errc read(const std::string& path, Bytes offset, Bytes length, Bytestring& data) const {
    const std::errc error = file(path);
    if (error != std::errc{}) return error;
    const Bytestring& all = paths_.at(path).data;
    const Bytes from = std::min<Bytes>(offset, all.size());
    const Bytes to = from + std::min<Bytes>(length, all.size() - from);
    data.assign(all.begin() + static_cast<std::ptrdiff_t>(from),
                all.begin() + static_cast<std::ptrdiff_t>(to));
    return {};
  }
  std::errc set_times(const std::string& path, std::uint64_t now) {
    const auto found = paths_.find(path);
    if (found == paths_.end()) return std::errc::no_such_file_or_directory;
    found->second.modified = now;
    return {};
  }
  // Sorted by name.
  std::vector<ListedPath> children(const std::string& directory) const {
    std::vector<ListedPath> found;
    for (const auto& [path, what] : paths_) {
      if (path.empty() || parent_of(path) != directory) continue;
      found.push_back({path.substr(path.rfind('/') + 1), what.is_directory});
    }
    return found;
  }
  std::errc file(const std::string& path) const {
    const auto found = paths_.find(path);
    if (found == paths_.end()) return std::errc::no_such_file_or_directory;
    return found->second.is_directory ? std::errc::is_a_directory : std::errc{};
  }

  static std::string parent_of(const std::string& path) {
    const auto slash = path.rfind('/');
    return slash == path.npos ? "" : path.substr(0, slash);
  }

 private:
  Limits limits_;
  std::map<std::string, Path> paths_;
};

template <class T>
std::errc error_of(const fs::Result<T>& result) {
  return result ? std::errc{} : result.error();
}

// The client finds exactly the paths of the model below `directory`, with their contents.
inline Task<> expect_tree(Client& client, const Model& model, std::string directory = "") {
  auto listed = co_await client.list(directory);
  EXPECT_EQ(error_of(listed), std::errc{}) << directory;
  if (!listed) co_return;
  std::sort(listed->begin(), listed->end(),
            [](const ListedPath& a, const ListedPath& b) { return a.name < b.name; });
  EXPECT_EQ(*listed, model.children(directory)) << directory;
  for (const ListedPath& child : model.children(directory)) {
    const std::string path = directory.empty() ? child.name : directory + "/" + child.name;
    const Model::Path& expected = model.paths().at(path);
    const auto found = co_await client.stat(path);
    EXPECT_EQ(error_of(found), std::errc{}) << path;
    if (!found) continue;
    EXPECT_EQ(found->is_directory, expected.is_directory) << path;
    EXPECT_EQ(found->modified, expected.modified) << path;
    EXPECT_EQ(found->size, expected.data.size()) << path;
    if (expected.is_directory) {
      co_await expect_tree(client, model, path);
      continue;
    }
    Bytestring data(expected.data.size() + 1);
    const auto read = co_await client.read(path, 0, data);
    EXPECT_EQ(error_of(read), std::errc{}) << path;
    data.resize(read.value_or(0));
    EXPECT_TRUE(data == expected.data) << path;
  }
}

// Random operations on paths below a prefix, with few names, so that they meet.
class RandomPaths {
 public:
  RandomPaths(Client& client, Model& model, std::string prefix, std::uint32_t seed)
      : client_(client), model_(model), prefix_(std::move(prefix)), random_(seed) {}

  // One operation on the file system and the model, which must agree.
  Task<> step() {
    const std::string path = some_path();
    const std::uint64_t now = ++now_;
    switch (random_() % 12) {
      case 0:
      case 1:
        agree("create", path, error_of(co_await client_.create(path, now)),
              model_.create(path, false, now));
        break;
      case 2:
      case 3:
        agree("mkdir", path, error_of(co_await client_.make_directory(path, now)),
              model_.create(path, true, now));
        break;
      case 4:
        agree("unlink", path, error_of(co_await client_.unlink(path, now)),
              model_.remove(path, false, now));
        break;
      case 5:
        agree("rmdir", path, error_of(co_await client_.remove_directory(path, now)),
              model_.remove(path, true, now));
        break;
      case 6:
      case 7:
        co_await write(path, now);
        break;
      case 8:
        co_await append(path, now);
        break;
      case 9:
        agree("utimens", path, error_of(co_await client_.set_times(path, now)),
              model_.set_times(path, now));
        break;
      case 10:
        co_await read(path);
        break;
      default:
        co_await look(path);
    }
  }

 private:
  std::string some_path() {
    std::string path = prefix_;
    const std::uint32_t depth = 1 + random_() % 3;
    for (std::uint32_t i = 0; i < depth; ++i) {
      if (!path.empty()) path += '/';
      path += static_cast<char>('a' + random_() % 5);
      // Some names span several words, and some paths several lines.
      if (random_() % 8 == 0) path += std::string(60, 'x');
    }
    return random_() % 64 == 0 ? prefix_ : path;
  }
  Bytes some_size(Bytes most) {
    return random_() % 8 == 0 ? random_() % 2 : random_() % (random_() % 4 == 0 ? most : 700);
  }
  Bytestring some_data() {
    Bytestring data(some_size(20 * KiB));
    for (std::byte& byte : data) byte = static_cast<std::byte>(1 + random_() % 255);
    return data;
  }
  Task<> write(const std::string& path, std::uint64_t now) {
    const Bytes offset = some_size(70 * KiB);
    const Bytestring data = some_data();
    agree("write", path, error_of(co_await client_.write(path, offset, data, now)),
          model_.write(path, offset, data, now));
  }
  Task<> append(const std::string& path, std::uint64_t now) {
    const Bytestring data = some_data();
    const auto where = co_await client_.append(path, data, now);
    const auto found = model_.paths().find(path);
    const Bytes end = found == model_.paths().end() ? 0 : found->second.data.size();
    agree("append", path, error_of(where), model_.write(path, end, data, now));
    EXPECT_EQ(where.value_or(end), end);
  }
  Task<> read(const std::string& path) {
    const Bytes offset = some_size(70 * KiB);
    Bytestring found(some_size(70 * KiB));
    Bytestring expected;
    const std::errc error = model_.read(path, offset, found.size(), expected);
    const auto read = co_await client_.read(path, offset, found);
    agree("read", path, error_of(read), error);
    found.resize(read.value_or(0));
    EXPECT_TRUE(found == expected) << path;
  }
  Task<> look(const std::string& path) {
    const auto found = co_await client_.stat(path);
    const auto expected = model_.paths().find(path);
    EXPECT_EQ(found.has_value(), expected != model_.paths().end()) << path;
    if (found && expected != model_.paths().end()) {
      EXPECT_EQ(found->is_directory, expected->second.is_directory) << path;
      EXPECT_EQ(found->size, expected->second.data.size()) << path;
    }
    if (const auto synced = co_await client_.sync(path); !found) {
      EXPECT_EQ(error_of(synced), std::errc::no_such_file_or_directory) << path;
    }
  }
  static void agree(const char* what, const std::string& path, std::errc found,
                    std::errc expected) {
    EXPECT_EQ(found, expected) << what << " '" << path
                               << "': " << std::make_error_code(found).message() << ", expected "
                               << std::make_error_code(expected).message();
  }

  Client& client_;
  Model& model_;
  std::string prefix_;
  std::mt19937 random_;
  std::uint64_t now_ = 1'000'000;
};

// A client of the file system of `home`, once it serves.
inline Task<std::unique_ptr<Client>> client_of(fs::test::Home& home, Thread& thread) {
  const auto files = co_await home.mount(thread);
  co_return static_cast<FileSystem&>(*files).connect(thread);
}

}  // namespace perdura::systems::octopus::test
