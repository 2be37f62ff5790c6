// What a write meter counts at its two levels: without the comparison, what was issued, as with it,
// and nothing of what the stores changed.
#include "platform/pmem/accounting.h"

#include <gtest/gtest.h>

namespace perdura::pmem {
namespace {

WriteCounts counts_at(WriteMeter::Level level) {
  WriteMeter meter(level);
  meter.word(Cause::local_store, 0, 0x0101, kWholeWord);
  meter.word(Cause::local_store, 1, 2, {{32, 32}});
  const std::array<std::byte, 12> zeros{};
  std::array<std::byte, 12> ones{};
  ones.fill(std::byte{1});
  meter.bytes(Cause::local_store, zeros, ones);
  for (Bytes line = 0; line <= XpBuffer::kLines; ++line) meter.flush(line * kMediaLine + 63, 2);
  meter.fence();
  return meter.writes().local_store;
}

TEST(WriteMeter, CountsWhatIsIssuedAndWhatChanges) {
  WriteCounts expected{};
  expected.stores = 3;
  expected.flushes = 2 * (XpBuffer::kLines + 1);
  expected.fences = 1;
  expected.field_bits = 64 + 32 + 12 * 8;
  expected.bytes_issued = 8 + 8 + 12;
  expected.lines = expected.flushes;
  EXPECT_EQ(counts_at(WriteMeter::Level::issued), expected);
  expected.bytes_programmed = 2 + 1 + 12;
  expected.bits_flipped = 2 + 2 + 12;
  expected.media_bytes = kMediaLine;
  EXPECT_EQ(counts_at(WriteMeter::Level::compared), expected);
}

TEST(WriteMeter, ALineIsFlushedOnceForAnyOfItsBytes) {
  for (Bytes address = 0; address < 2 * kCacheLine; ++address) {
    for (Bytes length = 0; length <= 3 * kCacheLine; ++length) {
      WriteMeter meter(WriteMeter::Level::issued);
      meter.flush(address, length);
      const Bytes last = address + (length == 0 ? 0 : length - 1);
      ASSERT_EQ(meter.writes().local_store.flushes, last / kCacheLine - address / kCacheLine + 1)
          << address << ' ' << length;
    }
  }
}

}  // namespace
}  // namespace perdura::pmem
