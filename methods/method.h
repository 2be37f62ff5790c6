// Methods of remote persistence, as data. The file taxonomy.methods lists all of them, and says
// which one "Correct, Fast Remote Persistence" uses on which configuration of the responder (Tables
// 1 to 3).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/fabric/needs.h"
#include "platform/pmem/model/persistence.h"
#include "platform/pmem/model/program.h"

namespace perdura::methods {

// `single`: one update "a". `ordered`: also an update "b", which must not be persistent before "a"
// is. `publish`: "a" is a block and "b" the word that links it; readers of other connections follow
// the link, and must not rely on a block or a link that a power failure can still take back.
enum class Update : std::uint8_t { single, ordered, publish };
// The operation that carries the update's data.
enum class Carrier : std::uint8_t { write, write_immediate, send };

inline constexpr std::array kUpdates{Update::single, Update::ordered, Update::publish};
// The updates in Tables 2 and 3.
inline constexpr std::array kUpdatesOfPaper{Update::single, Update::ordered};
inline constexpr std::array kCarriers{Carrier::write, Carrier::write_immediate, Carrier::send};

std::string_view to_string(Update update);
std::string_view to_string(Carrier carrier);  // "write", "write-imm", "send"

// The operation that sets the link of Update::publish. CAS serves any number of writers, a WRITE or
// ATOMIC WRITE only one at a time.
enum class Link : std::uint8_t { cas, write };
inline constexpr std::array kLinks{Link::cas, Link::write};
std::string_view to_string(Link link);

// The duty of a reader before it relies on a link that it has read (Update::publish).
enum class ReadersDuty : std::uint8_t {
  nothing,  // whatever it sees is durable
  persist,  // make the link durable, every time
  help,     // if the link is marked: make it durable and remove the mark, or wait
  wait,     // if the link is marked: wait until the mark is gone
};
std::string_view to_string(ReadersDuty duty);  // a sentence

// The purpose of a step, in a few words.
std::string_view purpose(pmem::StepKind kind);

struct Method {
  std::string name;
  Update update = Update::single;
  Carrier carrier = Carrier::write;
  pmem::Program program;

  // The steps of the requester, and those of the responder, which are none if its CPU takes no
  // part.
  const std::vector<pmem::Step>& requester() const;
  const std::vector<pmem::Step>& responder() const;
  // For Update::publish: the steps of a reader, and those of the responder on its connection.
  const std::vector<pmem::Step>& reader() const;
  const std::vector<pmem::Step>& responder_of_reader() const;
  bool uses(pmem::StepKind kind) const;

  // For Update::publish only.
  Link link() const;
  // True if the method marks a link that may not be durable yet.
  bool marks() const;
  ReadersDuty readers_duty() const;

  // The operations that it needs from the devices of both sides.
  fabric::DeviceNeeds needs() const;
};

// With Update::publish and a method that marks links, "b" has the value 1 while it is marked, and a
// greater one once an agent has removed the mark.
constexpr bool is_unmarked(const pmem::Step::VariableChange& change) {
  return change.variable == 1 && change.value > 1;
}

// The role of an agent of a method. A reader has a connection of its own, on which the responder
// executes separate steps.
enum class Role : std::uint32_t { writer, reader };
Role role_of(const pmem::Agent& agent);
// "requester", "responder", "reader", "responder of the reader".
std::string_view name_of(const pmem::Agent& agent);

// The configuration of a responder (Table 1).
struct Configuration {
  pmem::PersistenceModel model;
  pmem::Medium receive_buffers = pmem::Medium::dram;

  friend bool operator==(const Configuration&, const Configuration&) = default;
};
// "dmp ddio pm", followed by " iwarp" on iWARP.
std::string to_string(const Configuration& configuration);
// The twelve configurations of Table 1, in its order.
std::vector<Configuration> configurations(pmem::Transport transport = pmem::Transport::infiniband);

// The known properties of a responder, in the words of options and experiments. Empty: unknown.
struct StatedConfiguration {
  std::string domain;           // dmp, mhp, wsp
  std::string ddio;             // on, off
  std::string receive_buffers;  // dram, pm
  std::string transport;        // ib, roce, iwarp
};
// All configurations that match; for both InfiniBand and iWARP if the transport is unknown.
std::vector<Configuration> configurations(const StatedConfiguration& stated);

// All methods, in the order of the file.
const std::vector<Method>& methods();
// Throws UsageError, which lists the known methods, if none has this name.
const Method& find_method(std::string_view name);
// The method in a cell of Table 2 or 3.
const Method& method_of_paper(const Configuration& configuration, Update update, Carrier carrier);

// A user-defined method: steps as in taxonomy.methods, with or without a line "method NAME: ...".
// It is for ordered updates if it has a "b", and for publishing if it also has a reader,
// "requester 2". Throws pmem::ProgramError with line and column.
Method read_method(std::string_view text, std::string_view name);
// The text of a method, from which read_method() makes the same one.
std::string to_text(const Method& method);

// The method with READ in place of FLUSH for visibility (section 3.4), for devices without FLUSH.
// An atomic may overtake a READ in flight, but not a FLUSH (platform/fabric/order/ordering.h), so an
// atomic that follows a READ is fenced.
Method with_read_for_flush(Method method);
// The paper's emulation, which measures what a method would take on a device with FLUSH: the READ
// stands for the FLUSH, and an ordered update's ATOMIC WRITE follows it without a fence. The method
// itself is then right only on a device that executes READs and atomics in order.
Method with_read_timed_as_flush(Method method);
// The name of a method in results, with " (read)" if READ emulates its FLUSH.
std::string name_in_results(const Method& method, bool read_for_flush);

}  // namespace perdura::methods
