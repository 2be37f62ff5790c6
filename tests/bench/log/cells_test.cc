// What "Correct, Fast Remote Persistence" says of its figure 2 (sections 4.3 and 4.4), as orderings
// of the latencies that experiments/remote-log-cells.toml gives on sim. Each test is a statement of
// the paper; its numbers are not, since the model was fitted to none of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/log/remote_log_driver.h"
#include "bench/operation_kinds.h"
#include "bench/ycsb/point_workload.h"
#include "harness/config/override.h"
#include "harness/run/platform_factory.h"
#include "methods/method.h"

namespace perdura::bench {
namespace {

struct Cell {
  std::string update;
  std::string domain;
  std::string ddio;
  std::string buffers;
  std::string carrier;  // write, write-imm, send
  std::string method;
  double latency = 0;  // mean, nanoseconds

  // By message passing: the responder's CPU must answer before the update counts.
  bool two_sided() const {
    return methods::find_method(method.substr(0, method.find(' ')))
        .uses(pmem::StepKind::receive_ack);
  }
  std::string name() const {
    return fmt::format("{} {} ddio={} {} {}", update, domain, ddio, buffers, carrier);
  }
};

std::vector<Cell> run_all() {
  const RemoteLogDriver driver;
  const harness::Driver* const drivers[] = {&driver};
  const harness::Override fewer = harness::parse_override("workload.operations=2000");
  const harness::Experiment experiment =
      harness::load_experiment(PERDURA_SOURCE_DIR "/experiments/remote-log-cells.toml",
                               harness::declarations_of(drivers), {&fewer, 1});
  const harness::Locations locations({PERDURA_SOURCE_DIR});
  int argc = 0;
  char** argv = nullptr;
  harness::Ranks ranks(argc, argv);
  const auto platforms = create_platform_factory(experiment, locations, ranks);
  std::vector<Cell> cells;
  for (const harness::Point& point : plan_points(experiment, locations, driver, 2)) {
    const harness::Measurement result = driver.run(*platforms->create(point), point);
    EXPECT_EQ(result.verdict, harness::Verdict::valid) << point.label << ": " << result.reason;
    EXPECT_EQ(result.usage_error, "") << point.label;
    const auto appends = result.kinds.find(kind_of(ycsb::OperationKind::insert));
    if (appends == result.kinds.end()) continue;
    cells.push_back({point.settings.text("update"), point.settings.text("domain"),
                     point.settings.text("ddio"), point.settings.text("receive_buffers"),
                     point.system_name.substr(std::string_view("paper-").size()), result.method,
                     appends->second.latency.mean()});
  }
  return cells;
}

const std::vector<Cell>& all() {
  static const std::vector<Cell> cells = run_all();
  return cells;
}

using Change = std::function<void(Cell&)>;

// The cell that is the same but for `change`.
const Cell& other(Cell cell, const Change& change) {
  change(cell);
  const auto found = std::find_if(all().begin(), all().end(),
                                  [&](const Cell& each) { return each.name() == cell.name(); });
  if (found == all().end()) throw std::out_of_range(cell.name());
  return *found;
}

std::vector<Cell> cells_where(const std::function<bool(const Cell&)>& wanted) {
  std::vector<Cell> found;
  std::copy_if(all().begin(), all().end(), std::back_inserter(found), wanted);
  EXPECT_FALSE(found.empty());
  return found;
}

void expect_faster(const Cell& fast, const Cell& slow, double at_least = 1.0) {
  EXPECT_LT(fast.latency * at_least, slow.latency) << fast.name() << " and " << slow.name();
}

bool is_send(const Cell& cell) { return cell.carrier == "send"; }

TEST(Cells, AreThe72OfTheTaxonomy) {
  EXPECT_EQ(all().size(), 72U);
  std::map<std::string, int> names;
  for (const Cell& cell : all()) ++names[cell.name()];
  EXPECT_EQ(names.size(), 72U);
}

// --- section 4.3, single updates

TEST(Cells, SingleOneSidedOutperformsMessagePassing) {
  for (const Cell& one :
       cells_where([](const Cell& cell) { return cell.update == "single" && !cell.two_sided(); })) {
    for (const Cell& two : cells_where(
             [](const Cell& cell) { return cell.update == "single" && cell.two_sided(); })) {
      expect_faster(one, two);
    }
  }
}

// "for the DDIO_DRAM_RQWRB_WRITE bars, MHP performs significantly better than DMP"
TEST(Cells, SingleWriteIsFasterUnderMhpThanUnderDmpWithDdio) {
  for (const Cell& dmp : cells_where([](const Cell& cell) {
         return cell.update == "single" && cell.domain == "dmp" && cell.ddio == "on" &&
                !is_send(cell);
       })) {
    expect_faster(other(dmp, [](Cell& cell) { cell.domain = "mhp"; }), dmp, 1.1);
  }
}

// "In WSP, omission of RDMA Flush in a one-sided RDMA update drops its latency" (4.3); "As in the
// case of singleton updates, absence of RDMA Flushes in servers configured to support WSP boosts
// latency" (4.4)
TEST(Cells, OneSidedUpdatesAreFasterUnderWspWithoutFlush) {
  for (const Cell& mhp :
       cells_where([](const Cell& cell) { return cell.domain == "mhp" && !cell.two_sided(); })) {
    expect_faster(other(mhp, [](Cell& cell) { cell.domain = "wsp"; }), mhp, 1.3);
  }
}

// "Overall, as expected, WSP enables the best latency"; where the method is the same, no better.
TEST(Cells, WspIsNeverSlowerThanTheOtherDomains) {
  for (const Cell& wsp : cells_where([](const Cell& cell) { return cell.domain == "wsp"; })) {
    for (const char* domain : {"dmp", "mhp"}) {
      const Cell& less = other(wsp, [&](Cell& cell) { cell.domain = domain; });
      if (less.method == wsp.method) {
        EXPECT_EQ(less.latency, wsp.latency) << wsp.name();
      } else {
        expect_faster(wsp, less);
      }
    }
  }
}

// DDIO "forces a two-sided operation" (4.3), and "additional message passing" (4.4).
TEST(Cells, DdioSlowsWriteAndWriteImmDownUnderDmp) {
  for (const Cell& off : cells_where([](const Cell& cell) {
         return cell.domain == "dmp" && cell.ddio == "off" && !is_send(cell);
       })) {
    const Cell& on = other(off, [](Cell& cell) { cell.ddio = "on"; });
    EXPECT_TRUE(on.two_sided());
    EXPECT_FALSE(off.two_sided());
    expect_faster(off, on, 1.1);
  }
}

// "this effect is indirect" (4.3); "DDIO has no effect on MHP and WSP configurations" (4.4). In the
// model it has a small one: past the cache, messages share the memory controller with the server.
TEST(Cells, DdioMattersOnlyByTheMethod) {
  for (const Cell& on : cells_where([](const Cell& cell) { return cell.ddio == "on"; })) {
    const Cell& off = other(on, [](Cell& cell) { cell.ddio = "off"; });
    if (on.domain != "dmp") {
      EXPECT_EQ(on.method, off.method) << on.name();
    }
    if (on.method != off.method) continue;
    EXPECT_NEAR(off.latency / on.latency, 1.0, 0.01) << on.name();
  }
}

// "Placement of RQWRB has a significant performance [effect] indirectly as well" (4.3)
TEST(Cells, ThePlaceOfReceiveBuffersMattersOnlyByTheMethod) {
  for (const Cell& dram : cells_where([](const Cell& cell) { return cell.buffers == "dram"; })) {
    const Cell& pm = other(dram, [](Cell& cell) { cell.buffers = "pm"; });
    if (!is_send(dram)) {
      EXPECT_EQ(dram.method, pm.method) << dram.name();
    }
    // Where the server's few messages are placed shifts when the two memories are busy, by
    // picoseconds.
    if (dram.method == pm.method) {
      EXPECT_NEAR(pm.latency / dram.latency, 1.0, 1e-6) << dram.name();
    }
  }
}

// "provided the persistence domain is either MHP or WSP, or DDIO is turned off, RDMA Send can be
// treated by the client as a one-sided RDMA operation" (4.4; of single updates in 4.3)
TEST(Cells, ReceiveBuffersInPmMakeSendOneSidedAndFaster) {
  for (const Cell& pm :
       cells_where([](const Cell& cell) { return cell.buffers == "pm" && is_send(cell); })) {
    const Cell& dram = other(pm, [](Cell& cell) { cell.buffers = "dram"; });
    EXPECT_TRUE(dram.two_sided()) << dram.name();
    const bool gains = pm.domain != "dmp" || pm.ddio == "off";
    EXPECT_EQ(pm.two_sided(), !gains) << pm.name();
    if (gains) expect_faster(pm, dram, 1.05);
  }
}

// --- section 4.4, ordered updates

// "packaged in a single message ... keeps the operation to a single round trip. In contrast, use of
// RDMA Write and WriteImm with message passing leads to two round trips"
TEST(Cells, OrderedSendBeatsWriteAndWriteImmUnderDmpWithDdio) {
  for (const Cell& two_trips : cells_where([](const Cell& cell) {
         return cell.update == "ordered" && cell.domain == "dmp" && cell.ddio == "on" &&
                !is_send(cell);
       })) {
    expect_faster(other(two_trips, [](Cell& cell) { cell.carrier = "send"; }), two_trips, 1.5);
  }
}

// "MHP unlocks the capability of doing one-sided compound RDMA updates"
TEST(Cells, OrderedWritesAreFasterUnderMhpThanUnderDmpWithDdioAndThanMessages) {
  for (const Cell& mhp : cells_where([](const Cell& cell) {
         return cell.update == "ordered" && cell.domain == "mhp" && cell.ddio == "on" &&
                !is_send(cell);
       })) {
    expect_faster(mhp, other(mhp, [](Cell& cell) { cell.domain = "dmp"; }), 1.5);
    const Cell& message = other(mhp, [](Cell& cell) {
      cell.carrier = "send";
      cell.buffers = "dram";
    });
    EXPECT_TRUE(message.two_sided());
    expect_faster(mhp, message, 1.05);
  }
}

// "This gain is more pronounced to for WSP."
TEST(Cells, OrderedWritesGainMoreOverMessagesUnderWspThanUnderMhp) {
  for (const Cell& wsp : cells_where([](const Cell& cell) {
         return cell.update == "ordered" && cell.domain == "wsp" && !is_send(cell);
       })) {
    const Cell& mhp = other(wsp, [](Cell& cell) { cell.domain = "mhp"; });
    const auto gain = [](const Cell& cell) {
      return other(cell,
                   [](Cell& each) {
                     each.carrier = "send";
                     each.buffers = "dram";
                   })
                 .latency /
             cell.latency;
    };
    EXPECT_GT(gain(wsp), gain(mhp)) << wsp.name();
  }
}

// "the latency of RDMA WriteImm does not drop as much ... overhead of completion of the first RDMA
// Flush before issuing the second RDMA WriteImm"
TEST(Cells, WithoutDdioOrderedWriteImmDropsLessThanWrite) {
  for (const char* buffers : {"dram", "pm"}) {
    const auto drop = [&](const char* carrier) {
      const Cell off{"ordered", "dmp", "off", buffers, carrier, "", 0};
      const Cell& on = other(off, [](Cell& cell) { cell.ddio = "on"; });
      return on.latency / other(off, [](Cell&) {}).latency;
    };
    EXPECT_GT(drop("write-imm"), 1.0);
    EXPECT_GT(drop("write"), 1.5 * drop("write-imm"));
  }
}

}  // namespace
}  // namespace perdura::bench
