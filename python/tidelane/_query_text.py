"""Texts of queries (src/predicate/text.h): how names and constants are written, and names of an enumeration's members in them."""

from __future__ import annotations

import math
import numbers
import re
from typing import Any, Callable, Mapping, Optional

_PLAIN = re.compile(r"(?!\.[0-9])[A-Za-z_/.][A-Za-z0-9_/.]*")
_WORDS = {"and", "or", "not", "between", "in", "isnan", "inf", "nan", "true", "false"}
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# A number's sign is an operator's here, and of no interest.
_TOKEN = re.compile(
    r"""(?P<string>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|(?P<quoted>`(?:``|[^`])*`)|(?P<name>[^\W\d][\w/.]*|[/.][\w/.]*)"""
    r"""|(?P<op><>|[=!<>]=?)|(?P<number>[0-9.][\w.]*)|(?P<other>\S)""",
    re.S,
)


def name(column: str) -> str:
    if _PLAIN.fullmatch(column) and column.lower() not in _WORDS:
        return column
    return "`" + column.replace("`", "``") + "`"


def string(value: str) -> str:
    escape = lambda char: _ESCAPES.get(char, char if char > "\x1f" and char != "\x7f" else f"\\x{ord(char):02x}")  # noqa: E731
    return "'" + "".join(map(escape, value)) + "'"


def constant(value: Any) -> str:
    """A number, a truth value or a string of Python or NumPy; TypeError: none of these."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if getattr(value, "ndim", 0) != 0:
        raise TypeError(f"a column is compared with one constant, not with an array of shape {value.shape}")
    if kind == "f" and value.dtype.itemsize > 8:  # more digits than Python's own
        return _extended(value)
    if kind and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        value = float(value)
        return repr(value) if math.isfinite(value) else "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, bytes):
        return string(value.decode("utf-8", "surrogateescape"))
    if isinstance(value, str):
        return string(value)
    raise TypeError(f"a column is compared with a number, a truth value or a string, not with {type(value).__name__}")


def _extended(value: Any) -> str:
    import numpy

    return numpy.format_float_scientific(value) if numpy.isfinite(value) else constant(float(value))


def _unquoted(token: str) -> str:
    """Members' names have no escapes but these."""
    return re.sub(r"\\(.)", r"\1", token[1:-1])


def _column(token: Any) -> Optional[str]:
    if token.lastgroup == "quoted":
        return token[0][1:-1].replace("``", "`")
    return token[0] if token.lastgroup == "name" and token[0].lower() not in _WORDS else None


def with_members(text: str, members_of: Callable[[str], Optional[Mapping[str, int]]]) -> str:
    """The text with numbers in place of names of an enumeration's members: the strings that are compared with such a column.

    ValueError: the enumeration has no such member.
    """
    tokens = list(_TOKEN.finditer(text))
    parts, end, column = [], 0, None
    for index, token in enumerate(tokens):
        column = _column(token) or column
        if token.lastgroup != "string":
            continue
        ahead = tokens[index + 1 : index + 3]
        of = _column(ahead[1]) if len(ahead) == 2 and ahead[0].lastgroup == "op" else column  # 'a' == x, or x == 'a'
        members = members_of(of) if of is not None else None
        if members is None:
            continue
        member = _unquoted(token[0])
        if member not in members:
            raise ValueError(f"column {of!r} is of an enumeration that has no {member!r}; it has {', '.join(map(repr, members))}")
        parts += [text[end : token.start()], str(int(members[member]))]
        end = token.end()
    return "".join(parts) + text[end:]
