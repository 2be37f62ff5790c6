// Measures what registering real files with the RDMA device of this host costs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "platform/base/units.h"

namespace perdura::bench {

// Maps files and registers each by itself, for READs (ibv_reg_mr), one after the other. Their pages
// are in memory before; only the registration is timed.
class FileRegistration {
 public:
  // `device`: as `ibv_devices` names it; empty: any whose port is active.
  explicit FileRegistration(const std::string& device);
  ~FileRegistration();
  FileRegistration(const FileRegistration&) = delete;
  FileRegistration& operator=(const FileRegistration&) = delete;

  // Registers at most kMost bytes of all files together; later ones are left out.
  void add(const std::filesystem::path& file, Bytes size);
  // One line: what it took and how many files were left out, or why nothing was registered.
  std::string text() const;

 private:
  static constexpr Bytes kMost = GiB;
  struct OpenDevice;

  std::unique_ptr<OpenDevice> device_;
  std::string problem_;         // why there is no device, or a file was refused
  std::uint64_t left_out_ = 0;  // files that could not be mapped, or came after kMost
  std::uint64_t files_ = 0;
  Bytes bytes_ = 0;
  Picoseconds time_{};
};

}  // namespace perdura::bench
