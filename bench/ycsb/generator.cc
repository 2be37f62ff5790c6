#include "bench/ycsb/generator.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>

#include <fmt/format.h>

namespace perdura::ycsb {
namespace {

// Streams of randomness below one seed. Loading must not consume what the measurement draws.
std::uint64_t load_stream(std::uint32_t client) { return (std::uint64_t{client} << 1) | 1; }
std::uint64_t operation_stream(std::uint32_t client) { return std::uint64_t{client} << 1; }

KeyNumbering numbering_of(const WorkloadSpec& spec, std::uint32_t client, std::uint32_t clients) {
  if (auto validity = spec.validate(); !validity) {
    throw std::invalid_argument(validity.error().message);
  }
  if (client >= clients) {
    throw std::invalid_argument(fmt::format(
        "client {} of {} does not exist; clients are numbered from 0", client, clients));
  }
  return {spec.first_key(), spec.loaded_keys(), spec.first_new_key(), client, clients};
}

std::array<double, kOperationKinds> cumulative_shares_of(const WorkloadSpec& spec) {
  std::array<double, kOperationKinds> cumulative{};
  double sum = 0.0;
  std::size_t last_used = 0;
  for (std::size_t kind = 0; kind < kOperationKinds; ++kind) {
    if (spec.proportions[kind] > 0) last_used = kind;
    cumulative[kind] = sum += spec.share(static_cast<OperationKind>(kind));
  }
  // Rounding must not leave a gap below 1 through which an operation of proportion 0 could slip.
  std::fill(cumulative.begin() + static_cast<std::ptrdiff_t>(last_used), cumulative.end(), 1.0);
  return cumulative;
}

bool writes(OperationKind kind) {
  constexpr unsigned kWriting = 1U << static_cast<unsigned>(OperationKind::update) |
                                1U << static_cast<unsigned>(OperationKind::insert) |
                                1U << static_cast<unsigned>(OperationKind::read_modify_write);
  return (kWriting >> static_cast<unsigned>(kind) & 1U) != 0;
}

}  // namespace

ValueSizes::ValueSizes(const WorkloadSpec& spec)
    : distribution_(spec.field_length_distribution),
      fields_(spec.field_count),
      min_length_(spec.min_field_length),
      max_length_(spec.field_length),
      zipfian_(std::max(max_length_, min_length_) - min_length_ + 1) {}

std::uint32_t ValueSizes::next(Random& random) const {
  if (!vary()) return constant();
  std::uint64_t sum = 0;
  for (std::uint32_t field = 0; field < fields_; ++field) {
    sum += min_length_ + (distribution_ == LengthDistribution::uniform
                              ? random.uniform_below(max_length_ - min_length_ + 1)
                              : zipfian_.next(random));
  }
  return static_cast<std::uint32_t>(sum);
}

LoadGenerator::LoadGenerator(const WorkloadSpec& spec, std::uint64_t seed, std::uint32_t client,
                             std::uint32_t clients)
    : numbering_(numbering_of(spec, client, clients)),
      value_sizes_(spec),
      random_(seed, load_stream(client)),
      position_(client) {}

std::optional<WorkloadOperation> LoadGenerator::next() {
  if (position_ >= numbering_.loaded) return std::nullopt;
  const std::uint64_t key_number = numbering_.first_key + position_;
  position_ += numbering_.clients;
  return WorkloadOperation{.kind = OperationKind::insert,
                           .key_number = key_number,
                           .value_size = value_sizes_.next(random_)};
}

OperationGenerator::OperationGenerator(const WorkloadSpec& spec, std::uint64_t seed,
                                       std::uint32_t client, std::uint32_t clients)
    : numbering_(numbering_of(spec, client, clients)),
      keys_(spec, numbering_),
      value_sizes_(spec),
      random_(seed, operation_stream(client)),
      cumulative_shares_(cumulative_shares_of(spec)),
      key_capacity_(spec.key_format().capacity()),
      min_scan_length_(spec.min_scan_length),
      max_scan_length_(spec.max_scan_length),
      draws_ahead_(!spec.uses(OperationKind::insert) && !spec.uses(OperationKind::erase)) {
  if (spec.scan_length_distribution == LengthDistribution::zipfian) {
    zipfian_scans_.emplace(max_scan_length_ - min_scan_length_ + 1);
  }
}

std::optional<WorkloadOperation> OperationGenerator::next_of_many() {
  if (!draws_ahead_) return draw();
  for (WorkloadOperation& operation : ahead_) {
    operation = {.kind = draw_kind(), .key_number = keys_.next(random_, 0)};
    if (operation.kind == OperationKind::scan) operation.scan_length = draw_scan_length();
    if (value_sizes_.vary()) {
      if (writes(operation.kind)) add_value(operation);
      continue;
    }
    // No branch, because the kind is practically random.
    const std::uint64_t one_if_writing = writes(operation.kind) ? 1 : 0;
    operation.value_size = static_cast<std::uint32_t>(one_if_writing) * value_sizes_.constant();
    operation.version = one_if_writing * next_version();
    puts_ += one_if_writing;
  }
  next_ahead_ = 1;
  return ahead_.front();
}

std::optional<WorkloadOperation> OperationGenerator::draw() {
  WorkloadOperation operation{.kind = draw_kind(), .key_number = 0};
  if (operation.kind == OperationKind::insert || operation.kind == OperationKind::erase) {
    const std::optional<std::uint64_t> key =
        operation.kind == OperationKind::insert ? next_new_key() : next_key_to_erase();
    if (!key) return std::nullopt;
    operation.key_number = *key;
  } else {
    operation.key_number = keys_.next(random_, acknowledged_);
  }
  if (operation.kind == OperationKind::scan) operation.scan_length = draw_scan_length();
  if (writes(operation.kind)) add_value(operation);
  return operation;
}

void OperationGenerator::add_value(WorkloadOperation& operation) {
  operation.value_size = value_sizes_.next(random_);
  operation.version = next_version();
  ++puts_;
}

void OperationGenerator::acknowledge_insert(std::uint64_t key_number) {
  const std::uint64_t insert =
      (key_number - numbering_.first_new_key - numbering_.client) / numbering_.clients;
  assert(insert < inserts_ && numbering_.own_new_key(insert) == key_number);
  if (insert != acknowledged_) {
    out_of_order_.push_back(insert);
    return;
  }
  ++acknowledged_;
  // At most as many inserts wait here as operations were in flight; searching them is cheap.
  for (auto next = out_of_order_.begin(); next != out_of_order_.end();) {
    if (*next != acknowledged_) {
      ++next;
      continue;
    }
    ++acknowledged_;
    *next = out_of_order_.back();
    out_of_order_.pop_back();
    next = out_of_order_.begin();
  }
}

OperationKind OperationGenerator::draw_kind() {
  const double uniform = random_.uniform_unit();
  // The first kind whose cumulative share is larger, found without a branch; the last share is 1.
  std::size_t kind = 0;
  for (std::size_t k = 0; k + 1 < kOperationKinds; ++k) kind += uniform >= cumulative_shares_[k];
  return static_cast<OperationKind>(kind);
}

std::optional<std::uint64_t> OperationGenerator::next_new_key() {
  const std::uint64_t key = numbering_.own_new_key(inserts_);
  if (key >= key_capacity_) return std::nullopt;
  ++inserts_;
  return key;
}

std::optional<std::uint64_t> OperationGenerator::next_key_to_erase() {
  const std::uint64_t own_loaded =
      operations_of_client(numbering_.loaded, numbering_.client, numbering_.clients);
  if (erases_ < own_loaded) {
    return numbering_.first_key + numbering_.client + erases_++ * numbering_.clients;
  }
  const std::uint64_t insert = erases_ - own_loaded;
  if (insert >= acknowledged_) return std::nullopt;
  ++erases_;
  return numbering_.own_new_key(insert);
}

std::uint32_t OperationGenerator::draw_scan_length() {
  const std::uint64_t above = zipfian_scans_
                                  ? zipfian_scans_->next(random_)
                                  : random_.uniform_below(max_scan_length_ - min_scan_length_ + 1);
  return min_scan_length_ + static_cast<std::uint32_t>(above);
}

}  // namespace perdura::ycsb
