#include "preload/reader.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>

#include "platform/base/error.h"
#include "platform/base/limits.h"
#include "platform/host/os_thread.h"
#include "preload/real_call.h"

namespace perdura::preload {

namespace {

constexpr int kLookAtServer = 50;  // milliseconds

CopyReader* the_reader = nullptr;

std::uintptr_t address_of(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

}  // namespace

void CopyReader::end_process(std::string_view line) {
  const std::string text = fmt::format("perdura mojim: {}\n", line);
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  _exit(2);
}

CopyReader::CopyReader(std::string file) : file_(std::move(file)) {
  struct stat found {};
  if (stat(file_.c_str(), &found) != 0 || !has_state(file_)) return;
  device_ = found.st_dev;
  inode_ = found.st_ino;
  const SharedReadersFile shared(file_);
  const ProcessId self = this_process();
  for (auto& reader : shared->readers) {
    ProcessId former = self;
    reader.compare_exchange_strong(former, 0);
  }
}

bool CopyReader::is_copy(int descriptor) const {
  struct stat its {};
  return fstat(descriptor, &its) == 0 && its.st_ino == inode_ && its.st_dev == device_;
}

// --- registration --------------------------------------------------------------------------------

void CopyReader::register_once() {
  if (is_registered_.load(std::memory_order_acquire)) return;
  const std::lock_guard held(mappings_);
  if (is_registered_) return;
  the_reader = this;
  shared_ = std::make_unique<SharedReadersFile>(file_);
  register_now();
  pmem::serve_faults(serve);
  pthread_atfork([] { the_reader->before_fork(); }, [] { the_reader->after_fork(false); },
                 [] { the_reader->after_fork(true); });
  is_registered_.store(true, std::memory_order_release);
}

void CopyReader::register_now() {
  take_slot();
  start_watching();
}

// Registers this process, for which the server waits from then on.
void CopyReader::take_slot() {
  SharedReaders& shared = **shared_;
  const ProcessId self = this_process();
  for (slot_ = 0; slot_ < SharedReaders::kMost; ++slot_) {
    std::uint32_t ever = shared.ever;
    while (ever <= slot_ && !shared.ever.compare_exchange_weak(ever, slot_ + 1)) {
    }
    ProcessId before = shared.readers[slot_];
    if (before != 0 && !Process(before).has_ended()) continue;
    if (shared.readers[slot_].compare_exchange_strong(before, self)) return;
  }
  throw UsageError(fmt::format("{}: {} processes read it already", file_, SharedReaders::kMost));
}

void CopyReader::start_watching() {
  OsThread([this] { watch(); }, ThreadSignals::blocked).detach();
}

// In a child only the calling thread goes on, and it is here. No other pages have been withdrawn
// from the child's mappings than from its parent's.
void CopyReader::after_fork(bool is_child) {
  if (!is_child) return mappings_.unlock();
  closed_ = 1;
  waiting_ = 0;
  calls_ = 0;
  withdrawn_in_ = 0;
  mappings_.unlock();
  try {
    register_now();
  } catch (const std::exception& error) {
    end_process(problem_text(error));
  }
  wait_until_open();
}

// --- what the server says ------------------------------------------------------------------------

void CopyReader::watch() {
  const SharedReaders& shared = **shared_;
  for (;;) {
    const std::uint32_t sequence = shared.sequence;
    if (sequence % 2 == 0) {
      give_back();
      wait_while(shared.sequence, sequence, kNoLimit);
      continue;
    }
    if (shared.reason == SharedReaders::Reason::primary) end_if_unserved();
    if (sequence != withdrawn_in_) withdraw(sequence);
    wait_while(shared.sequence, sequence, kLookAtServer);
    if (shared.sequence == sequence) end_if_unserved();
  }
}

void CopyReader::end_if_unserved() {
  if (const auto why = why_unreadable(file_, **shared_)) end_process(*why);
}

void CopyReader::withdraw(std::uint32_t sequence) {
  SharedReaders& shared = **shared_;
  // Lets threads that wait in the handler make an access before everything is withdrawn again.
  for (int tries = 0; tries < 10 && closed_ == 0; ++tries) {
    const std::uint32_t waiting = waiting_;
    if (waiting == 0) break;
    wait_while(waiting_, waiting, 1);
  }
  {
    const std::lock_guard held(mappings_);
    closed_ = 1;
    const std::size_t before = withdrawn_.size();
    const std::uint32_t runs = std::min(shared.run_count.load(), SharedReaders::kMostRuns);
    for (std::uint32_t i = 0; i < runs; ++i) {
      withdrawn_.push_back({shared.runs[i].first, shared.runs[i].count});
    }
    for (std::size_t i = before; i < withdrawn_.size(); ++i) set_protection(withdrawn_[i], false);
    withdrawn_in_ = sequence;
  }
  while (const std::uint32_t calls = calls_) wait_while(calls_, calls, kNoLimit);
  shared.slots[slot_].left = sequence;
  wake_all(shared.slots[slot_].left);
}

void CopyReader::give_back() {
  if (closed_ == 0) return;
  {
    const std::lock_guard held(mappings_);
    for (const PageRun& run : withdrawn_) set_protection(run, true);
    withdrawn_.clear();
    closed_ = 0;
  }
  wake_all(closed_);
}

void CopyReader::set_protection(const PageRun& run, bool accessible) {
  for (const MappingEntry& entry : entries_) {
    if (entry.end == 0) continue;
    const std::uint64_t pages = (entry.end - entry.begin) / kReaderPage;
    const std::uint64_t first = std::max(run.first, entry.page.load());
    const std::uint64_t last = std::min(run.first + run.count, entry.page + pages);
    if (first >= last) continue;
    void* const begin = reinterpret_cast<void*>(entry.begin + (first - entry.page) * kReaderPage);
    const Bytes length = (last - first) * kReaderPage;
    if (REAL(mprotect)(begin, length, accessible ? entry.protection.load() : PROT_NONE) != 0) {
      end_process(file_ +
                  ": pages cannot be protected; the process may have as many mappings as "
                  "vm.max_map_count allows");
    }
  }
}

// --- the application's threads -------------------------------------------------------------------

void CopyReader::wait_until_open() {
  while (closed_ != 0) wait_while(closed_, 1, kNoLimit);
}

// More than 1 if a signal handler makes such a call within one that it has interrupted.
thread_local int readings = 0;

CopyReader::Reading::Reading(CopyReader& reader) : reader_(reader) {
  if (++readings > 1) return;
  reader.register_once();
  for (;;) {
    ++reader.calls_;
    if (reader.closed_ == 0) return;
    if (--reader.calls_ == 0) wake_all(reader.calls_);
    reader.wait_until_open();
  }
}

CopyReader::Reading::~Reading() {
  if (--readings > 0) return;
  if (--reader_.calls_ == 0 && reader_.closed_ != 0) wake_all(reader_.calls_);
}

CopyReader::Mapping::Mapping(CopyReader& reader) : reader_(reader) {
  reader.register_once();
  for (;;) {
    held_ = std::unique_lock(reader.mappings_);
    if (reader.closed_ == 0) return;
    held_.unlock();
    reader.wait_until_open();
  }
}

void CopyReader::Mapping::add(const Part& part) {
  ++reader_.changes_;
  enter(part);
  ++reader_.changes_;
}

void CopyReader::Mapping::enter(const Part& part) {
  for (MappingEntry& entry : reader_.entries_) {
    if (entry.end != 0) continue;
    entry.begin = part.begin;
    entry.page = part.page;
    entry.protection = part.protection;
    entry.is_shared = part.is_shared;
    entry.end = part.end;
    return;
  }
  end_process(fmt::format("{}: the program has more than {} mappings of it", reader_.file_,
                          reader_.entries_.size()));
}

std::vector<CopyReader::Mapping::Part> CopyReader::Mapping::remove(std::uintptr_t begin,
                                                                   std::uintptr_t end) {
  std::vector<Part> removed;
  std::vector<Part> rest;
  ++reader_.changes_;
  for (MappingEntry& entry : reader_.entries_) {
    const Part all{entry.begin, entry.end, entry.page, entry.protection, entry.is_shared};
    if (all.end == 0 || all.end <= begin || all.begin >= end) continue;
    const auto part_from = [&](std::uintptr_t first, std::uintptr_t last) {
      Part part = all;
      part.begin = first;
      part.end = last;
      part.page += (first - all.begin) / kReaderPage;
      return part;
    };
    removed.push_back(part_from(std::max(all.begin, begin), std::min(all.end, end)));
    if (all.begin < begin) rest.push_back(part_from(all.begin, begin));
    if (all.end > end) rest.push_back(part_from(end, all.end));
    entry.end = 0;
  }
  for (const Part& part : rest) enter(part);
  ++reader_.changes_;
  std::sort(removed.begin(), removed.end(),
            [](const Part& a, const Part& b) { return a.begin < b.begin; });
  return removed;
}

// True if the program's own mapping at this address allows such an access.
bool CopyReader::allows(std::uintptr_t at, int protection) const {
  for (;;) {
    const std::uint32_t changes = changes_;
    for (const MappingEntry& entry : entries_) {
      if (at < entry.end && at >= entry.begin) return (entry.protection & protection) != 0;
    }
    if (changes % 2 == 0 && changes_ == changes) return false;
  }
}

bool CopyReader::serve(const siginfo_t& fault, unsigned long error) {
  CopyReader& reader = *the_reader;
  const int wanted = (error & pmem::kWriteFault) != 0   ? PROT_WRITE
                     : (error & pmem::kFetchFault) != 0 ? PROT_EXEC
                                                        : PROT_READ;
  if (!reader.allows(address_of(fault.si_addr), wanted)) return false;
  ++reader.waiting_;
  reader.wait_until_open();
  if (--reader.waiting_ == 0) wake_all(reader.waiting_);
  return true;
}

template <class Visit>
void CopyReader::visit(const void* data, std::size_t length, Visit visit) const {
  const std::uintptr_t begin = address_of(data);
  for (const MappingEntry& entry : entries_) {
    const std::uintptr_t first = std::max(entry.begin.load(), begin);
    const std::uintptr_t last = std::min(entry.end.load(), begin + length);
    if (first < last) visit(entry, first, last);
  }
}

bool CopyReader::has(const void* data, std::size_t length) const {
  bool found = false;
  visit(data, length, [&](const MappingEntry&, auto, auto) { found = true; });
  return found;
}

bool CopyReader::has_shared(const void* data, std::size_t length) const {
  bool found = false;
  visit(data, length, [&](const MappingEntry& entry, auto, auto) { found |= entry.is_shared; });
  return found;
}

bool CopyReader::touch(const void* data, std::size_t length) const {
  bool found = false;
  visit(data, length, [&](const MappingEntry& entry, std::uintptr_t first, std::uintptr_t last) {
    if ((entry.protection & PROT_READ) == 0) return;
    found = true;
    for (std::uintptr_t at = first; at < last; at = (at / kReaderPage + 1) * kReaderPage) {
      static_cast<void>(*reinterpret_cast<const volatile char*>(at));
    }
  });
  return found;
}

}  // namespace perdura::preload
