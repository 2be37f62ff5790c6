#!/usr/bin/env python3
"""quoted_numbers.py SOURCE: numbers that documents quote are those of the reference results.

A row of quoted_numbers.toml has a document, a piece of its text in which {} stands for a number, and where each of these
numbers comes from:

  of     experiment, column, and what the rows must have (COLUMN=VALUE; operation=all unless it says another one)
  by     the same: what the former is divided by, row by row of the same number of clients
  less   true: not the quotient, but by how many percent it is less than 1
  scale  a factor between units

Of several rows the mean counts. A number agrees if it is the right one when it is rounded to as many digits.
"""

import csv
import pathlib
import re
import sys
import tomllib


def means(source, where):
    """By the number of clients, of those experiments that vary it."""
    experiment, column, *conditions = where.split()
    wanted = {"operation": "all"} | dict(condition.split("=") for condition in conditions)
    with open(source / "results/reference" / experiment / "points.csv", newline="") as file:
        found = {}
        for row in csv.DictReader(file):
            if row[column] and all(row[name] == value for name, value in wanted.items()):
                found.setdefault(row.get("clients"), []).append(float(row[column]))
    if not found:
        raise SystemExit(f"no row of {where}")
    return {clients: sum(each) / len(each) for clients, each in found.items()}


def expected(source, value):
    numbers = means(source, value["of"])
    if "by" in value:
        divisors = means(source, value["by"])
        numbers = {clients: number / divisors[clients] for clients, number in numbers.items()}
    number = sum(numbers.values()) / len(numbers)
    if value.get("less"):
        number = 100 * (1 - number)
    return number * value.get("scale", 1)


def digits(text):
    return len(text.partition(".")[2])


def main():
    source = pathlib.Path(sys.argv[1])
    rows = tomllib.loads((source / "tests/scripts/quoted_numbers.toml").read_text())["quote"]
    wrong = 0
    for row in rows:
        document = " ".join((source / row["document"]).read_text().split())
        pattern = r"([0-9]+(?:\.[0-9]+)?)".join(re.escape(part) for part in row["text"].split("{}"))
        found = re.findall(pattern, document)
        if len(found) != 1:
            print(f"{row['document']}: '{row['text']}' is there {len(found)} times, not once")
            wrong += 1
            continue
        said = [found[0]] if isinstance(found[0], str) else found[0]
        if len(said) != len(row["values"]):
            print(f"{row['document']}: '{row['text']}' has {len(said)} numbers and {len(row['values'])} values")
            wrong += 1
            continue
        for text, value in zip(said, row["values"]):
            number = expected(source, value)
            if abs(number - float(text)) > 0.5000001 * 10 ** -digits(text):
                print(f"{row['document']}: '{row['text']}' says {text}; {value['of']} is {number:.6g}")
                wrong += 1
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
