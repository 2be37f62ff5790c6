// perdura-ado: the program of an ADO process, which a shard starts.
#include "platform/host/child_main.h"
#include "systems/mcas/ado/program/program.h"

#if defined(__SANITIZE_ADDRESS__)
// An isolated process cannot start the thread that would search it for leaks.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
#endif

int main() { return perdura::run_child(perdura::systems::mcas::ado::ado_program()); }
