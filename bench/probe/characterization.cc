#include "bench/probe/characterization.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "bench/probe/building_blocks.h"

namespace perdura::bench {
namespace {

// Returns true if the memory is local and interleaved over the DIMMs as usual.
bool in_usual_place(const Setting& setting) {
  return (setting.numa.empty() || setting.numa == "local") && setting.dimms != "one";
}

double ns(Picoseconds time) { return static_cast<double>(time.count()) * 1e-3; }

class Profile {
 public:
  Profile(const Characterized& found, const sim::Profile& base) : found_(found), base_(base) {}

  std::string text() {
    text_ = fmt::format(
        "# Written by perdura probe on {}. What is not measured is as in the profile {}.\n\n"
        "name = \"{}\"\ntitle = \"Characterization of {}\"\nddio = {}  # {}\n",
        found_.date, base_.name, found_.name, found_.date, base_.ddio, kept());
    cpu();
    node("server", base_.server);
    node("client", base_.client);
    memory("dram", base_.dram);
    memory("pm", base_.pm);
    numa();
    nic();
    translation();
    link();
    retry();
    return std::move(text_);
  }

 private:
  using Value = std::optional<double>;

  std::string kept() const { return fmt::format("not measured; from {}", base_.name); }
  void section(const char* name) { text_ += fmt::format("\n[{}]\n", name); }
  // Writes the measured value, or else the value of the base profile, and returns it.
  double put(const char* key, Value measured, double base, const std::string& probe) {
    // Printed with ten digits, which is finer than anything here is measured.
    const double value = measured ? std::max(*measured, 0.0) : base;
    text_ += fmt::format("{} = {:.10g}  # {}\n", key, value, measured ? probe : kept());
    return value;
  }
  void keep(const char* key, double value) { put(key, std::nullopt, value, ""); }
  template <class T>
  void put_exactly(const char* key, bool measured, T value, const char* probe) {
    text_ += fmt::format("{} = {}  # {}\n", key, value, measured ? probe : kept());
  }
  template <class T>
  void keep_exactly(const char* key, T value) {
    put_exactly(key, false, value, "");
  }

  using Wanted = std::function<bool(const Setting&)>;
  Value first(const Wanted& wanted) const {
    for (const Reading& reading : found_.readings) {
      if (wanted(reading.setting)) return reading.median;
    }
    return std::nullopt;
  }
  Value largest(const Wanted& wanted) const {
    Value most;
    for (const Reading& reading : found_.readings) {
      if (wanted(reading.setting)) most = std::max(most.value_or(0), reading.median);
    }
    return most;
  }
  Value block(std::string_view operation, Bytes size) const {
    return first([=](const Setting& s) {
      return s.probe == "building-block" && s.operation == operation && s.size == size;
    });
  }
  Value idle(std::string_view medium, std::string_view operation, std::string_view cache) const {
    return first([=](const Setting& s) {
      return s.probe == "idle-latency" && s.medium == medium && s.operation == operation &&
             s.pattern == "random" && s.cache == cache && in_usual_place(s);
    });
  }
  Value rdma(std::string_view probe, std::string_view operation) const {
    return first([=](const Setting& s) {
      return s.probe == probe && s.operation == operation && s.size == kWord;
    });
  }
  Value fastest(std::string_view operation) const {
    return largest([=](const Setting& s) {
      return s.unit == "Mop/s" && (operation.empty() || s.operation == operation);
    });
  }

  void cpu() {
    section("cpu");
    constexpr Work kWorks[] = {Work::crc32, Work::copy, Work::hash, Work::compare};
    constexpr const char* kNames[] = {"crc32", "copy", "hash", "compare"};
    for (std::size_t i = 0; i < std::size(kWorks); ++i) {
      const sim::WorkCost& base = base_.cpu.work[static_cast<std::size_t>(kWorks[i])];
      const Value few = block(kNames[i], kFewBytes);
      const Value many = block(kNames[i], kManyBytes);
      Value per_byte;
      Value fixed;
      if (few && many) {
        per_byte = std::max(0.0, (*many - *few) / static_cast<double>(kManyBytes - kFewBytes));
        fixed = *few - *per_byte * static_cast<double>(kFewBytes);
      }
      const std::string probe = fmt::format("building-block {}: at 64 bytes and 4 KiB", kNames[i]);
      put(fmt::format("{}_ns", kNames[i]).c_str(), fixed, ns(base.fixed), probe);
      put(fmt::format("{}_ns_per_byte", kNames[i]).c_str(), per_byte, ns(base.per_byte), probe);
    }
    keep("dispatch_ns", ns(base_.cpu.work[static_cast<std::size_t>(Work::dispatch)].fixed));
    put("load_ns", idle("dram", "load", "hot"), ns(base_.cpu.load), "idle-latency dram load, hot");
    store_ = put("store_ns", block("store", kWord), ns(base_.cpu.store), "building-block store");
    flush_ = put("flush_ns", block("flush", kWord), ns(base_.cpu.flush), "building-block flush");
    put("fence_ns", block("fence", kWord), ns(base_.cpu.fence), "building-block fence");
    post_ = put("post_ns", rdma("rdma-post", "WRITE"), ns(base_.cpu.post), "rdma-post");
    keep("poll_ns", ns(base_.cpu.poll));
    keep("context_switch_ns", ns(base_.cpu.context_switch));
    keep("time_slice_ns", ns(base_.cpu.time_slice));
  }

