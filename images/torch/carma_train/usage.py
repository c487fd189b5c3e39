"""Wrong arguments: one line, exit code 2."""

import argparse
import sys

from .catalogue import nearest

EXIT_USAGE = 2


class UsageError(Exception):
    """The fault, its place, and what to do, in one line."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        complain(message)


def complain(message):
    print(f"carma-train: {message}", file=sys.stderr)
    sys.exit(EXIT_USAGE)


def word(names):
    """The type of an argument that is one of some words."""
    def parse(text):
        if text not in names:
            raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(names)}; the nearest is {nearest(text, names)}")
        return text

    return parse


def number(least, most, of=int):
    """The type of an argument that is a number of a range."""
    def parse(text):
        try:
            value = of(text)
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            kind = "a whole number" if of is int else "a number"
            close = "" if value is None or value != value else f"; the nearest is {min(max(value, least), most)}"
            raise argparse.ArgumentTypeError(f"{text!r} is not {kind} from {least} to {most}{close}")
        return value

    return parse
