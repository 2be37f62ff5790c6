// A result folder whose sweep is not complete, opened to finish it.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/results/identity.h"
#include "harness/results/journal.h"
#include "harness/results/manifest.h"
#include "harness/results/measurement.h"

namespace perdura::harness {

// A point whose run has ended, as the journal keeps it.
struct FinishedPoint {
  std::size_t index = 0;            // in the sweep, from 0, repetitions included
  std::chrono::nanoseconds wall{};  // real time that the run took
  Measurement measurement{};
};

// Records of the journal, behind the identity.
std::string journal_record(const Session& session);
std::string journal_record(const FinishedPoint& point);

std::filesystem::path journal_file(const std::filesystem::path& folder);

// Whether the manifest says that the sweep is running: it has not ended, or its end could not be
// recorded.
bool is_running(const std::filesystem::path& folder);

struct InterruptedSweep {
  Journal journal;
  Identity identity;
  std::filesystem::path directory;  // that was the current one; empty if the journal does not say
  // What the user should know, a line each: tables that are not what was written, and are written
  // anew from the journal; what a damaged journal has lost.
  std::vector<std::string> notes;
};

// Nothing if the sweep is complete. Throws UsageError, with what to do, if the folder holds no
// sweep that can be finished, another process is at work on it, its journal is damaged and not to
// be cut back, or it is complete and its tables are not what was written.
std::optional<InterruptedSweep> open_interrupted(const std::filesystem::path& folder,
                                                 IfDamaged if_damaged = IfDamaged::refuse);

struct JournalContents {
  std::vector<Session> sessions{};
  std::vector<FinishedPoint> points{};
};

// Of a journal that this build wrote, which check_same tells: measurements have no format of their
// own. Throws UsageError if a record makes no sense.
JournalContents contents_of(const InterruptedSweep& sweep, const std::filesystem::path& folder);

}  // namespace perdura::harness
