// A record of the log verifies for its lap, and only when it is complete.
#include "systems/write_ahead/record.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace perdura::systems::write_ahead {
namespace {

using Buffer = std::vector<std::byte>;

Buffer random_bytes(std::mt19937_64& random, Bytes size) {
  Buffer bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

struct Sealed {
  Sealed(const RecordFormat& format, const Buffer& key, const Buffer& value, std::uint64_t lap)
      : slot(256) {
    size = format.write(slot, key, value);
    format.seal(std::span(slot).first(size), format.typical(key.size(), value.size()), lap);
  }
  Buffer slot;
  Bytes size;
};

bool holds(const std::optional<Record>& record, const Buffer& key, const Buffer& value) {
  return record && std::equal(key.begin(), key.end(), record->key.begin(), record->key.end()) &&
         std::equal(value.begin(), value.end(), record->value.begin(), record->value.end());
}

TEST(Record, OfTypicalSizesIsAChecksumAKeyAndAValue) {
  const RecordFormat format(16, 64);
  EXPECT_EQ(format.size(16, 64), 4u + 16 + 64);
  EXPECT_EQ(format.size(16, 63), 12u + 16 + 63);
  EXPECT_EQ(format.size(15, 65), 12u + 15 + 65);
}

TEST(Record, VerifiesForItsLapAndNoOther) {
  std::mt19937_64 random(1);
  const RecordFormat format(16, 64);
  for (const Bytes value_size : {64, 56, 63, 0}) {
    const Buffer key = random_bytes(random, 16);
    const Buffer value = random_bytes(random, value_size);
    for (const std::uint64_t lap : {0ULL, 1ULL, 77ULL, 1ULL << 30}) {
      const Sealed sealed(format, key, value, lap);
      EXPECT_TRUE(holds(format.verify(sealed.slot, lap), key, value));
      EXPECT_TRUE(holds(format.verify(sealed.slot, lap, 16, value_size), key, value));
      for (std::uint64_t other = 0; other < 5000; ++other) {
        if (other == lap) continue;
        ASSERT_FALSE(format.verify(sealed.slot, other)) << "lap " << lap << " read as " << other;
      }
    }
  }
}

TEST(Record, ThatIsIncompleteNeverVerifies) {
  std::mt19937_64 random(2);
  const RecordFormat format(16, 64);
  for (const Bytes value_size : {64, 40, 100}) {
    const Sealed old(format, random_bytes(random, 16), random_bytes(random, value_size), 6);
    const Sealed sealed(format, random_bytes(random, 16), random_bytes(random, value_size), 7);
    // Words arrive in any order.
    for (int i = 0; i < 20000; ++i) {
      Buffer slot = old.slot;
      bool complete = true;
      for (Bytes word = 0; word < sealed.size; word += kWord) {
        const Bytes length = std::min(kWord, sealed.size - word);
        if (random() % 2 == 0) {
          std::copy_n(sealed.slot.begin() + static_cast<long>(word), length,
                      slot.begin() + static_cast<long>(word));
        } else {
          complete = false;
        }
      }
      ASSERT_EQ(format.verify(slot, 7).has_value(), complete);
    }
  }
}

TEST(Record, IsNotFoundInMemoryOfZeros) {
  const Buffer zeros(8192);
  for (const Bytes value_size : {0, 16, 64, 1024, 4096}) {
    const RecordFormat format(16, value_size);
    for (std::uint64_t lap = 0; lap < 200; ++lap) {
      ASSERT_FALSE(format.verify(zeros, lap)) << "value size " << value_size << ", lap " << lap;
    }
  }
}

TEST(Record, WithImpossibleLengthsIsRefused) {
  std::mt19937_64 random(3);
  const RecordFormat format(16, 64);
  for (int i = 0; i < 10000; ++i) {
    const Buffer slot = random_bytes(random, 40);
    ASSERT_FALSE(format.verify(slot, 0));
  }
}

}  // namespace
}  // namespace perdura::systems::write_ahead