  void node(const char* name, const sim::NodeProfile& base) {
    section(name);
    const bool known = found_.cores != 0;
    put_exactly("cores", known, known ? found_.cores : base.cores,
                "those that the probes could use");
    keep("wakeup_latency_ns", ns(base.wait.wakeup_latency));
    keep("wakeup_cpu_ns", ns(base.wait.wakeup_cpu));
    keep("arm_ns", ns(base.wait.arm));
    keep("sleep_cpu_ns", ns(base.wait.sleep_cpu));
    keep_exactly("wakeups", base.wait.wakeups);
  }

  Value bandwidth(std::string_view medium, bool loads) const {
    return largest([=](const Setting& s) {
      // Plain stores do not count, since the lines may stay in the caches.
      return s.unit == "GB/s" && s.medium == medium && s.probe.starts_with("bandwidth") &&
             s.operation != "store" && (s.operation == "load") == loads && in_usual_place(s);
    });
  }

  void memory(const char* name, const sim::MemoryProfile& base) {
    section(name);
    put("read_latency_ns", idle(name, "load", "cold"), ns(base.read_latency),
        fmt::format("idle-latency {} load random, cold", name));
    const Value writes = bandwidth(name, false);
    const double write_bandwidth = writes.value_or(base.write_bandwidth * 1e-9);
    Value write_latency;
    if (const Value persisted = idle(name, "store+clwb", "hot")) {
      // A line is written back while its flush is being issued; the fence then waits for the rest.
      const double transfer = static_cast<double>(kCacheLine) / write_bandwidth;
      write_latency = *persisted - store_ - std::max(flush_, transfer);
    }
    put("write_latency_ns", write_latency, ns(base.write_latency),
        fmt::format("idle-latency {} store+clwb random, hot, less store and flush", name));
    put("read_bandwidth_gb_s", bandwidth(name, true), base.read_bandwidth * 1e-9,
        fmt::format("bandwidth {} load: the highest", name));
    put("write_bandwidth_gb_s", writes, base.write_bandwidth * 1e-9,
        fmt::format("bandwidth {} written: the highest", name));
    if (base.streaming_latency != base.write_latency) {
      keep("streaming_write_latency_ns", ns(base.streaming_latency));
    }
    if (base.rows) {
      keep_exactly("row_bytes", base.rows->size);
      keep_exactly("open_rows", base.rows->open);
      keep("row_hit_latency_ns", ns(base.rows->hit_latency));
    }
    if (!base.dimms) return;
    keep_exactly("dimms", base.dimms->count);
    keep_exactly("interleave_bytes", base.dimms->interleave);
    keep_exactly("buffer_lines", base.dimms->buffer_lines);
    keep_exactly("buffer_ways", base.dimms->buffer_ways);
    keep("buffer_read_latency_ns", ns(base.dimms->buffer_read_latency));
    keep("port_bandwidth_gb_s", base.dimms->port_bandwidth * 1e-9);
    keep_exactly("write_queue_lines", base.dimms->write_queue);
    keep_exactly("loads_under_way", base.dimms->loads_under_way);
  }

  void numa() {
    if (!base_.numa) return;
    section("numa");
    keep("round_trip_ns", ns(base_.numa->round_trip));
    keep("bandwidth_gb_s", base_.numa->bandwidth * 1e-9);
  }

  // Bytes per nanosecond are GB/s.
  Value wire_bandwidth() const {
    const Value payload = largest(
        [](const Setting& s) { return s.probe == "rdma-bandwidth" && s.operation == "WRITE"; });
    if (!payload) return payload;
    return *payload *
           (1 + static_cast<double>(base_.link.header) / static_cast<double>(base_.link.mtu));
  }

