"""A calculator with a bug."""


def add(a: int, b: int) -> int:
    return a - b


def mean(values: list[int]) -> float:
    return sum(values) / len(values)
