// A result folder with an incomplete sweep, opened to finish it.
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

// A point that has been run, as the journal stores it.
struct FinishedPoint {
  std::size_t index = 0;            // position in the sweep, from 0, repetitions included
  std::chrono::nanoseconds wall{};  // real time that it took to run
  Measurement measurement{};
};

// The journal's records after the first, which is the identity.
std::string journal_record(const ProgramStart& session);
std::string journal_record(const FinishedPoint& point);

std::filesystem::path journal_file(const std::filesystem::path& folder);

// True if the manifest says that the sweep is running: it has not ended, or its end could not be
// recorded.
bool is_running(const std::filesystem::path& folder);

struct InterruptedSweep {
  Journal journal;
  Identity identity;
  // The session's current folder; empty if the journal does not have it.
  std::filesystem::path directory;
  // Messages for the user, one line each: tables that are not what was written, and are rewritten
  // from the journal; what a damaged journal has lost.
  std::vector<std::string> notes;
};

// Returns nullopt if the sweep is complete. Throws UsageError, with advice, if the folder has no
// sweep that can be finished, if another process is running it, if its journal is damaged and must
// not be cut back, or if it is complete but its tables are not what was written.
std::optional<InterruptedSweep> open_interrupted(const std::filesystem::path& folder,
                                                 IfDamaged if_damaged = IfDamaged::refuse);

struct JournalContents {
  std::vector<ProgramStart> sessions{};
  std::vector<FinishedPoint> points{};
};

// Parses the records of a journal. It must have been written by this build, as check_same()
// verifies: measurements have no format of their own. Throws UsageError if a record is malformed.
JournalContents contents_of(const InterruptedSweep& sweep, const std::filesystem::path& folder);

}  // namespace perdura::harness
