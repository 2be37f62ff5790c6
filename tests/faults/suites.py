"""The suites that are asked whether they notice a fault: tests and explorations that walk through tables of
platforms, systems, methods or rules, so that whatever joins a table is covered without a test written for it."""

import csv
import dataclasses
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time

SOAK_RUNS = 200  # of each setting of a system on each kind of server
LONG_SOAK_RUNS = 3000  # the same, for what a short soak rarely meets
SOAK_SEED = 1
MOST_SECONDS = 600  # of one suite
MOST_CPU_SECONDS = 180  # of one program of it, which takes at most 31 s without a fault: it does not end
MOST_SOAK_SECONDS = 600  # the same of a long soak; of three systems it takes more than 300 s


@dataclasses.dataclass
class Answer:
    noticed: bool
    test: str = ""  # which test noticed it, or which cell of the table, or which seed
    lines: int = 0  # of the message
    seconds: float = 0
    hung: bool = False
    output: str = ""


class Build:
    """A build folder, and the tree whose sources it was built from."""

    def __init__(self, folder, tree):
        self.folder = folder
        self.tree = tree
        self.program = folder / "perdura"

    def binary(self, name):
        return next(path for path in (self.folder / "tests").rglob(name) if path.is_file())

    def run(self, command, fault, seconds=MOST_SECONDS, until=None, cpu_seconds=MOST_CPU_SECONDS):
        """(exit code or None if it was ended after so long, output, seconds). Ends the command after a line that
        matches `until`, with code 1, and all its processes."""
        environment = dict(os.environ, PERDURA_FAULT=fault)
        begin = time.monotonic()
        lines, ended = [], []
        with tempfile.TemporaryDirectory(prefix="perdura-faults-") as folder:
            child = subprocess.Popen(
                ["prlimit", f"--cpu={cpu_seconds}:{cpu_seconds + 5}", *(str(word) for word in command)],
                cwd=folder, env=environment, text=True, errors="replace",
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
            )

            def end(code):
                ended.append(code)
                try:
                    os.killpg(child.pid, signal.SIGKILL)  # its group: what it started, too
                except ProcessLookupError:
                    pass

            clock = threading.Timer(seconds, end, [None])
            clock.start()
            for line in child.stdout:
                lines.append(line)
                if until and re.search(until, line):
                    end(1)
                    break
            child.stdout.read()
            code = child.wait()
            clock.cancel()
            if code < 0 and not ended:
                end(None if code in (-signal.SIGXCPU, -signal.SIGKILL) else code)
        return ended[0] if ended else code, "".join(lines), time.monotonic() - begin


def of_systems(systems, platform, suite):
    """A filter of parameterized tests, whose names end with those of their system and platform."""
    names = [name.replace("-", "_") for name in systems] or ["*"]
    if platform:
        return [f"*{suite}.*/{name}_{platform}" for name in names]
    return [f"*{suite}.*/{name}" for name in names] + [f"*{suite}.*/{name}_*" for name in names]


class Tests:
    """A program of GoogleTest."""

    def __init__(self, binary, only=(), without=(), by_system=False, platform="", suite="*"):
        self.target = binary
        self.only = list(only)
        self.without = list(without)
        self.by_system = by_system
        self.platform = platform
        self.suite = suite

    def ask(self, build, fault, systems):
        wanted = ":".join(self.only or (of_systems(systems, self.platform, self.suite) if self.by_system else [])) or "*"
        unwanted = ":".join(self.without + ["*verbs*", "Verbs*"])
        code, output, seconds = build.run(
            [build.binary(self.target), "--gtest_fail_fast", "--gtest_color=no", "--gtest_brief=0",
             f"--gtest_filter={wanted}-{unwanted}"], fault
        )
        if code == 0:
            return Answer(False, seconds=seconds)
        begun = list(re.finditer(r"^\[ RUN      \] (\S+)\n", output, re.MULTILINE))
        last = begun[-1] if begun else None
        failed = re.search(r"^\[  FAILED  \] (\S+)", output, re.MULTILINE)
        name = failed[1] if failed and code is not None else last[1] if last else self.target
        start = next((match.end() for match in begun if match[1] == name.rstrip(",")), 0)
        message = output[start : failed.start() if failed and failed.start() > start else len(output)]
        if code is not None and code < 0:
            name += f" ({signal.Signals(-code).name})"
        return Answer(True, name.rstrip(","), len(message.splitlines()), seconds, code is None, message)


