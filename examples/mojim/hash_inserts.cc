// Inserts into a hash table in a mapped file, each of which is synced: Google's dense_hash_map,
// whose memory comes from the file. It knows nothing of Mojim; what it costs to have the table on
// another node as well is a command:
//
//   c++ -O2 -o hash_inserts examples/mojim/hash_inserts.cc
//   perdura mojim run --mode m-sync --size 4MiB --primary a/t --mirror b/t -- ./hash_inserts a/t 99
//   ./hash_inserts b/t  # what the mirror has
//
// A table is found again by its place and size, which the head of the file says; when it grows, the
// new one is synced before the head names it.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sparsehash/dense_hash_map>
#include <utility>

namespace {

constexpr std::size_t kSize = std::size_t{4} << 20;
constexpr std::size_t kHalf =
    kSize / 2 - 4096;  // tables are made in turn in two halves of the file
constexpr std::uint64_t kNobody = ~std::uint64_t{0};

using KeyValue = std::pair<const std::uint64_t, std::uint64_t>;

struct Head {
  std::uint64_t table;    // where it is in the file; 0: nothing has been inserted
  std::uint64_t entries;  // that have a place in it
};

char* file_begin = nullptr;
std::size_t next_half = 0;

Head& head() { return *reinterpret_cast<Head*>(file_begin); }

void sync(const void* begin, std::size_t length) {
  const auto first = reinterpret_cast<std::uintptr_t>(begin) & ~std::uintptr_t{4095};
  const auto end = reinterpret_cast<std::uintptr_t>(begin) + length;
  if (msync(reinterpret_cast<void*>(first), end - first, MS_SYNC) == 0) return;
  std::perror("msync");
  std::exit(1);
}

template <class T>
struct OfFile {
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using pointer = T*;
  using const_pointer = const T*;
  using reference = T&;
  using const_reference = const T&;
  template <class U>
  struct rebind {
    using other = OfFile<U>;
  };
  OfFile() = default;
  template <class U>
  OfFile(const OfFile<U>&) {}
  T* allocate(std::size_t count, const void* = nullptr) {
    if (count * sizeof(T) > kHalf) throw std::bad_alloc();
    return reinterpret_cast<T*>(file_begin + 4096 + kHalf * (next_half++ % 2));
  }
  void deallocate(T*, std::size_t) {}
  std::size_t max_size() const { return kHalf / sizeof(T); }
  friend bool operator==(const OfFile&, const OfFile&) { return true; }
};

using Table = google::dense_hash_map<std::uint64_t, std::uint64_t, std::hash<std::uint64_t>,
                                     std::equal_to<std::uint64_t>, OfFile<KeyValue>>;

std::uint64_t value_of(std::uint64_t key) { return key * 0x9E3779B97F4A7C15; }

// How many keys from 0 on have their values; the program ends if an entry is wrong or has no
// business there.
std::uint64_t check() {
  const auto* entry = reinterpret_cast<const KeyValue*>(file_begin + head().table);
  std::uint64_t found = 0;
  std::uint64_t greatest = 0;
  for (std::uint64_t place = 0; head().table != 0 && place < head().entries; ++place, ++entry) {
    if (entry->first == kNobody) continue;
    if (entry->second != value_of(entry->first)) {
      std::fprintf(stderr, "key %llu has a wrong value\n",
                   static_cast<unsigned long long>(entry->first));
      std::exit(1);
    }
    ++found;
    if (entry->first > greatest) greatest = entry->first;
  }
  if (found == 0 || greatest == found - 1) return found;
  std::fprintf(stderr, "%llu keys, the greatest is %llu\n", static_cast<unsigned long long>(found),
               static_cast<unsigned long long>(greatest));
  std::exit(1);
}

void insert(std::uint64_t count) {
  Table table;
  table.set_empty_key(kNobody);
  head().table = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t key = 0; key < count; ++key) {
    const std::size_t before = table.bucket_count();
    const auto inserted = table.insert({key, value_of(key)}).first;
    if (head().table != 0 && table.bucket_count() == before) {
      sync(&*inserted, sizeof(KeyValue));
    } else {
      // A table is an array of entries. The first one of it:
      auto* const first =
          reinterpret_cast<char*>(file_begin + 4096 + kHalf * ((next_half - 1) % 2));
      sync(first, table.bucket_count() * sizeof(KeyValue));
      head() = {static_cast<std::uint64_t>(first - file_begin), table.bucket_count()};
      sync(&head(), sizeof(Head));
    }
    if (key % 100 == 99) {
      std::printf("%llu\n", static_cast<unsigned long long>(key + 1));
      std::fflush(stdout);
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%.0f inserts/s\n", static_cast<double>(count) / took.count());
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2 && count != 3) {
    std::fprintf(stderr, "usage: hash_inserts FILE [NUMBER]\n");
    return 2;
  }
  const int file = open(arguments[1], O_RDWR | O_CREAT, 0644);
  if (file < 0 || ftruncate(file, kSize) != 0) {
    std::perror(arguments[1]);
    return 1;
  }
  void* const mapped = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) {
    std::perror(arguments[1]);
    return 1;
  }
  file_begin = static_cast<char*>(mapped);
  if (count == 3) insert(std::strtoull(arguments[2], nullptr, 10));
  std::printf("%llu keys\n", static_cast<unsigned long long>(check()));
}
