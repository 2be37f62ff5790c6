#include "bench/lmdb/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "platform/base/limits.h"
#include "services/kv/value.h"

namespace perdura::bench::lmdb {

using kv::KeyFormat;
using ycsb::OperationKind;
using ycsb::WorkloadOperation;
using ycsb::WorkloadSpec;

namespace {

const auto kStart = std::chrono::steady_clock::now();

// True if a value belongs to the record with this key.
bool belongs(const WorkloadSpec& spec, const KeyFormat& format, Datum key, Datum value) {
  const auto number = kv::stored_key_number(value);
  if (!number) return true;  // too short to contain its number
  if (*number >= format.capacity() || !kv::check_value(value, *number)) return false;
  std::vector<std::byte> expected(spec.key_size);
  format.write(*number, expected);
  return std::equal(expected.begin(), expected.end(), key.begin(), key.end());
}

bool has_right_size(const WorkloadSpec& spec, Datum value) {
  return spec.field_length_distribution != ycsb::LengthDistribution::constant
             ? value.size() <= spec.max_value_size()
             : value.size() == spec.max_value_size();
}

}  // namespace

Time now() {
  return Time(std::chrono::duration_cast<Picoseconds>(std::chrono::steady_clock::now() - kStart));
}

Client::Client(Database& database, const WorkloadSpec& spec, std::uint64_t seed,
               std::uint32_t index, std::uint32_t clients)
    : spec_(spec),
      key_format_(spec.key_format()),
      index_(index),
      clients_(clients),
      database_(database),
      reader_(database),
      generator_(spec, seed, index, clients),
      key_(spec.key_size),
      written_(spec.max_value_size()) {}

void Client::operate(std::uint64_t operations, Crew* crew) {
  Time end = now();
  if (crew != nullptr) crew->begin(end);
  const std::uint64_t own = ycsb::operations_of_client(operations, index_, clients_);
  for (std::uint64_t done = 0; done < own && result_.problem.empty(); ++done) {
    const auto operation = generator_.next();
    if (!operation) {
      result_.problem =
          fmt::format("client {}: no keys were left with {} operations to go", index_, own - done);
      break;
    }
    key_format_.write(operation->key_number, key_);
    kv::fill_value(std::span(written_).first(operation->value_size), operation->key_number,
                   operation->version);
    const Time start = now();
    Outcome outcome{};
    try {
      outcome = perform(*operation);
    } catch (const Error& error) {
      if (crew != nullptr) {
        Kind& kind = result_.kinds[static_cast<std::uint32_t>(operation->kind)];
        ++kind.operations;
        ++kind.errors;
      }
      fail(*operation, fmt::format("ended with '{}'", problem_text(error)));
      result_.failed = true;
      break;
    }
    end = now();
    if (outcome == Outcome::success && (operation->kind == OperationKind::read ||
                                        operation->kind == OperationKind::read_modify_write)) {
      if (!is_right(operation->key_number)) outcome = Outcome::wrong_value;
    }
    if (operation->kind == OperationKind::scan && !are_right()) outcome = Outcome::wrong_value;
    if (outcome == Outcome::wrong_value) fail(*operation, "yielded a value that nobody wrote");
    // Deletes are drawn so that each finds its record; other operations may meet deleted records.
    if (outcome == Outcome::not_found &&
        (operation->kind == OperationKind::erase || !spec_.uses(OperationKind::erase))) {
      fail(*operation, "found nothing, though the record exists");
    }
    if (operation->kind == OperationKind::insert) {
      generator_.acknowledge_insert(operation->key_number);
    }
    if (crew == nullptr) continue;
    first_start_ = std::min(first_start_, start);
    last_end_ = end;
    if (crew->were_at_work(end)) ++result_.operations_at_work;
    Kind& kind = result_.kinds[static_cast<std::uint32_t>(operation->kind)];
    ++kind.operations;
    if (outcome == Outcome::wrong_value) {
      ++kind.errors;
      continue;
    }
    if (outcome == Outcome::not_found) ++kind.not_found;
    kind.latency.record(
        static_cast<std::uint64_t>(std::chrono::duration_cast<Nanoseconds>(end - start).count()));
  }
  if (crew != nullptr) crew->end(end);
}

Client::Outcome Client::perform(const WorkloadOperation& operation) {
  const Datum value = std::span(written_).first(operation.value_size);
  const auto keep = [this](Datum found) { read_.assign(found.begin(), found.end()); };
  switch (operation.kind) {
    case OperationKind::read:
      return reader_.get(key_, keep) ? Outcome::success : Outcome::not_found;
    case OperationKind::scan:
      read_.clear();
      scanned_.clear();
      reader_.scan(key_, operation.scan_length, [this](Datum key, Datum found) {
        const std::size_t begin = read_.size();
        read_.insert(read_.end(), key.begin(), key.end());
        read_.insert(read_.end(), found.begin(), found.end());
        scanned_.push_back({begin, begin + key.size(), read_.size()});
      });
      return scanned_.empty() ? Outcome::not_found : Outcome::success;
    case OperationKind::update:
    case OperationKind::insert: {
      Database::WriteTransaction change(database_);
      change.put(key_, value);
      change.commit();
      return Outcome::success;
    }
    case OperationKind::read_modify_write: {
      Database::WriteTransaction change(database_);
      const Datum* const found = change.get(key_);
      if (found == nullptr) return Outcome::not_found;
      keep(*found);
      change.put(key_, value);
      change.commit();
      return Outcome::success;
    }
    case OperationKind::erase: {
      Database::WriteTransaction change(database_);
      if (!change.erase(key_)) return Outcome::not_found;
      change.commit();
      return Outcome::success;
    }
  }
  return Outcome::success;
}

bool Client::is_right(std::uint64_t key_number) const {
  return has_right_size(spec_, read_) && kv::check_value(read_, key_number).has_value();
}

// True if the entries are in the order of their keys, starting at the requested one, and each is
// right.
bool Client::are_right() const {
  Datum before;
  for (const Scanned& one : scanned_) {
    const Datum key = std::span(read_).subspan(one.begin, one.value - one.begin);
    const Datum value = std::span(read_).subspan(one.value, one.end - one.value);
    const Datum least = before.empty() ? Datum(key_) : before;
    if (std::lexicographical_compare(key.begin(), key.end(), least.begin(), least.end())) {
      return false;
    }
    if (!has_right_size(spec_, value) || !belongs(spec_, key_format_, key, value)) return false;
    before = key;
  }
  return true;
}

void Client::fail(const WorkloadOperation& operation, const std::string& what) {
  if (!result_.problem.empty()) return;
  result_.problem = fmt::format("client {}: {} of key {} {}", index_,
                                ycsb::to_string(operation.kind), operation.key_number, what);
}

void load(Database& database, const WorkloadSpec& spec, std::uint64_t seed) {
  constexpr int kAtOnce = 1000;  // records per transaction
  ycsb::LoadGenerator records(spec, seed, 0, 1);
  const KeyFormat format = spec.key_format();
  std::vector<std::byte> key(spec.key_size);
  std::vector<std::byte> value(spec.max_value_size());
  std::optional<WorkloadOperation> record = records.next();
  while (record) {
    Database::WriteTransaction change(database);
    for (int i = 0; i < kAtOnce && record; ++i, record = records.next()) {
      format.write(record->key_number, key);
      const auto own = std::span(value).first(record->value_size);
      kv::fill_value(own, record->key_number, record->version);
      change.put(key, own);
    }
    change.commit();
  }
}

std::uint64_t checked_entries(Database& database, const WorkloadSpec& spec) {
  const KeyFormat format = spec.key_format();
  Database::ReadTransaction reader(database);
  const std::vector<std::byte> least(1);
  std::uint64_t wrong = 0;
  const std::uint64_t count = reader.scan(least, ~std::uint64_t{0}, [&](Datum key, Datum value) {
    const bool right = has_right_size(spec, value) && belongs(spec, format, key, value);
    wrong += right ? 0 : 1;
  });
  if (wrong > 0) throw std::runtime_error(fmt::format("{} of {} entries are wrong", wrong, count));
  if (count != database.entries()) {
    throw std::runtime_error(
        fmt::format("LMDB counts {} entries and has {}", database.entries(), count));
  }
  return count;
}

}  // namespace perdura::bench::lmdb
