"""The corpus of planted faults: reads tests/faults/*.toml, finds the places in the sources and writes a
tree in which every fault can be chosen when a program starts.

A file describes the faults of one component:

    suites = ["crash", "soak"]            # who is asked whether they notice, cheapest first (suites.py)
    systems = ["erda"]                    # of what "crash", "soak" and conformance tests are run; all if absent
    tests = ["perdura_erda_test"]         # the component's own tests, asked last

    [[fault]]
    name = "erda-..."                     # unique in the corpus
    file = "systems/erda/store.cc"
    what = "..."                          # the sentence or property that it breaks
    before = "..."                        # occurs exactly once in the file; white space may differ
    after = "..."

Any of the keys above may be repeated in a fault, which then overrides the file's. `hangs = true` says that the
fault is noticed by a suite that does not end. `part_of = "..."` narrows the search to the text after the first
occurrence of another snippet, for a `before` that a file has several times. A fault that takes several changes has
`also = [{before = "...", after = "..."}]`, in the same file.

If `before` ends with ';' or '}' it is statements, and becomes

    { if (perdura_fault("NAME")) { AFTER } else { BEFORE } }

else it is an expression, and becomes (perdura_fault("NAME") ? (AFTER) : (BEFORE)). Faults may have the same `before`,
and the `before` of one may lie within that of another.
"""

import dataclasses
import pathlib
import re
import tomllib

CORPUS = pathlib.Path(__file__).resolve().parent
HEADER = "platform/base/planted_fault.h"  # where the tree with faults has planted_fault.h

# The parts of the tree that a build needs. The corpus itself is not part of what is built.
NOT_COPIED = {".git", ".cache", "out", "tests/faults"}


class CorpusError(Exception):
    """A fault that cannot be planted, in one line."""


@dataclasses.dataclass
class Fault:
    name: str
    file: str
    what: str
    before: str
    after: str
    component: str
    suites: list
    systems: list
    tests: list
    hangs: bool
    part_of: str
    also: list  # further changes: faults of the same name


KEYS = {"name", "file", "what", "before", "after", "suites", "systems", "tests", "hangs", "part_of", "also"}


def read_corpus():
    """All faults, in the order of the files' names. Raises CorpusError."""
    faults = []
    for path in sorted(CORPUS.glob("*.toml")):
        try:
            content = tomllib.loads(path.read_text())
        except tomllib.TOMLDecodeError as problem:
            raise CorpusError(f"{path.name}: {problem}") from problem
        for entry in content.get("fault", []):
            name = entry.get("name", "(without a name)")
            if unknown := set(entry) - KEYS:
                raise CorpusError(f"{path.name}: {name}: unknown: {', '.join(sorted(unknown))}")
            if missing := {"name", "file", "what", "before", "after"} - set(entry):
                raise CorpusError(f"{path.name}: {name}: missing: {', '.join(sorted(missing))}")
            of_file = {key: entry.get(key, content.get(key, [])) for key in ("suites", "systems", "tests")}
            fault = Fault(
                name, entry["file"], entry["what"], entry["before"], entry["after"], path.stem,
                hangs=entry.get("hangs", False), part_of=entry.get("part_of", ""), also=[], **of_file,
            )
            fault.also = [dataclasses.replace(fault, part_of="", **change) for change in entry.get("also", [])]
            faults.append(fault)
    names = [fault.name for fault in faults]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise CorpusError(f"twice in the corpus: {', '.join(twice)}")
    return faults


# --- finding a fault's place ------------------------------------------------------------------------


def places_of(snippet, text):
    """The (begin, end) of each occurrence, whatever the white space between words."""
    pattern = r"\s+".join(re.escape(word) for word in snippet.split())
    return [match.span() for match in re.finditer(pattern, text)]


def place_of(fault, text):
    """Raises CorpusError unless there is exactly one."""
    start = 0
    if fault.part_of:
        parts = places_of(fault.part_of, text)
        if not parts:
            raise CorpusError(f"{fault.component}.toml: {fault.name}: 'part_of' is not in {fault.file}")
        start = parts[0][1]
        places = [(begin, end) for begin, end in places_of(fault.before, text) if begin >= start][:1]
    else:
        places = places_of(fault.before, text)
    if len(places) != 1:
        raise CorpusError(
            f"{fault.component}.toml: {fault.name}: 'before' occurs {len(places)} times in {fault.file}, not once"
        )
    if is_statements(fault.before) and not begins_a_statement(text, places[0][0]):
        raise CorpusError(
            f"{fault.component}.toml: {fault.name}: 'before' begins within a statement of {fault.file} and ends with it"
        )
    return places[0]


def is_whole(snippet):
    """Whether a snippet can be an expression or statements: each bracket in it is closed in it, and no statement is cut
    off before its end."""
    closing = {")": "(", "]": "[", "}": "{"}
    opened = []
    for character in snippet:
        if character in closing.values():
            opened.append(character)
        elif character in closing and (not opened or opened.pop() != closing[character]):
            return False
    statement = re.match(r"\s*(if|for|while|do|return|co_return|continue|break|throw)\b", snippet)
    if opened or statement and snippet.rstrip()[-1] not in ";}":
        return False
    return is_statements(snippet) or ";" not in outside_braces(snippet)


