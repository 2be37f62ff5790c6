// The program of a process of active data objects, which a shard starts: perdura-ado.
#include "platform/host/child_main.h"
#include "systems/mcas/ado/program/program.h"

#if defined(__SANITIZE_ADDRESS__)
// An isolated process starts no thread that could search it for leaks.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
#endif

int main() { return perdura::run_child(perdura::systems::mcas::ado::ado_program()); }
