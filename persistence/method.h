// Methods of remote persistence, as data: taxonomy.methods has all of them, and which one "Correct,
// Fast Remote Persistence" uses on which configuration of the responder (Tables 1 to 3).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/pmem/model/persistence.h"
#include "platform/pmem/model/program.h"

namespace perdura::persistence {

// One update "a", or an update "b" that must not be persistent before "a" is.
enum class Update : std::uint8_t { single, ordered };
// What carries the update.
enum class Carrier : std::uint8_t { write, write_immediate, send };

inline constexpr std::array kUpdates{Update::single, Update::ordered};
inline constexpr std::array kCarriers{Carrier::write, Carrier::write_immediate, Carrier::send};

std::string_view to_string(Update update);
std::string_view to_string(Carrier carrier);  // "write", "write-imm", "send"
// What a step of a method is there for, in a few words.
std::string_view purpose(pmem::StepKind kind);

struct Method {
  std::string name;
  Update update = Update::single;
  Carrier carrier = Carrier::write;
  pmem::Program program;

  // The requester's steps, and the responder's: none if its CPU takes no part.
  const std::vector<pmem::Step>& requester() const;
  const std::vector<pmem::Step>& responder() const;
  bool uses(pmem::StepKind kind) const;
};

// A responder (Table 1).
struct Configuration {
  pmem::PersistenceModel model;
  pmem::Medium receive_buffers = pmem::Medium::dram;

  friend bool operator==(const Configuration&, const Configuration&) = default;
};
// "dmp ddio pm", with " iwarp" if it is.
std::string to_string(const Configuration& configuration);
// The twelve of Table 1, in its order.
std::vector<Configuration> configurations(pmem::Transport transport = pmem::Transport::infiniband);

// What is known of a responder, in the words of options and experiments; empty: not known.
struct StatedConfiguration {
  std::string domain;           // dmp, mhp, wsp
  std::string ddio;             // on, off
  std::string receive_buffers;  // dram, pm
  std::string transport;        // ib, roce, iwarp
};
// All that it leaves open; on InfiniBand and iWARP, if the transport is.
std::vector<Configuration> configurations(const StatedConfiguration& stated);

// All methods, in the order of the file.
const std::vector<Method>& methods();
// Throws UsageError that names what is known.
const Method& find_method(std::string_view name);
// The cell of Table 2 or 3.
const Method& method_of_paper(const Configuration& configuration, Update update, Carrier carrier);

// A method of a user's: steps as in taxonomy.methods, with or without a line "method NAME: ...". An
// update is ordered if there is a "b". Throws pmem::ProgramError with line and column.
Method read_method(std::string_view text, std::string_view name);

// FLUSH for visibility emulated by READ (section 3.4), for devices without it.
Method with_read_for_flush(Method method);
// In results: the name, with " (read)" if READ takes the place of its FLUSH.
std::string name_in_results(const Method& method, bool read_for_flush);

}  // namespace perdura::persistence