class Crash:
    """perdura guarantees: the power fails at every moment of small histories; compared with the committed table."""

    target = "perdura"

    def ask(self, build, fault, systems):
        code, output, seconds = build.run([build.program, "guarantees", "--json", "-o", "tables", *systems], fault)
        if code != 0:
            return Answer(True, "does not end" if code is None else f"exit code {code}", len(output.splitlines()),
                          seconds, code is None, output)
        found = json.loads(output[output.index("{") : output.rindex("}") + 1])["tables"][-1]
        with open(build.tree / "explore" / "explored.csv", newline="") as file:
            header, *rows = csv.reader(file)
        expected = {row[0]: dict(zip(header[1:], row[1:])) for row in rows}
        for row in found["rows"]:
            for column, cell in zip(found["header"][1:], row[1:]):
                if (should := expected[row[0]][column]) != cell:
                    output = self.explain(build, fault, row[0], column)
                    test = f"{row[0]} on {column}: {cell} instead of {should}"
                    return Answer(True, test, len(output.splitlines()), seconds, output=output)
        return Answer(False, seconds=seconds)

    @staticmethod
    def explain(build, fault, row, column):
        system, *settings = row.split(", ")
        domain, ddio, *transport = column.split(" ")
        command = [build.program, "crash", system, "--domain", domain, "--ddio", "on" if ddio == "ddio" else "off"]
        command += ["--transport", transport[0] if transport else "ib"]
        for setting in settings:
            if setting == "persistence = correct":
                command += ["--persistence", "correct"]
            else:
                command += ["--parameter", f"{setting}=true"]
        return build.run(command, fault)[1]


class Sequences:
    """perdura crash --strategy sequences:N: the power fails at every moment of every short sequence of operations."""

    target = "perdura"

    def __init__(self, length, stride=1):
        self.length = length
        self.stride = stride

    def ask(self, build, fault, systems):
        seconds = 0
        for system in systems:
            code, output, took = build.run(
                [build.program, "crash", system, "--strategy", f"sequences:{self.length}", "--points", f"/{self.stride}", "--domain", "dmp",
                 "--ddio", "off", "--transport", "ib"], fault)
            seconds += took
            if code != 0:
                found = re.search(r"^sequence .*$", output, re.MULTILINE)
                return Answer(True, found[0] if found else f"exit code {code}", len(output.splitlines()), seconds,
                              code is None, output)
        return Answer(False, seconds=seconds)


class Soak:
    """perdura soak: generated runs, the same ones each time."""

    target = "perdura"

    def __init__(self, runs=SOAK_RUNS, cpu_seconds=MOST_CPU_SECONDS):
        self.runs = runs
        self.cpu_seconds = cpu_seconds

    def ask(self, build, fault, systems):
        code, output, seconds = build.run(
            [build.program, "soak", "--runs", self.runs, "--minutes", 60, "--seed", SOAK_SEED, "-o", "soak", *systems],
            fault, until="^perdura crash --replay ", cpu_seconds=self.cpu_seconds,
        )
        if code == 0:
            return Answer(False, seconds=seconds)
        found = re.search(r"^(.*): kept (.*) instead of (.*) \(seed .*\)$", output, re.MULTILINE)
        first = output[found.start() :].split("\nperdura crash --replay", 1)[0] if found else output
        return Answer(True, found[0] if found else f"exit code {code}", len(first.splitlines()), seconds, code is None,
                      output)


