#include "systems/mcas/ado/plugins/shared_object.h"

#include <elf.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <vector>

namespace perdura::systems::mcas::ado {

namespace {

class ElfFile {
 public:
  explicit ElfFile(const std::string& path) : stream_(path, std::ios::binary | std::ios::ate) {
    if (stream_) size_ = static_cast<std::uint64_t>(stream_.tellg());
  }
  bool is_open() const { return stream_.is_open(); }

  // The object at an offset; nothing if it does not lie within the file.
  template <class T>
  std::optional<T> at(std::uint64_t offset) {
    T object;
    if (!read(offset, reinterpret_cast<char*>(&object), sizeof object)) return std::nullopt;
    return object;
  }
  // Returns true if the text, with a terminating zero, is at this offset.
  bool has_text(std::uint64_t offset, std::string_view text) {
    std::vector<char> found(text.size() + 1);
    return read(offset, found.data(), found.size()) && found.back() == 0 &&
           std::string_view(found.data()) == text;
  }

 private:
  bool read(std::uint64_t offset, char* into, std::uint64_t length) {
    if (offset > size_ || length > size_ - offset) return false;
    stream_.clear();
    stream_.seekg(static_cast<std::streamoff>(offset));
    return static_cast<bool>(stream_.read(into, static_cast<std::streamsize>(length)));
  }

  std::ifstream stream_;
  std::uint64_t size_ = 0;
};

// The machine of this program, as an ELF constant.
std::optional<Elf64_Half> this_machine() {
  const auto header = ElfFile("/proc/self/exe").at<Elf64_Ehdr>(0);
  return header ? std::optional(header->e_machine) : std::nullopt;
}

bool defines(ElfFile& file, const Elf64_Ehdr& header, std::string_view symbol) {
  const auto section = [&](std::uint64_t number) {
    return file.at<Elf64_Shdr>(header.e_shoff + number * sizeof(Elf64_Shdr));
  };
  for (std::uint64_t number = 0; number < header.e_shnum; ++number) {
    const auto symbols = section(number);
    if (!symbols) return false;
    if (symbols->sh_type != SHT_DYNSYM) continue;
    const auto names = section(symbols->sh_link);
    if (!names) return false;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols->sh_size;
         at += sizeof(Elf64_Sym)) {
      const auto entry = file.at<Elf64_Sym>(symbols->sh_offset + at);
      if (!entry) return false;
      if (entry->st_shndx == SHN_UNDEF) continue;
      if (file.has_text(names->sh_offset + entry->st_name, symbol)) return true;
    }
  }
  return false;
}

}  // namespace

std::string why_not_exported(const std::string& path, std::string_view symbol) {
  ElfFile file(path);
  if (!file.is_open()) return fmt::format("cannot be read: {}", std::strerror(errno));
  const auto header = file.at<Elf64_Ehdr>(0);
  const bool shared_object = header && std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
                             header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_type == ET_DYN &&
                             header->e_shentsize == sizeof(Elf64_Shdr) &&
                             header->e_machine == this_machine();
  if (!shared_object) return "is no shared object for this machine";
  return defines(file, *header, symbol) ? "" : fmt::format("does not export '{}'", symbol);
}

}  // namespace perdura::systems::mcas::ado
