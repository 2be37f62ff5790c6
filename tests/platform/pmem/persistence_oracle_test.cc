// PersistenceState against a second reading of the rules: written as relations between changes,
// with no thought of speed, over all subsets of what a random history changes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/platform/pmem/histories.h"

namespace perdura::pmem {
namespace {

class Oracle {
 public:
  explicit Oracle(PersistenceModel model) : model_(model) {}

  void tell(const Told& told) {
    ++now_;
    Change change;
    change.at = now_;
    change.offset = told.offset;
    change.words = told.words;
    change.value = told.value;
    change.writer = told.writer;
    auto& operations = operations_[told.connection];
    switch (told.kind) {
      case Told::Kind::store:
        change.kind = Change::Kind::store;
        change.cached = true;
        changes_.push_back(change);
        see(changes_.back());
        break;
      case Told::Kind::stream:
        change.kind = Change::Kind::stream;
        change.waits_for[told.writer] = true;
        changes_.push_back(change);
        break;
      case Told::Kind::flush:
      case Told::Kind::clflush:
        for (Change& other : changes_) {
          const bool touched = other.line() == told.offset / kCacheLine;
          if (!touched || !other.visible || other.kind == Change::Kind::stream) continue;
          other.waits_for[told.writer] = true;
          if (told.kind == Told::Kind::clflush && other.clflushed_at == 0) {
            other.clflushed_at = now_;
            other.clflushed_by = told.writer;
          }
        }
        break;
      case Told::Kind::fence:
        for (Change& other : changes_) {
          if (other.waits_for[told.writer]) other.durable = true;
          other.waits_for[told.writer] = false;
        }
        break;
      case Told::Kind::operation: {
        Operation operation;
        operation.kind = told.remote;
        operation.relaxed = told.flags.relaxed;
        operation.fenced = told.flags.fenced;
        operation.at = now_;
        operation.offset = told.offset;
        operation.words = told.words;
        operations.push_back(operation);
        if (told.remote != RemoteKind::posted && told.remote != RemoteKind::atomic) break;
        change.kind = Change::Kind::device;
        change.connection = told.connection;
        change.index = operations.size() - 1;
        change.cached = model_.ddio == (told.connection == 0);
        changes_.push_back(change);
        break;
      }
      case Told::Kind::completed:
        for (std::size_t i = 0; i <= told.of_connection; ++i) complete(told.connection, i);
        break;
      case Told::Kind::received:
        for (Change& other : changes_) {
          const bool told_of = other.kind == Change::Kind::device &&
                               other.connection == told.connection &&
                               other.index <= told.of_connection &&
                               (operations[other.index].kind == RemoteKind::posted ||
                                in_order(told.connection, other.index, told.of_connection));
          if (told_of) see(other);
        }
        break;
      case Told::Kind::seen:
        for (Change& seen : changes_) {
          if (seen.kind != Change::Kind::device || seen.visible) continue;
          for (Bytes word = told.offset; word < told.offset + told.words * kWord; word += kWord) {
            if (word >= seen.offset && word < seen.offset + seen.words * kWord) {
              seen.seen.insert(word);
            }
          }
          if (seen.seen.size() < seen.words) continue;
          for (Change& other : changes_) {
            if (&other == &seen ||
                (other.kind == Change::Kind::device && other.connection == seen.connection &&
                 in_order(seen.connection, other.index, seen.index))) {
              see(other);
            }
            if (was_pushed_before(other, seen)) other.durable = true;
          }
        }
        break;
      case Told::Kind::cover:
      case Told::Kind::many:
        break;
    }
  }

  // All images of the memory that has seen all changes.
  std::set<std::string> images() {
    for (bool more = true; more;) {
      more = false;
      for (const Change& later : changes_) {
        for (Change& earlier : changes_) {
          if (later.durable && !earlier.durable && must_precede(earlier, later)) {
            earlier.durable = more = true;
          }
        }
      }
    }
    std::size_t words = 0;
    for (const Change& change : changes_) words += change.words;
    std::set<std::string> all;
    for (std::size_t kept = 0; kept < std::size_t{1} << words; ++kept) {
      if (!allowed(kept)) continue;
      std::string image(kMemory, '\0');
      std::size_t bit = 0;
      for (const Change& change : changes_) {
        for (Bytes word = 0; word < change.words; ++word, ++bit) {
          if ((kept >> bit & 1) == 0) continue;
          std::fill_n(&image[change.offset + word * kWord], kWord, static_cast<char>(change.value));
        }
      }
      all.insert(std::move(image));
    }
    return all;
  }

 private:
  struct Change {
    enum class Kind : std::uint8_t { store, stream, device };
    Kind kind = Kind::store;
    std::size_t at = 0;
    Bytes offset = 0;
    Bytes words = 1;
    std::uint8_t value = 0;
    std::size_t writer = 0;
    std::size_t connection = 0;
    std::size_t index = 0;
    bool cached = false;
    std::set<Bytes> seen;  // words, by somebody
    bool visible = false;
    std::size_t visible_at = 0;
    bool durable = false;
    std::array<bool, 2> waits_for{};  // the fence of a writer
    std::size_t clflushed_at = 0;
    std::size_t clflushed_by = 0;
    Bytes line() const { return offset / kCacheLine; }
  };
  struct Operation {
    RemoteKind kind = RemoteKind::posted;
    bool relaxed = false;
    bool fenced = false;
    bool completed = false;
    std::size_t at = 0;
    Bytes offset = 0;  // what a FLUSH for persistence names
    Bytes words = 0;
  };

  static bool holds(Bytes offset, Bytes words, const Change& change) {
    return change.offset >= offset &&
           change.offset + change.words * kWord <= offset + words * kWord;
  }
  void see(Change& change) {
    if (!change.visible) change.visible_at = now_;
    change.visible = true;
    if (model_.domain != PersistenceDomain::dmp) change.durable = true;
  }

