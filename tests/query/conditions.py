"""Random queries: their text, and what is to be found.

A tree's conditions say of each of a column's pool whether it matches, by comparing Python's own exact numbers (or bytes).
"""

import dataclasses
import math
import operator
import re

import numpy as np
from kinds import FORMATS, INF, Fraction, exact_of, nearest

OPERATORS = {
    "==": operator.eq, "=": operator.eq, "!=": operator.ne, "<>": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
MOST_DOUBLE = int(np.finfo(np.float64).max)
WORDS = {"and", "or", "not", "between", "in", "isnan", "inf", "nan", "true", "false"}


@dataclasses.dataclass
class Column:
    """As a query sees it."""

    name: str
    stored: object
    place: object
    rounds: object = None  # float_format that constants are rounded to


@dataclasses.dataclass
class Query:
    text: str
    strength: int  # of what binds its text: 0 or, 1 and, 2 not and conditions
    find: object  # () -> array of bool
    columns: set


def quoted(name):
    """A name in a text."""
    plain = re.fullmatch(r"[A-Za-z_/.][A-Za-z0-9_/.]*", name) and name.lower() not in WORDS and not re.match(r"\.[0-9]", name)
    return name if plain else "`" + name.replace("`", "``") + "`"


class Constants:
    """Draws constants at, around and away from what a column has: (text, exact value)."""

    def __init__(self, rng):
        self.rng = rng

    def draw(self, column):
        kind = column.place.kind
        element = self.rng.choice(kind.exact)
        return self.text(element) if kind.is_text else self.number(element)

    def text(self, element):
        rng = self.rng
        draw = rng.random()
        if draw < 0.2:
            element = element[: rng.randint(0, len(element))]
        elif draw < 0.4:
            element += rng.choice((b"\0", b" ", b"a", b"\xff"))
        elif draw < 0.5:
            element = rng.choice((b"", b"\xff\xff", b"zz", "ä€".encode()))
        quote = rng.choice("'\"")
        return quote + "".join(self.byte(byte, quote) for byte in element) + quote, element

    def byte(self, byte, quote):
        character = chr(byte)
        if byte == 0x5C or character == quote:
            return "\\" + character
        if byte >= 0x80 and self.rng.random() < 0.5:
            return "\\%03o" % byte
        if byte < 0x20 or byte >= 0x7F:
            return "\\x%02x" % byte
        return bytes([byte]).decode("ascii", "surrogateescape")

    def number(self, element):
        rng = self.rng
        draw = rng.random()
        if draw < 0.06:
            return rng.choice((("nan", math.nan), ("-nan", math.nan), ("inf", INF), ("-inf", -INF), ("+ inf", INF), ("1e400", INF), ("-1e999", -INF)))
        if draw < 0.12:
            return rng.choice((("True", 1), ("false", 0), ("0x10", 16), ("-0.0", Fraction(0)), ("-0", 0), ("1e-400", Fraction(0))))
        if isinstance(element, float):  # nan and inf have no neighbours
            element = rng.choice((0, 1, MOST_DOUBLE, Fraction(1, 3)))
        if draw < 0.75:
            return self.near(element)
        if draw < 0.9:
            return self.decimal(rng.choice((rng.uniform(-3, 3), rng.gauss(0, 1e5), 1e300, -1e300, 5e-324, 1e-310, 0.1, 65520.0, 3.4028235677973366e38)))
        return self.integer(rng.choice((2**64, -(2**63) - 1, 2**63, 2**64 + 1, 10**30, -(10**25), 2**53 + 1, rng.randint(-300, 300), 2049, 16777217)))

    def near(self, element):
        """The element, or one of its neighbours."""
        rng = self.rng
        if Fraction(element).denominator == 1 and rng.random() < 0.7 and abs(element) <= MOST_DOUBLE:
            whole = int(element) + rng.choice((0, 0, 0, 1, -1))
            if rng.random() < 0.6:
                return self.integer(whole)
            return self.decimal(float(whole) + rng.choice((0.0, 0.5, -0.5, 0.25, 1e-9)))
        if rng.random() < 0.2:
            return self.long_decimal(element)
        try:
            number = float(element)
        except OverflowError:
            number = 1e308 if element > 0 else -1e308
        return self.decimal(rng.choice((number, number, math.nextafter(number, INF), math.nextafter(number, -INF), -number, number / 2)))

    def integer(self, number):
        rng = self.rng
        if abs(number) > MOST_DOUBLE:
            number = MOST_DOUBLE if number > 0 else -MOST_DOUBLE
        digits = hex(abs(number)) if rng.random() < 0.2 else str(abs(number))
        sign = "-" if number < 0 else rng.choice(("", "", "+"))
        if sign and rng.random() < 0.2:
            sign += " "
        if abs(number) >= 2**64:
            number = int(exact_of(np.longdouble(str(abs(number))))) * (1 if number > 0 else -1)
        return sign + digits, number

    def decimal(self, number):
        if math.isinf(number) or math.isnan(number):
            return "1e400", INF
        text = self.rng.choice((repr(number), f"{number:.17e}", f"{number:.4g}", f"{number:+.6e}", f"{number:.20f}"))
        if re.fullmatch(r"[-+]?[0-9]+", text):
            text += self.rng.choice((".", ".0", "e0"))
        return text, exact_of(np.float64(text))

    def long_decimal(self, element):
        number = np.longdouble("0.1")
        if element == 0 or Fraction(1, 10**250) < abs(element) < 10**300:
            number = np.ldexp(np.longdouble(str(element.numerator)), 1 - element.denominator.bit_length())
        text = np.format_float_positional(number, unique=True) if abs(number) > 1e-30 else np.format_float_scientific(number, unique=True)
        return f"{text}L", exact_of(np.longdouble(text))


class Queries:
    """Draws queries about columns; `of_column`: constants are rounded to floating columns' types."""

    def __init__(self, rng, columns, of_column):
        self.rng, self.columns, self.of_column = rng, columns, of_column
        self.constants = Constants(rng)

    def draw(self, most_depth=4):
        query = self.tree(self.rng.randint(0, most_depth))
        if self.rng.random() < 0.2:
            query.text = f" {query.text}\t"
        return query

    def tree(self, depth):
        rng = self.rng
        if depth == 0 or rng.random() < 0.15:
            return self.condition(rng.choice(self.columns))
        if rng.random() < 0.2:
            of = self.tree(depth - 1)
            text = of.text if of.strength == 2 and rng.random() < 0.5 else f"({of.text})"
            return Query(rng.choice(("not ", "!", "~", "NOT ")) + text, 2, lambda: ~of.find(), of.columns)
        strength = rng.randint(0, 1)
        parts = [self.tree(depth - 1) for _ in range(rng.choice((2, 2, 2, 3, 5)))]
        sign = rng.choice((" and ", " && ", "&", " AND ") if strength else (" or ", " || ", "|", " Or "))
        texts = [part.text if part.strength > strength and rng.random() < 0.7 else f"({part.text})" for part in parts]
        join = np.logical_and.reduce if strength else np.logical_or.reduce
        return Query(sign.join(texts), strength, lambda: join([part.find() for part in parts]), set().union(*(part.columns for part in parts)))

    def condition(self, column):
        rng = self.rng
        name, forms = quoted(column.name), ["plain"] * 6 + ["turned", "chain", "between", "between", "in"]
        if not column.place.kind.is_text:
            forms.append("isnan")
        form = rng.choice(forms)
        if form == "isnan":
            return self.made(column, f"isNaN ({name})", lambda element: element != element)
        (text, value), (text2, value2) = self.constants.draw(column), self.constants.draw(column)
        if form == "in":
            return self.in_list(column, name)
        value, value2 = self.rounded(column, value), self.rounded(column, value2)
        if form == "between":
            test = lambda element: value <= element <= value2  # noqa: E731
            return self.perhaps_not(column, name, f"BETWEEN {text} and {text2}", test)
        sign = rng.choice(sorted(OPERATORS))
        space = rng.choice((" ", ""))
        if form == "plain":
            return self.made(column, f"{name}{space}{sign}{space}{text}", lambda element: OPERATORS[sign](element, value))
        if form == "turned" or sign not in TURNED:
            return self.made(column, f"{text}{space}{sign}{space}{name}", lambda element: OPERATORS[sign](value, element))
        sign2 = rng.choice([other for other in TURNED if other[0] == sign[0]])
        test = lambda element: OPERATORS[sign](value, element) and OPERATORS[sign2](element, value2)  # noqa: E731
        return self.made(column, f"{text} {sign} {name} {sign2} {text2}", test)

    def in_list(self, column, name):
        constants = [self.constants.draw(column) for _ in range(self.rng.choice((1, 2, 3, 9)))]
        values = [self.rounded(column, value) for _, value in constants]
        opening, closing = self.rng.choice(("()", "[]"))
        text = f"in {opening}{', '.join(text for text, _ in constants)}{closing}"
        return self.perhaps_not(column, name, text, lambda element: any(element == value for value in values))

    def perhaps_not(self, column, name, text, test):
        if self.rng.random() < 0.3:
            return self.made(column, f"{name} not {text}", lambda element: not test(element))
        return self.made(column, f"{name} {text}", test)

    def rounded(self, column, value):
        return nearest(value, column.rounds) if self.of_column and column.rounds and not isinstance(value, bytes) else value

    def made(self, column, text, test):
        place = column.place
        matches = np.array([bool(test(element)) for element in place.kind.exact])
        return Query(text, 2, lambda: matches[place.codes], {column.name})


def rounding_of(kind, size):
    """What a scan compares elements of this kind as, of `size` bytes."""
    return FORMATS[size] if kind.float_format == "converted" else kind.float_format
