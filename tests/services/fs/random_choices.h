// Random arguments of operations on a file system. Sizes, names and numbers are few, so that operations
// meet.
#pragma once

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "services/fs/fs.h"
#include "services/fs/model/model_file_system.h"

namespace perdura::fs::test {

class RandomChoices {
 protected:
  explicit RandomChoices(std::uint64_t seed) : random_(seed) {}

  std::uint64_t any(std::uint64_t below) { return random_() % below; }
  InodeNumber inode() {
    for (int tries = 0; tries < 8 && !known_.empty(); ++tries) {
      const InodeNumber number = known_[any(known_.size())];
      if (model_.exists(number)) return number;
    }
    std::erase_if(known_, [&](InodeNumber number) { return !model_.exists(number); });
    return kRootInode;
  }
  InodeNumber directory() {
    for (int tries = 0; tries < 4; ++tries) {
      const InodeNumber number = inode();
      if (model_.attributes(number)->is_directory() || any(16) == 0) return number;
    }
    return kRootInode;
  }
  InodeNumber file() {
    for (int tries = 0; tries < 6; ++tries) {
      const InodeNumber number = inode();
      if (model_.attributes(number)->is_regular() || any(16) == 0) return number;
    }
    return inode();
  }
  std::string name() {
    if (any(50) == 0)
      return std::array<std::string, 4>{"", "..", "a/b", std::string(256, 'x')}[any(4)];
    const char letter = static_cast<char>('a' + any(6));
    if (any(10) == 0) return std::string(200 + any(56), letter);
    return {letter};
  }
  std::vector<std::byte> bytes(std::size_t most) {
    std::vector<std::byte> result(any(4) == 0 ? any(most + 1) : any(200));
    for (std::byte& byte : result) byte = static_cast<std::byte>(random_());
    return result;
  }
  Bytes place() { return any(3) == 0 ? any(10) * kBlock : any(10 * kBlock); }
  std::string extended_name() {
    if (any(30) == 0) return std::string(any(2) * 256, 'n');
    return any(8) == 0 ? std::string(255, 'n')
                       : std::string("user.") + static_cast<char>('a' + any(4));
  }
  NewInode new_inode() {
    static constexpr std::array<std::uint32_t, 10> kTypes{
        S_IFREG, S_IFREG, S_IFREG, S_IFREG, S_IFDIR, S_IFDIR, S_IFDIR, S_IFLNK, S_IFIFO, S_IFCHR};
    NewInode made{.mode = kTypes[any(10)] | static_cast<std::uint32_t>(any(07777)),
                  .uid = static_cast<std::uint32_t>(any(3)),
                  .gid = static_cast<std::uint32_t>(any(3)),
                  .device = any(1000)};
    target_ = std::string(1 + (any(4) == 0 ? any(4095) : any(150)), 't');
    if ((made.mode & S_IFMT) == S_IFLNK) made.target = target_;
    extended_.clear();
    if (any(4) == 0) extended_.push_back({"user.first", bytes(300)});
    if (any(20) == 0) extended_.push_back({"system.posix_acl_access", bytes(3000)});
    made.extended = extended_;
    return made;
  }

  Model model_;  // says which inodes there are
  std::vector<InodeNumber> known_{kRootInode};
  std::mt19937_64 random_;

 private:
  // Those of the inode made last.
  std::string target_;
  std::vector<ExtendedAttribute> extended_;
};

}  // namespace perdura::fs::test