def is_statements(snippet):
    return snippet.rstrip().endswith((";", "}"))


def outside_braces(snippet):
    """A snippet without literals, and without what is in braces, such as the body of a lambda in an expression."""
    snippet = re.sub(r'"(\\.|[^"\\])*"|' + r"'(\\.|[^'\\])*'", "", snippet)
    while (shorter := re.sub(r"\{[^{}]*\}", "", snippet)) != snippet:
        snippet = shorter
    return snippet


def begins_a_statement(text, begin):
    """Whether a statement may begin at this place of a file: whatever is in front of it has ended."""
    before = re.sub(r"//[^\n]*", "", text[:begin]).rstrip()
    return before.endswith((";", "{", "}", ")", ":")) or re.search(r"\b(else|do)$", before) is not None


def check(faults, tree):
    """The problems of a corpus with a tree, one line each."""
    problems = [
        f"{fault.component}.toml: {fault.name}: '{name}' is neither an expression nor whole statements: {snippet}"
        for fault in faults
        for one in [fault, *fault.also]
        for name, snippet in [("before", one.before), ("after", one.after)]
        if not is_whole(snippet)
    ]
    for file in sorted({fault.file for fault in faults}):
        try:
            plant_in(file, [fault for fault in faults if fault.file == file], pathlib.Path(tree))
        except CorpusError as problem:
            problems += str(problem).splitlines()
    return problems


# --- planting ---------------------------------------------------------------------------------------


@dataclasses.dataclass
class Place:
    begin: int
    end: int
    faults: list
    within: list = dataclasses.field(default_factory=list)  # places inside this one


def nested(places):
    """Places as a forest, in the order of the text. Raises CorpusError if two overlap in part."""
    roots = []
    open_places = []
    for place in sorted(places, key=lambda place: (place.begin, -place.end)):
        while open_places and open_places[-1].end <= place.begin:
            open_places.pop()
        if open_places and open_places[-1].end < place.end:
            names = [fault.name for other in (open_places[-1], place) for fault in other.faults]
            raise CorpusError(f"overlap in part: {', '.join(names)}")
        (open_places[-1].within if open_places else roots).append(place)
        open_places.append(place)
    return roots


def with_faults(text, begin, end, places):
    """text[begin:end] with the faults of the places in it."""
    result = []
    for place in places:
        result.append(text[begin : place.begin])
        before = with_faults(text, place.begin, place.end, place.within)
        for fault in place.faults:
            after = fault.after.strip()
            if is_statements(fault.before):
                before = f'{{ if (perdura_fault("{fault.name}")) {{ {after} }} else {{ {before} }} }}'
            else:
                before = f'(perdura_fault("{fault.name}") ? ({after}) : ({before}))'
        result.append(before)
        begin = place.end
    return "".join(result) + text[begin:end]


def plant_in(file, faults, tree):
    """The file's text with its faults. Raises CorpusError with a line for each that cannot be planted."""
    path = tree / file
    if not path.is_file():
        raise CorpusError("\n".join(f"{fault.component}.toml: {fault.name}: there is no {file}" for fault in faults))
    text = path.read_text()
    places = {}
    problems = []
    for fault in [change for fault in faults for change in [fault, *fault.also]]:
        try:
            begin, end = place_of(fault, text)
            places.setdefault((begin, end), Place(begin, end, [])).faults.append(fault)
        except CorpusError as problem:
            problems.append(str(problem))
    if problems:
        raise CorpusError("\n".join(problems))
    planted = with_faults(text, 0, len(text), nested(places.values()))
    include = f'#include "{HEADER}"\n'
    if "#pragma once" in planted:
        return planted.replace("#pragma once\n", "#pragma once\n" + include, 1)
    return include + planted


def write_if_other(path, content):
    """Leaves files as they are that need not be compiled again."""
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def plant(faults, tree, into):
    """Makes `into` a copy of the tree in which the faults can be chosen. Raises CorpusError."""
    tree, into = pathlib.Path(tree).resolve(), pathlib.Path(into).resolve()
    if problems := check(faults, tree):
        raise CorpusError("\n".join(problems))
    by_file = {}
    for fault in faults:
        by_file.setdefault(fault.file, []).append(fault)
    kept = {into / HEADER}
    write_if_other(into / HEADER, (CORPUS / "planted_fault.h").read_bytes())
    pending = [tree]
    while pending:
        for path in sorted(pending.pop().iterdir()):
            name = path.relative_to(tree).as_posix()
            if name in NOT_COPIED or name.startswith("build") and path.parent == tree:
                continue
            if path.is_dir() and not path.is_symlink():
                pending.append(path)
                continue
            if not path.is_file():
                continue
            content = plant_in(name, by_file[name], tree).encode() if name in by_file else path.read_bytes()
            write_if_other(into / name, content)
            (into / name).chmod(path.stat().st_mode)
            kept.add(into / name)
    # Files that are gone from the tree go here, too; built files stay.
    for path in list(into.rglob("*")):
        if path.is_file() and path not in kept and not path.relative_to(into).parts[0].startswith("build"):
            path.unlink()