class References:
    """The simulated experiments give the committed results, digit for digit."""

    target = "perdura"

    alone = threading.Lock()  # all write into the same folders

    def ask(self, build, fault, systems):
        with self.alone:
            code, output, seconds = build.run(
                ["ctest", "--test-dir", build.folder, "-R", "^Reference[.]", "-E", "guarantees", "--stop-on-failure",
                 "--output-on-failure"], fault
            )
        failed = re.search(r"Test +#\d+: (\S+) .*\*\*\*", output)
        return Answer(code != 0, failed[1] if failed else "", len(output.splitlines()), seconds, code is None, output)


# Suites that are generic: what is in a table is tried without a test of its own.
GENERIC = {
    "platform-sim": Tests("perdura_platform_test", only=["Sim/*", "SimLate/*"]),
    "platform-shm": Tests("perdura_platform_test", only=["Shm/*", "ShmEager/*", "ShmDelayed/*"]),
    "platform-sockets": Tests("perdura_platform_test", only=["ShmSockets/*", "SimSockets/*"]),
    "sockets": Tests("perdura_shm_test", only=["*TcpSockets*", "*TcpExtents*"]),
    "litmus-sim": Tests("perdura_litmus_test", only=["*OnSim*"]),
    "litmus-shm": Tests("perdura_litmus_test", only=["*OnShm*"]),
    "translation": Tests("perdura_platform_test", only=["PinDownCache.*", "RangeMtt.*", "FlatMtt.*"]),
    "translation-sim": Tests("perdura_sim_test", only=["TranslationCache.*", "Translation.*", "NicTranslation.*"]),
    # APPENDs, and accesses of files by filekey, in all orders of their steps and those of changes of the layout.
    "append-orders": Tests("perdura_sim_test", only=["AppendOrders.*"]),
    "file-orders": Tests("perdura_novad_test", only=["NovadOrders.*"]),
    "filekeys": Tests("perdura_novad_test", only=["*NovadFilekeys.*/sim", "NovadReadsOnAModel.*"]),
    # Clients of FileMR's log that die.
    "log-clients": Tests("perdura_filemr_log_test", only=["FileMrLogOfADeadClient.*"]),
    "log-kill": Tests("perdura_filemr_log_test", only=["*KillOfTheFileMrLog.EndsTheClient*shm*"]),
    "trace": Tests("perdura_trace_test"),
    "replay": Tests("perdura_bench_trace_test"),
    "measure": Tests("perdura_measure_test"),
    "workload": Tests("perdura_workload_test"),
    "checker": Tests("perdura_history_test"),
    "linearizability": Tests("perdura_services_test"),
    "rpc": Tests("perdura_rpc_test"),
    "strategies": Tests("perdura_strategies_test"),
    "schedules": Tests("perdura_explore_test", only=["Strategies.*", "Strategy/*"]),
    "search": Tests("perdura_explore_test", only=["TapeSearches.*", "Tape.*", "Soak.*"]),
    "durability-sim": Tests("perdura_sim_test", only=["WhatMakesDurable.*"]),
    "restart": Tests("perdura_sim_test", only=["SimRestart.*"]),
    "restarted-once": Tests("perdura_explore_test", only=["RestartedOnce.*"]),
    # Replicated memory: all orders in which nodes fail, return or are promoted; and ranges of any bytes.
    "failure-orders": Tests("perdura_explore_test", only=["*FailureOrders*", "*PromotionOrders*"]),
    "return-orders": Tests("perdura_explore_test", only=["*ReturnOrders*"]),
    "bytes": Tests("perdura_explore_test", only=["Soak.SyncPointsAreOfAnyBytes"]),
    # Failures of one server alone, and of the others while it is away.
    "alone": Tests("perdura_explore_test", only=["Soak.EachServerFailsAloneAndTheOthersWhileItIsAway"]),
    # More copies than the fewest, sync points over pages.
    "more-copies": Tests("perdura_explore_test", only=["Soak.SyncPointsGoOverPagesAndToMoreCopiesThanTheFewest"]),
    "lengths": Tests("perdura_explore_test", only=["Each/SoakMeets.BoundariesOfLengths/*"]),
    "restarted": Tests("perdura_explore_test", by_system=True, suite="Restarted"),
    # File systems: a death, work, and a power failure; and the kernel and programs around them.
    "life": Tests("perdura_fs_test", by_system=True, suite="/FsLife"),
    # Operations of all kinds, by one mount and by two.
    "files": Tests("perdura_fs_test", by_system=True, platform="sim", suite="FsConformance"),
    "mounts": Tests("perdura_fs_test", by_system=True, platform="sim", suite="FsMounts"),
    "repairs": Tests("perdura_nova_test", only=["NovaRepair.*"]),
    "mount": Tests("perdura_mount_test",
                   only=["*FsSpaceTest*", "*FsCachesTest*", "*FsDirectoryTest*", "*FsAccessListTest*"]),
    "mount-trace": Tests("perdura_mount_test", only=["*FsTrace*"]),
    "model": Tests("perdura_model_test"),
    "proofs": Tests("perdura_methods_test"),
    "methods": Tests("perdura_remote_persistence_test", without=["*Kill*", "*shm*"]),
    "faults": Tests("perdura_system_faults_test", by_system=True),
    "conformance": Tests("perdura_kv_test", by_system=True, platform="sim"),
    "conformance-shm": Tests("perdura_kv_test", by_system=True, platform="shm"),
    "memory": Tests("perdura_memory_test", by_system=True, platform="sim"),
    "nodes": Tests("perdura_explore_test", by_system=True, suite="OneNode"),
    "log": Tests("perdura_remote_log_test", without=["Cells*", "*Kill*"]),
    "crash": Crash(),
    "long-fences": Tests("perdura_explore_test", by_system=True, suite="/Crashes"),
    "small-stores": Tests("perdura_explore_test", by_system=True, suite="CrashesInSmallStores"),
    "sequences": Sequences(1),
    "pairs": Sequences(2, 3),
    "soak": Soak(),
    "long-soak": Soak(LONG_SOAK_RUNS, MOST_SOAK_SECONDS),
    "kill": Tests("perdura_kill_test", by_system=True),
    "references": References(),
    # Pools and active data objects: on both engines, all pairs of operations, all moments of small histories.
    "objects": Tests("perdura_objects_test", without=["*shm*"]),
    "objects-crash": Tests("perdura_explore_test", only=["ObjectsCrashes.*"]),
    "objects-kill": Tests("perdura_mcas_kills_test", only=["KillsOfMcas.LoseNothing"]),
    "pools": Tests("perdura_mcas_pools_test", without=["Hostile.WhateverIsSentHarmsNobodyElse", "*TenThousand*"]),
    "operations": Tests("perdura_mcas_invocations_test", only=["Locks.*"]),
    "invocations": Tests("perdura_mcas_invocations_test", without=["*shm*"]),
    "ado": Tests("perdura_mcas_ado_test", without=["*shm*"]),
    "containers": Tests("perdura_mcas_containers_test"),
    "cluster": Tests("perdura_mcas_cluster_test"),
    "clients": Tests("perdura_library_mcas_test", only=["McasClient.*", "McasHistory.*", "*/McasHistory.*"]),
    "mirror": Tests("perdura_orion_test", only=["OrionMirror.*"]),
    "moving": Tests("perdura_library_mcas_test", only=["KillOfAMcasMover.*"]),
}


def suite(name):
    """A generic suite, or a test program of a component."""
    return GENERIC[name] if name in GENERIC else Tests(name)


def is_generic(name):
    return name in GENERIC
