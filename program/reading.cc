// The commands that read result folders (report/program), with this program's progress display and
// interruption.
#include <memory>
#include <string>

#include "harness/run/long_work.h"
#include "program/commands.h"
#include "report/program/commands.h"

namespace perdura::program {

void add_reading(harness::Command& program, CommandContext& context) {
  for (const report::Command& command : report::commands()) {
    harness::Command& added =
        program.subcommand(std::string(command.name), std::string(command.what));
    const report::Work work = command.declare(added);
    added.does([work, &context] {
      if (!context.ranks.is_root()) return harness::ExitCode::done;
      const auto watch = [&context](std::size_t parts) {
        return std::make_unique<harness::LongWork>(parts, context.ranks);
      };
      return work({context.locations, watch, harness::LongWork::stop_if_interrupted});
    });
  }
}

}  // namespace perdura::program