  // The latency of an inline WRITE consists of the passes through devices and buses, of which only
  // the sum together with the link is known, and of the rest without the link.
  double passes() const { return 2 * ns(base_.nic.pcie_write) + 3 * ns(base_.nic.processing); }
  double apart_from_passes() const {
    const auto headers = static_cast<double>(2 * base_.link.header + kWord);
    return post_ + ns(base_.cpu.poll) +
           headers / wire_bandwidth().value_or(base_.link.bandwidth * 1e-9);
  }
  // If the passes of the base profile take longer than the whole measured latency, they are scaled
  // down to fit.
  void fit_passes() {
    const Value whole = rdma("rdma-latency-inline", "WRITE");
    if (whole) share_ = std::clamp((*whole - apart_from_passes()) / passes(), 0.0, 1.0);
  }
  void keep_share(const char* key, double value) {
    if (share_ == 1) return keep(key, value);
    put(key, value * share_, value,
        fmt::format("not measured; {:.2g} of what it is in {}, which is more than an inline WRITE "
                    "took here",
                    share_, base_.name));
  }

  void nic() {
    section("nic");
    const Value rate = fastest("");
    put("message_ns", rate ? Value(1e3 / *rate) : rate, ns(base_.nic.message),
        "the highest rate of any RDMA probe; what posts may be slower than the device");
    fit_passes();
    keep_share("processing_ns", ns(base_.nic.processing));
    const auto& device = found_.capabilities;
    put_exactly("max_inline_bytes", device.has_value(),
                device ? device->max_inline : base_.nic.max_inline, "as the device says");
    pcie_bandwidth_ = std::max(base_.nic.pcie_bandwidth * 1e-9, wire_bandwidth().value_or(0));
    keep("pcie_bandwidth_gb_s", pcie_bandwidth_);
    if (base_.nic.pcie_read_bandwidth) {
      keep("pcie_read_bandwidth_gb_s", *base_.nic.pcie_read_bandwidth * 1e-9);
    }
    const Value fetched = rdma("rdma-latency", "WRITE");
    const Value inlined = rdma("rdma-latency-inline", "WRITE");
    put("pcie_read_ns",
        fetched && inlined ? Value(*fetched - *inlined - kWord / pcie_bandwidth_) : std::nullopt,
        ns(base_.nic.pcie_read), "rdma-latency WRITE of 8 bytes, less that of an inline one");
    keep_share("pcie_write_ns", ns(base_.nic.pcie_write));
    const Value atomics = fastest("FAA");
    put("atomic_ns", atomics ? Value(1e3 / *atomics) : atomics, ns(base_.nic.atomic),
        "the highest rate of FAA");
    const auto flag = [&](const char* key, bool fabric::Capabilities::*member, bool base) {
      put_exactly(key, device.has_value(), device ? (*device).*member : base, "as the device says");
    };
    flag("flush", &fabric::Capabilities::flush, base_.nic.flush);
    flag("flush_persistence", &fabric::Capabilities::flush_persistence,
         base_.nic.flush_persistence);
    flag("atomic_write", &fabric::Capabilities::atomic_write, base_.nic.atomic_write);
  }

  void translation() {
    if (!base_.translation) return;
    section("translation");
    keep_exactly("page_bytes", base_.translation->page);
    keep_exactly("cache_entries", base_.translation->cache_entries);
    keep_exactly("cache_ways", base_.translation->cache_ways);
    keep("miss_ns", ns(base_.translation->miss));
    keep_exactly("misses_under_way", base_.translation->misses_under_way);
    keep("registration_ns", ns(base_.translation->registration));
    keep("registration_entry_ns", ns(base_.translation->registration_entry));
    keep("change_ns", ns(base_.translation->change));
  }

  void link() {
    section("link");
    const Value wire = wire_bandwidth();
    put("bandwidth_gbit_s", wire ? Value(*wire * 8) : wire, base_.link.bandwidth * 8e-9,
        "rdma-bandwidth WRITE: the highest, with its headers");
    Value propagation = rdma("rdma-latency-inline", "WRITE");
    if (propagation) propagation = (*propagation - apart_from_passes() - share_ * passes()) / 2;
    put("propagation_ns", propagation, ns(base_.link.propagation),
        "half of what is left of the latency of an inline WRITE");
    keep_exactly("mtu_bytes", base_.link.mtu);
    keep_exactly("header_bytes", base_.link.header);
  }

  void retry() {
    section("retry");
    keep("rnr_timer_ns", ns(base_.retry.rnr_timer));
    keep_exactly("rnr_retries", base_.retry.rnr_retries);
    keep("timeout_ns", ns(base_.retry.timeout));
  }

  const Characterized& found_;
  const sim::Profile& base_;
  std::string text_{};
  double store_ = 0;  // this and the next two in nanoseconds
  double flush_ = 0;
  double post_ = 0;
  double pcie_bandwidth_ = 0;  // in GB/s
  double share_ = 1;           // the factor by which the passes of the base profile are scaled
};

}  // namespace

std::string characterize(const Characterized& found, const sim::Profile& base) {
  return Profile(found, base).text();
}

}  // namespace perdura::bench