  // Whether an operation takes effect before another one of its connection in any case.
  bool in_order(std::size_t connection, std::size_t first, std::size_t second) const {
    const auto& operations = operations_[connection];
    if (first >= second) return false;
    const Operation& earlier = operations[first];
    const Operation& later = operations[second];
    // A READ never overtakes an earlier operation. Atomics and FLUSHes keep the order among
    // themselves and overtake READs only.
    if (later.kind == RemoteKind::read) return true;
    if (later.kind != RemoteKind::posted && earlier.kind != RemoteKind::read) return true;
    if (earlier.kind == RemoteKind::posted && !earlier.relaxed && !later.relaxed) return true;
    // A fenced operation waits until each earlier READ, atomic and FLUSH has completed, and then all
    // operations before that one have taken effect, too.
    for (std::size_t fenced = first + 1; fenced <= second; ++fenced) {
      if (!operations[fenced].fenced) continue;
      for (std::size_t waited = first; waited < fenced; ++waited) {
        if (operations[waited].kind != RemoteKind::posted) return true;
      }
    }
    return false;
  }

  bool pushes(const Operation& operation, const Change& change) const {
    return ((operation.kind == RemoteKind::read || operation.kind == RemoteKind::flush) &&
            !change.cached) ||
           (operation.kind == RemoteKind::flush_persistence &&
            holds(operation.offset, operation.words, change));
  }

  void complete(std::size_t connection, std::size_t index) {
    Operation& operation = operations_[connection][index];
    if (operation.completed) return;
    operation.completed = true;
    for (Change& change : changes_) {
      const bool before = change.kind == Change::Kind::device && change.connection == connection &&
                          change.index <= index;
      const bool is_posted =
          before && operations_[connection][change.index].kind == RemoteKind::posted;
      const bool named = operation.kind == RemoteKind::flush_persistence &&
                         holds(operation.offset, operation.words, change);
      switch (operation.kind) {
        case RemoteKind::posted:
          if (is_posted && model_.domain == PersistenceDomain::wsp &&
              model_.transport == Transport::infiniband) {
            change.durable = true;
          }
          break;
        case RemoteKind::read:
        case RemoteKind::flush:
        case RemoteKind::atomic:
          if (before) see(change);
          break;
        case RemoteKind::flush_persistence:
          if (before && named) see(change);
          if (named && change.kind != Change::Kind::stream && change.visible &&
              change.visible_at < operation.at) {
            change.durable = true;
          }
          break;
      }
      if (before && pushes(operation, change)) change.durable = true;
    }
  }

  // Whether no part of one can be durable before all of the other is.
  bool must_precede(const Change& earlier, const Change& later) const {
    if (earlier.at >= later.at) return false;
    const bool same_connection = earlier.kind == Change::Kind::device &&
                                 later.kind == Change::Kind::device &&
                                 earlier.connection == later.connection;
    const bool ordered =
        same_connection && in_order(earlier.connection, earlier.index, later.index);
    if (earlier.line() == later.line() && earlier.cached && later.cached &&
        (earlier.visible || ordered)) {
      return true;
    }
    if (earlier.clflushed_at != 0 && later.kind == Change::Kind::store &&
        later.writer == earlier.clflushed_by && later.at > earlier.clflushed_at) {
      return true;
    }
    if (!same_connection) return false;
    if (model_.domain != PersistenceDomain::dmp) return ordered;
    return was_pushed_before(earlier, later);
  }

  // Whether an operation between the two of them has pushed the earlier one before the later one
  // took effect.
  bool was_pushed_before(const Change& earlier, const Change& later) const {
    if (earlier.kind != Change::Kind::device || later.kind != Change::Kind::device ||
        earlier.connection != later.connection) {
      return false;
    }
    const auto& operations = operations_[earlier.connection];
    for (std::size_t push = earlier.index + 1; push < later.index; ++push) {
      if (pushes(operations[push], earlier) && in_order(earlier.connection, push, later.index)) {
        return true;
      }
    }
    return false;
  }

  bool allowed(std::size_t kept) const {
    std::vector<std::size_t> of(changes_.size());  // words kept
    std::size_t bit = 0;
    for (std::size_t i = 0; i < changes_.size(); ++i) {
      for (Bytes word = 0; word < changes_[i].words; ++word) of[i] += kept >> bit++ & 1;
      if (changes_[i].durable && of[i] < changes_[i].words) return false;
    }
    for (std::size_t i = 0; i < changes_.size(); ++i) {
      if (of[i] == changes_[i].words) continue;
      for (std::size_t j = 0; j < changes_.size(); ++j) {
        if (of[j] > 0 && must_precede(changes_[i], changes_[j])) return false;
      }
    }
    return true;
  }

  PersistenceModel model_;
  std::size_t now_ = 0;
  std::vector<Change> changes_;
  std::array<std::vector<Operation>, 2> operations_;
};

class OracleTest : public testing::TestWithParam<PersistenceModel> {};

TEST_P(OracleTest, GivesTheSameImages) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Teller teller(GetParam());
    Oracle oracle(GetParam());
    for (const Told& told : random_history(seed)) {
      if (told.kind == Told::Kind::many) continue;
      teller.tell(told);
      oracle.tell(told);
    }
    ASSERT_EQ(teller.node.images(), oracle.images()) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, OracleTest, testing::ValuesIn(models()), [](const auto& one) {
  const PersistenceModel& model = one.param;
  return fmt::format("{}{}_{}", to_string(model.domain), model.ddio ? "_ddio" : "_no_ddio",
                     to_string(model.transport));
});

}  // namespace
}  // namespace perdura::pmem
