"""The pre-check: what a command may do, told from its text alone. Pure; nothing is run or looked at."""

from veil.classify.assessing import assess
from veil.classify.base import CATEGORIES, Assessment, Effect, Segment

__all__ = ["CATEGORIES", "Assessment", "Effect", "Segment", "assess"]
