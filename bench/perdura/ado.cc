// The program of a process of active data objects, which a shard starts: perdura-ado.
#include "platform/host/child_main.h"
#include "systems/mcas/ado/program/program.h"

int main() { return perdura::run_child(perdura::systems::mcas::ado::ado_program()); }
