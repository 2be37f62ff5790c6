// The processes that read a copy's file through mappings of their own (shared_readers.h), as the
// process that serves the copy sees them. Nobody reads while the file is not the outcome of whole
// sync points. A reader that ends is not waited for, and one that has not left the pages of a
// checkpoint after two seconds is killed: if it went on later, it might see a sync point in part.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>

#include "preload/shared_readers.h"
#include "services/memory/direct_readers.h"

namespace perdura::preload {

class ReaderProcesses final : public services::DirectReaders {
 public:
  // `primary`: nobody reads the file anymore, since it is the application's; waits until those who
  // have read it as a copy are gone.
  enum class Role : std::uint8_t { copy, primary };
  ReaderProcesses(const std::string& file, Role role);
  ~ReaderProcesses() override;

  bool begin_change() override;
  bool withdraw(std::span<const services::MemoryRange> ranges) override;
  void exclude() override;
  void end_change() override;

 private:
  bool is_anybody_there() const;
  void ask(std::span<const services::MemoryRange> ranges);
  std::optional<std::uint32_t> first_who_has_not_left();
  bool has_ended(std::uint32_t reader);

  std::string file_;
  SharedReadersFile shared_;
  bool is_asked_ = false;
  std::chrono::steady_clock::time_point asked_at_{};
  std::chrono::steady_clock::time_point looked_at_{};  // when readers were last found alive
  struct Watched {
    Process process;
    bool is_killed = false;
  };
  std::array<std::optional<Watched>, SharedReaders::kMost> watched_{};
};

// Called before the process that serves the copy is ended, perhaps in the middle of a checkpoint
// that the calling process will complete: readers wait until then.
void take_over_readers(const std::string& file);

}  // namespace perdura::preload
