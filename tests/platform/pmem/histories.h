// Random histories of a node, for tests of PersistenceState, and the memory that they are about.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "platform/pmem/model/persistence_state.h"

namespace perdura::pmem {

inline constexpr Bytes kMemory = 8 * kCacheLine;
inline constexpr PersistenceState::RegionId kRegion = 3;

inline std::vector<PersistenceModel> models() {
  std::vector<PersistenceModel> all;
  for (const auto domain :
       {PersistenceDomain::dmp, PersistenceDomain::mhp, PersistenceDomain::wsp}) {
    for (const bool ddio : {false, true}) {
      for (const auto transport : {Transport::infiniband, Transport::iwarp}) {
        all.push_back({domain, ddio, transport});
      }
    }
  }
  return all;
}

// A state and the memory that it is about.
struct Node {
  explicit Node(PersistenceModel model) : state(model) {
    state.attach(kRegion, Medium::pm, memory.data());
  }
  static std::vector<std::byte> word(std::uint8_t value, Bytes words = 1) {
    return std::vector<std::byte>(words * kWord, std::byte{value});
  }
  void changed(Bytes offset, const std::vector<std::byte>& bytes) {
    std::copy(bytes.begin(), bytes.end(), memory.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  // The whole memory as recovery finds it.
  std::string image(Choices& choices) {
    std::string found(reinterpret_cast<const char*>(memory.data()), memory.size());
    for (const auto& survivor : state.image(choices)) {
      std::memcpy(&found[survivor.place.offset], survivor.bytes.data(), kCacheLine);
    }
    return found;
  }
  std::set<std::string> images() {
    std::set<std::string> all;
    for (Enumerator every; every.next();) all.insert(image(every));
    return all;
  }

  std::vector<std::byte> memory = std::vector<std::byte>(kMemory);
  PersistenceState state;
};

// What a history consists of: told to any number of states alike.
struct Told {
  enum class Kind : std::uint8_t {
    store,
    stream,
    flush,
    clflush,
    fence,
    operation,
    cover,
    completed,
    received,
    seen,
    many,  // durable stores, so many that the state tidies up
  };
  Kind kind = Kind::store;
  std::size_t writer = 0;
  std::size_t connection = 0;
  RemoteKind remote = RemoteKind::posted;
  RemoteFlags flags;
  std::size_t of_connection = 0;  // the operation meant
  Bytes offset = 0;
  Bytes words = 1;
  std::uint8_t value = 0;
  // Who knows more finds fewer images; who has done more may find more.
  bool is_knowledge() const {
    return kind == Kind::flush || kind == Kind::clflush || kind == Kind::fence ||
           kind == Kind::completed || kind == Kind::received || kind == Kind::seen;
  }
};

inline std::vector<Told> random_history(std::uint64_t seed) {
  RandomChoices random(seed);
  std::vector<Told> history;
  std::array<std::vector<RemoteKind>, 2> operations;
  std::size_t changes = 0;
  for (int i = 0; i < 24; ++i) {
    Told told;
    told.writer = random.choose(2);
    told.connection = random.choose(2);
    // Two lines, of two words each.
    told.offset = random.choose(2) * kCacheLine + random.choose(2) * kWord;
    told.words = told.offset % kCacheLine == 0 && random.choose(3) == 0 ? 2 : 1;
    told.value = static_cast<std::uint8_t>(1 + i);
    told.kind = static_cast<Told::Kind>(random.choose(10));
    auto& issued = operations[told.connection];
    switch (told.kind) {
      case Told::Kind::store:
      case Told::Kind::stream:
        if (++changes > 6) continue;
        break;
      case Told::Kind::operation:
        if (++changes > 6) continue;
        told.remote = static_cast<RemoteKind>(random.choose(5));
        told.flags = {random.choose(3) == 0, random.choose(2) == 0};
        issued.push_back(told.remote);
        break;
      case Told::Kind::cover:
        if (random.choose(8) != 0) continue;
        told.kind = Told::Kind::many;
        break;
      case Told::Kind::completed:
      case Told::Kind::received:
        if (issued.empty()) continue;
        told.of_connection = random.choose(issued.size());
        if (told.kind == Told::Kind::received && issued[told.of_connection] != RemoteKind::posted) {
          continue;
        }
        break;
      default:
        break;
    }
    history.push_back(told);
  }
  return history;
}

struct Teller {
  explicit Teller(PersistenceModel model) : node(model) {
    connections = {node.state.connect(), node.state.connect(!model.ddio)};
  }
  void tell(const Told& told) {
    PersistenceState& state = node.state;
    const PersistenceState::RegionAddress place{kRegion, told.offset};
    const auto bytes = Node::word(told.value, told.words);
    const void* writer = &writers[told.writer];
    switch (told.kind) {
      case Told::Kind::store:
        state.store(writer, place, bytes);
        node.changed(told.offset, bytes);
        break;
      case Told::Kind::stream:
        state.stream(writer, place, bytes);
        node.changed(told.offset, bytes);
        break;
      case Told::Kind::flush:
        state.flush(writer, place, told.words * kWord);
        break;
      case Told::Kind::clflush:
        state.flush(writer, place, told.words * kWord, Flush::clflush);
        break;
      case Told::Kind::fence:
        state.fence(writer);
        break;
      case Told::Kind::operation: {
        const auto operation = state.post(connections[told.connection], told.remote, told.flags);
        if (told.remote == RemoteKind::flush_persistence) {
          state.cover(operation, place, told.words * kWord);
        } else if (told.remote == RemoteKind::posted || told.remote == RemoteKind::atomic) {
          state.place(operation, place, bytes);
          node.changed(told.offset, bytes);
        }
        break;
      }
      case Told::Kind::cover:
        break;
      case Told::Kind::completed:
        state.completed(
            {connections[told.connection], static_cast<std::uint32_t>(told.of_connection)});
        break;
      case Told::Kind::received:
        state.received(
            {connections[told.connection], static_cast<std::uint32_t>(told.of_connection)});
        break;
      case Told::Kind::seen:
        state.seen(place, told.words * kWord);
        break;
      case Told::Kind::many:
        for (int i = 0; i < 300; ++i) {
          const PersistenceState::RegionAddress apart{kRegion, 5 * kCacheLine};
          const auto value = Node::word(static_cast<std::uint8_t>(i));
          state.store(&writers[2], apart, value);
          node.changed(apart.offset, value);
          state.flush(&writers[2], apart, kWord);
          state.fence(&writers[2]);
        }
        break;
    }
  }

  Node node;
  std::array<char, 3> writers{};
  std::array<PersistenceState::ConnectionId, 2> connections{};
};

}  // namespace perdura::pmem
