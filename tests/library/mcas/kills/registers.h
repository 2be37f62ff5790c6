// What a value of the plugin in registers_plugin.cc is: a number, kept in so many places that a
// change of it takes long, and a few of the last numbers as text, in blocks of the arena that come
// and go. A transaction that was cut off and not undone shows.
#pragma once

#include <sys/types.h>

#include <optional>
#include <sstream>
#include <string>

#include "systems/mcas/containers/list.h"
#include "systems/mcas/containers/vector.h"

namespace perdura::library_test {

class Register {
 public:
  static constexpr Bytes kSize = 16 * KiB;  // of the value

  // The value of a key that was created as zeros. Undoes what was interrupted.
  Register(const systems::mcas::Memory& memory, systems::mcas::ByteRange value)
      : arena_(memory, value), places_(arena_, 0), texts_(arena_, Places::kRootSize) {}
  static bool exists(const systems::mcas::Memory& memory, systems::mcas::ByteRange value) {
    return Arena::exists(memory, value);
  }
  static void format(const systems::mcas::Memory& memory, systems::mcas::ByteRange value) {
    Arena::format(memory, value, {.log = 8 * KiB});
  }

  bool undone() const { return arena_.undone(); }
  std::uint64_t number() const { return places_.empty() ? 0 : places_.get(0); }
  // False if there is no room.
  bool set(std::uint64_t number) {
    return arena_.transact([&] {
      while (places_.size() < kPlaces) places_.push_back(0);
      for (std::uint64_t i = 0; i < kPlaces; ++i) places_.set(i, number);
      texts_.push_front(text_of(number));
      if (texts_.size() > kTexts) texts_.erase(texts_.last());
    });
  }
  // What contradicts itself; empty if nothing does.
  std::string audit() const {
    for (std::uint64_t i = 0; i < places_.size(); ++i) {
      if (places_.get(i) != number()) return "its places have several numbers";
    }
    if (places_.size() != (number() == 0 ? 0 : kPlaces)) return "it has not all places";
    if (std::string problem = texts_.audit(); !problem.empty()) return problem;
    if ((texts_.size() == 0) != (number() == 0)) return "it has a number or a text, but not both";
    if (texts_.size() > 0 && texts_.get(texts_.begin()) != text_of(number())) {
      return "its text is that of another number";
    }
    return arena_.audit([&](auto visit) {
      places_.visit_blocks(visit);
      texts_.visit_blocks(visit);
    });
  }

 private:
  using Arena = systems::mcas::containers::Arena;
  using Places = systems::mcas::containers::Vector<std::uint64_t>;
  using Texts = systems::mcas::containers::List<std::string>;

  static constexpr std::uint64_t kPlaces = 100;
  static constexpr std::uint64_t kTexts = 3;
  static std::string text_of(std::uint64_t number) {
    return std::to_string(number) + std::string(number % 5 * 30, '.');
  }

  Arena arena_;
  Places places_;
  Texts texts_;
};

// What the plugin answers.
struct RegisterAnswer {
  std::uint64_t number = 0;
  pid_t process = 0;    // that has executed the work
  bool undone = false;  // an interrupted transaction was found

  std::string text() const {
    return std::to_string(number) + ' ' + std::to_string(process) + (undone ? " true" : " false");
  }
  // Nothing if the answer says what is wrong.
  static std::optional<RegisterAnswer> of(const std::string& text) {
    RegisterAnswer answer;
    std::istringstream stream(text);
    stream >> answer.number >> answer.process >> std::boolalpha >> answer.undone;
    return stream ? std::optional(answer) : std::nullopt;
  }
};

// The key that comes and goes beside that of a register, with a value of kBesideSize bytes: a
// number that the register has had, or 0.
inline std::string beside(const std::string& key) { return key + " beside"; }
inline constexpr Bytes kBesideSize = 64;

}  // namespace perdura::library_test
