// Emulations of Figure 5.7 of "Building Distributed Systems with Non-Volatile Main Memories and
// RDMA Networks" (section 5.4.4): only the data path of systems that give access to remote
// persistent memory, each with the indirection on its way to the device that the section names.
// None of them keeps metadata, or does more at the server than to have the memory registered, as
// one piece.
//
//   mojim-emu  the application stores to its own copy and calls msync; then a WRITE from that copy
//   lite-emu   the application writes its data into memory that it shares with a daemon, which
//              WRITEs it and answers there
//   orion-emu  the application calls pwrite, which copies the data; then a WRITE
//   local-mmap nothing is sent: non-temporal stores to the client's own persistent memory, and a
//              fence
#pragma once

#include <memory>
#include <string_view>

#include "bench/remote_file/remote_file.h"

namespace perdura::bench {

enum class Emulation : std::uint8_t { local_mmap, mojim, lite, orion };

std::unique_ptr<RemoteFile> emulate(Emulation emulation, const RemoteFileOptions& options,
                                    bool modelled);

}  // namespace perdura::bench
