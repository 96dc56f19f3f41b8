"""Turns prices.csv into out/report.txt. With --strict a row that cannot be read is an error."""

import csv
import sys
from pathlib import Path


def total(rows):
    """Sum of quantity times price, and the numbers of the lines that could not be read."""
    amount, bad = 0.0, []
    for number, row in enumerate(rows, 2):
        try:
            amount += int(row["quantity"]) * float(row["price"])
        except ValueError:
            bad.append(number)
    return amount, bad


def main():
    with Path("prices.csv").open(newline="", encoding="utf-8") as file:
        amount, bad = total(csv.DictReader(file))
    for number in bad:
        print(f"prices.csv:{number}: quantity or price is not a number", file=sys.stderr)
    if bad and "--strict" in sys.argv:
        return 1
    Path("out").mkdir(exist_ok=True)
    Path("out/report.txt").write_text(f"total {amount:.2f}\n", encoding="utf-8")
    print(f"out/report.txt: total {amount:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
