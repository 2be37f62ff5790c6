// What soaks have found, run once more. A tape makes the same run only as long as the simulation
// and the systems take the same time, so these tests show less and less; the planted faults
// (tests/faults/) show that a soak still finds such defects.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/explore/soak_support.h"

namespace perdura::explore::test {
namespace {

using pmem::Tape;
using services::GuaranteeLevel;

// A soak finds each of these in one of some thousands or ten thousands of schedules.
TEST(Soak, WhatItFoundInReplicatedMemoryStaysMended) {
  struct Found {
    std::string_view what, system, server, tape;
  };
  constexpr Found kFound[] = {
      {"a copy was promoted by what a node's thread had done ahead of the simulated time",
       "e-chain", "wsp no-ddio",
       "client-0 0 0 1; failure-1 1 0*3 10140800; failure-2 1 0 80 0 5488601; fences 3; moves 1 1 "
       "2; store 0*3 1"},
      {"a copy was promoted that a node which was away would not follow", "e-chain", "wsp ddio",
       "apart-2 3; failure-1 1 0*3 2165400; failure-2 1 0 1; failure-3 1; moves 1 0 0 1"},
      {"the same", "e-broadcast", "dmp no-ddio",
       "apart-1 7; client-0 1; failure-1 1 0 1; failure-2 1; fences 3; moves 1 2"},
      {"a mirror whose log is full of what it found itself when a connection was replaced",
       "e-broadcast", "wsp no-ddio iwarp",
       "client-0 0 0 4; client-1 0 0 1; drawn 1; failure-3 1 0*3 1851800; messages 0*140 2"},
      {"the same", "m-sync", "mhp ddio iwarp",
       "client-0 0 0 1 0 4 1; client-1 0*4 1; drawn 1; failure-1 1 0*3 10140800; failure-2 1 0 1 0 "
       "80208000; fences 3; messages 0*8 1 0*83 2 0*59 2; store 0 0 1"},
      {"the same", "m-syncflush", "wsp no-ddio",
       "bus 7; client-0 0 0 2 0 3 1; client-1 0 0 2 0 2; drawn 1; failure-2 1 0 1 0 108775872; "
       "failure-3 1 0 11; messages 0*53 2"},
      {"a full log that waits for what arrives in another one", "m-sync", "wsp no-ddio",
       "client-0 3; client-1 1; drawn 1; messages 0 0 2; store 0 1"},
      {"a backup that counted as lost because a sync point of an earlier term could not be passed "
       "on",
       "m-syncsec", "wsp ddio",
       "client-0 2 0 4 0 4; client-1 2 0 2 2 1; drawn 1; failure-2 1 0 4 0 15129301; failure-3 1 0 "
       "13 0 5109901; messages 0*87 2"},
      {"a promoted mirror without what had arrived and had not been reported", "m-syncflush",
       "wsp ddio",
       "client-0 0 0 3 1; client-1 3 0 2; drawn 1; failure-1 1 0 8; messages 0*44 2; promoted 1; "
       "store 0 1"},
      {"the same", "e-chain", "mhp ddio",
       "apart-1 3; client-0 1 0*3 4; client-1 0*4 2; drawn 1; failure-1 1; failure-3 1 0 5; "
       "messages 0*130 2; promoted 2; store 0 0 1"},
      {"a connection that failed to be made counted as made, so the region was loaded when it was "
       "in use",
       "m-async", "wsp no-ddio",
       "apart-1 3; apart-2 3; apart-3 6; client-0 0*6 1; client-1 0*4 1 0 1; failure-1 1 0 1 0 "
       "51455728; failure-2 1 3 0 0 5735128; failure-3 1 0 1; fences 3; stall-4 1 1 0 2 0 0 2"},
      {"the region was loaded from a copy that had been given up", "e-broadcast", "mhp ddio iwarp",
       "apart-1 4 1; apart-2 8 1; client-0 2 1 1; client-1 0 0 1; failure-1 1 0*3 29224300; "
       "failure-2 1 0 2; failure-3 1 0 1 0 31163600; patience 2 3; store 0*3 1"},
      {"the last complete copy was given up while the region was copied to others", "e-broadcast",
       "dmp no-ddio",
       "apart-2 4; client-0 0 0 1; failure-1 1 0*3 1378800; failure-2 1 3 0 0 84775000; failure-3 "
       "1 0 1; patience 2 3; store 0*3 1"},
      {"a copy that has to apply the end of the region was given the region again", "e-broadcast",
       "wsp ddio",
       "apart-1 7 2; apart-2 3 1; client-0 0*4 1; client-1 1 0 1; failure-1 1; failure-2 1 0 1 0 "
       "26576401; paused 2; yields 0*4 1 0*5 2 0*12 2"},
      {"one connection waited for a copy that another one had given up", "m-async",
       "dmp ddio iwarp",
       "apart-3 6; client-0 1 0 1 0 1; client-1 0*4 3 2; failure-1 1 0 1; failure-2 1 0 1 0 "
       "30839795; failure-3 1 0 1 0 86971201; fences 3; patience 2; paused 2; yields 0*28 2 0*7 2 "
       "0 2 0*3 1 0*4 1 1 0 1 1 2 2 2 2 0 1 1 0 2 2 2"},
      {"a full log waited for the region to be given, which waited for what could not arrive",
       "m-syncsec", "wsp ddio",
       "apart-1 7 2; apart-2 7; client-0 4 2 0 0 1 0 1; client-1 3 0 1 0 1 0 1; drawn 1; failure-1 "
       "1 0 16 0 9927301; failure-2 1 3 1; failure-3 1 0 2; messages 0*61 1 0*23 2; patience 1 1; "
       "store 0 1"},
      {"a copy counted as complete if it failed when it had begun a term", "m-syncsec", "wsp ddio",
       "apart-2 3; apart-3 8; client-0 2 1 1 0 2; client-1 0 0 2; failure-2 1 0 8; failure-3 1 0*3 "
       "56863300; fences 3; patience 2; store 0 0 1"},
      {"a promoted mirror went on as a mirror", "m-syncsec", "mhp ddio",
       "apart-3 5 3; bus 7; client-0 3 0 1; failure-2 1 3 7 0 13842301; failure-3 1 3 0 0 50000; "
       "promoted 1"},
      {"a backup counted as complete when a region was given to it that had been begun in another "
       "term",
       "m-syncsec", "wsp no-ddio iwarp",
       "apart-3 3; client-0 2 2 2 2 3; client-1 3 0 1 1 1; failure-2 1 0 12 0 21512100; failure-3 "
       "1 0 9 0 12966401; paused 2; store 0 2 1; yields 0*9 2 0*6 2 2 0*21 2 0 2 0*15 2 0 1 0*4 1 "
       "2 1 0 2 0 2 2 0 2 2 0 0 2 0 0 2"},
      {"a mirror answered before it had flushed what it had found", "m-syncflush",
       "dmp no-ddio iwarp",
       "apart-1 4; client-0 2; client-1 2; death-2 3 0 1 0*3 121430900; failure-1 1 3 6 0 "
       "31901831; failure-2 1 0*3 23163970; fences 3; image-2 0*13 1; paused 2; store 1 0 1; "
       "yields 0 1"},
      {"a second thread took what a first one was about to keep for durable", "e-chain",
       "dmp no-ddio",
       "apart-1 4; apart-2 7; client-0 1; client-1 1; failure-1 1 0*3 50000; failure-2 1 3 2; "
       "failure-3 1 0 2; patience 2"},
      {"a node of E-chain acknowledged what it had recovered and not passed on", "e-chain",
       "mhp ddio",
       "apart-1 5 1; apart-2 4; client-0 1; failure-1 1 0*3 50509728; failure-2 1 0*3 3259372; "
       "failure-3 1 0 2; promoted 2"},
      {"others went on alone before the primary had made durable that it is alone", "e-chain",
       "wsp no-ddio iwarp",
       "apart-1 4 1; apart-2 4; client-0 1; client-1 1; failure-1 1 0 1 0 44809800; failure-2 1 0 "
       "2 0 8409324; failure-3 1 0*3 1632676; fences 3; patience 2 3; store 0*3 1"},
      {"a connection that broke before it was answered counted as a copy that is not there",
       "m-sync", "wsp no-ddio iwarp",
       "apart-1 4; apart-2 3 1; client-0 3 1 3 1 4; client-1 2 0*3 1; death-1 3 0 1 2 5 0 "
       "87210701; failure-1 1 0 9 0 3815300; failure-2 1 0 3; paused 3; pauses 0*18 1; yields 0 2 "
       "1 0 0 2 0*3 2 0 1 1 0 0 2 2 0*4 2 0*16 2 0*3 1 0 1 0*4 2"},
      {"what the region that is given holds was passed on, too", "m-syncsec", "wsp no-ddio",
       "apart-1 7 1; apart-2 3 1; apart-3 4; client-0 1 0 2 0 1 1; client-1 0*4 2 0 3; failure-1 1 "
       "0 4; failure-2 1 0 1; failure-3 1; fences 3; patience 1 2"},
      {"an incomplete node of E-chain did not acknowledge what it had recovered", "e-chain",
       "wsp ddio",
       "apart-2 7; client-0 0 0 1; failure-1 1 0*3 50000; failure-2 1 0 1 0 31297701; fences 3"},
      {"a node of E-chain gave a region that it was still being given itself", "e-chain",
       "wsp no-ddio",
       "apart-1 5 2; apart-2 4; client-0 3 0 1 0 2; client-1 0*6 1; failure-1 1 0 5 0 10000401; "
       "failure-2 1 3 1; failure-3 1 0 2 0 7411201; patience 0 3; paused 2; yields 0*14 2 2 0*38 2 "
       "2 0 2 0*10 1 0 0 1 0 2 0 2 0 2"},
      {"a copy counted as given while it was given once more", "m-syncsec", "wsp ddio iwarp",
       "apart-1 3; apart-2 4; client-0 0 0 2 0 2; client-1 0 0 2 1 2; failure-1 1 3 1; failure-2 "
       "1; "
       "fences 3; stall-2 1 0 4 1; store 0 1 1"},
      {"a copy was asked to become the primary as it was being given the region", "e-chain",
       "wsp ddio iwarp",
       "client-0 0 0 1; failure-1 1 0*3 50000; failure-2 1 0 4; promoted 2; store 0 0 1"},
      {"a copy that failed as it ended a term showed a part of a sync point", "m-sync", "dmp ddio",
       "apart-1 3; client-0 1 0 1 0 1; client-1 2; drawn 1; failure-1 1 0 5 0 2081600; failure-2 1 "
       "3 1; failure-3 1; fences 3; image-3 0*6 1; messages 2"},
      {"a mirror waited for room in a log whose node followed another primary", "m-syncsec",
       "mhp ddio",
       "apart-2 5; apart-3 3; client-0 0 0 2 0 1; client-1 4 0 4 0*3 1; failure-1 1 0 9 0 3984801; "
       "failure-2 1 0 15; failure-3 1; paused 3; pauses 0*14 2; store 0 0 1; yields 0 2 0 2 0 0 2 "
       "2 2 0 2 0 1 0*9 2 0*14 1 1 1 0*6 1 2 2 0*5 1 2 1 2 0*4 2 0*16 2"},
      {"a backup that was promoted had what was behind a gap", "m-syncsec", "dmp no-ddio iwarp",
       "apart-2 4; bus 7; client-0 0 0 3 2; client-1 0 0 4; failure-2 1 0*3 50000; failure-3 1 0 "
       "15 0 1032000; promoted 2"},
      {"a mirror that the disk still lacked was given the region once more, with what had not been "
       "synced",
       "m-syncdisk", "dmp no-ddio",
       "apart-1 3; apart-3 3; client-1 0 0 1 0 1; failure-1 1 0*3 50000; failure-3 1"},
      {"a log whose slots another log's thread had saved was not told of it", "m-syncdisk",
       "dmp no-ddio",
       "apart-1 4 2; apart-2 4; apart-3 6; client-0 4; client-1 0 0 2; failure-1 1 3 1 0 "
       "126490945; failure-2 1 3 1; failure-3 1 3 1; paused 2; store 0 1; yields 0*4 2 0*3 1 0 0 2 "
       "0*13 1 2"},
  };
  for (const Found& found : kFound) {
    const SoakCase one =
        case_of(found.system, "persistence = correct", found.server, GuaranteeLevel::durable);
    Tape tape = Tape::parse(std::string(found.tape));
    EXPECT_EQ(run_once(one, soaked_testbed(), tape).loss, "") << one.name() << ": " << found.what;
  }
}

// What has survived the failure of another server may still be lost, and Erda promises no more than
// the order of changes.
TEST(Soak, TheFailureOfAnotherServerMakesNothingDurable) {
  const SoakCase one =
      case_of("erda", "persist_before_update", "dmp ddio", GuaranteeLevel::ordered);
  Tape tape = Tape::parse(
      "apart-1 3; apart-2 5; client-0 1 1 0*13 1 0 1 0 1; client-1 1 0*14 1; failure-1 1 0 7 0 "
      "1757520; failure-2 1 0*3 6708486; failure-3 1; image-3 0 1; store 0*5 3");
  const SoakRun run = run_once(one, soaked_testbed(), tape);
  EXPECT_EQ(run.kept, GuaranteeLevel::ordered) << run.loss;
}

}  // namespace
}  // namespace perdura::explore::test
