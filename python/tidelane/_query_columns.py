"""Conditions written with Python's operators: `c = columns(group)`, then `(c.Energy > 1.9) & (c.x < 3)`.

Conditions are texts of the grammar (src/predicate/text.h) in the end. Constants count as in NumPy 2: Python's numbers take the
column's type, NumPy's floating scalars are what they are.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, Union

from . import _query_sources, _query_text

DtypeOf = Callable[[str], Any]  # of a column; None: it is not known


class Condition:
    """Which elements match; combined by &, | and ~."""

    def text(self, dtype_of: DtypeOf, exact: bool) -> str:
        """In the grammar; `exact`: constants are to be taken as they are written."""
        raise NotImplementedError

    def is_exact(self) -> bool:
        """Whether a constant is in it that does not take its column's type."""
        raise NotImplementedError

    def __and__(self, other: Any) -> Condition:
        return _Joined("and", self, _condition(other))

    def __rand__(self, other: Any) -> Condition:
        return _Joined("and", _condition(other), self)

    def __or__(self, other: Any) -> Condition:
        return _Joined("or", self, _condition(other))

    def __ror__(self, other: Any) -> Condition:
        return _Joined("or", _condition(other), self)

    def __invert__(self) -> Condition:
        return _Not(self)

    def __bool__(self) -> bool:
        raise TypeError(
            "a condition on columns has no truth value of its own: join conditions by & | ~ and not by and, or, not, each in parentheses, as "
            "(c.x > 1) & (c.y < 2), and write 0 < c.x < 1 as (c.x > 0) & (c.x < 1)"
        )

    def __str__(self) -> str:
        return self.text(lambda _: None, False)

    def __repr__(self) -> str:
        return f"<condition {self}>"


def _condition(value: Any) -> Condition:
    if isinstance(value, Condition):
        return value
    raise TypeError(f"a condition on columns is joined with another one, not with {type(value).__name__}: are its comparisons in parentheses?")


class _Joined(Condition):
    def __init__(self, word: str, left: Condition, right: Condition) -> None:
        self._word, self._parts = word, (left, right)

    def text(self, dtype_of: DtypeOf, exact: bool) -> str:
        return "(" + f" {self._word} ".join(part.text(dtype_of, exact) for part in self._parts) + ")"

    def is_exact(self) -> bool:
        return any(part.is_exact() for part in self._parts)


class _Not(Condition):
    def __init__(self, of: Condition) -> None:
        self._of = of

    def text(self, dtype_of: DtypeOf, exact: bool) -> str:
        return f"not ({self._of.text(dtype_of, exact)})"

    def is_exact(self) -> bool:
        return self._of.is_exact()


class _Compared(Condition):
    """A column, and constants; `form` has their places."""

    def __init__(self, column: str, form: str, constants: tuple[Any, ...] = ()) -> None:
        self._column, self._form, self._constants = column, form, constants
        for value in constants:
            _query_text.constant(value)  # what cannot be one is told of where it is written

    def text(self, dtype_of: DtypeOf, exact: bool) -> str:
        texts = [_query_text.constant(_of_column(value, dtype_of(self._column)) if exact else value) for value in self._constants]
        return self._form.format(_query_text.name(self._column), *texts, all=", ".join(texts))

    def is_exact(self) -> bool:
        return any(map(_strong, self._constants))


class _Nothing(Condition):
    """Of a column, and fulfilled by no element."""

    def __init__(self, column: str) -> None:
        self._column = column

    def text(self, dtype_of: DtypeOf, exact: bool) -> str:
        name, dtype = _query_text.name(self._column), dtype_of(self._column)
        value = "0" if dtype is None or dtype.kind in "biuf" else "''"
        return f"({name} == {value} and {name} != {value})"

    def is_exact(self) -> bool:
        return False


def _strong(value: Any) -> bool:
    return getattr(getattr(value, "dtype", None), "kind", " ") in "fiu"


def _of_column(value: Any, dtype: Any) -> Any:
    """A number of Python's as one of the column's own floating type."""
    if _strong(value) or not isinstance(value, (int, float)) or getattr(dtype, "kind", "") != "f" or dtype.itemsize > 8:
        return value
    import numpy

    with numpy.errstate(over="ignore"):
        return float(numpy.asarray(float(value)).astype(dtype))


class Column(Condition):
    """One column; its comparisons are conditions. Of truth values it is a condition itself."""

    def __init__(self, name: str) -> None:
        self._name = name

    def text(self, dtype_of: DtypeOf, exact: bool) -> str:
        dtype = dtype_of(self._name)
        if dtype is not None and dtype.kind != "b":
            raise TypeError(f"column {self._name!r} is no condition: its elements are of type {dtype}, not truth values; compare it with something")
        return f"({_query_text.name(self._name)} == True)"

    def is_exact(self) -> bool:
        return False

    def _compare(self, op: str, value: Any) -> Condition:
        if isinstance(value, Condition):
            raise TypeError("columns are compared with constants, not with one another")
        return _Compared(self._name, f"({{0}} {op} {{1}})", (value,))

    def __eq__(self, value: Any) -> Condition:  # type: ignore[override]
        return self._compare("==", value)

    def __ne__(self, value: Any) -> Condition:  # type: ignore[override]
        return self._compare("!=", value)

    def __lt__(self, value: Any) -> Condition:
        return self._compare("<", value)

    def __le__(self, value: Any) -> Condition:
        return self._compare("<=", value)

    def __gt__(self, value: Any) -> Condition:
        return self._compare(">", value)

    def __ge__(self, value: Any) -> Condition:
        return self._compare(">=", value)

    __hash__ = None  # type: ignore[assignment]

    def between(self, low: Any, high: Any) -> Condition:
        """Both ends belong to it."""
        return _Compared(self._name, "({0} between {1} and {2})", (low, high))

    def isin(self, values: Iterable[Any]) -> Condition:
        constants = tuple(values)
        return _Compared(self._name, "({0} in ({all}))", constants) if constants else _Nothing(self._name)

    def isnan(self) -> Condition:
        return _Compared(self._name, "isnan({0})")

    def __repr__(self) -> str:
        return f"<column {self._name!r}>"


class Columns:
    """The columns that queries of a group, a file or a dataset can name: `c.Energy`, or `c["odd name"]`."""

    def __init__(self, source: _query_sources.Source) -> None:
        self._source = source

    def __getitem__(self, name: str) -> Column:
        self._source.column(name)
        return Column(name)

    def __getattr__(self, name: str) -> Column:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name in self._source.names() if name.isidentifier())]

    def __repr__(self) -> str:
        return f"<columns of {self._source.place}: {', '.join(map(repr, self._source.names()))}>"


def columns(target: Any) -> Columns:
    """The columns of what `tidelane.query` takes, for conditions with Python's operators:

        c = tidelane.columns(group)
        tidelane.query(group, (c.Energy > 1.9) & (c["odd name"] < 3) & ~c.x.isnan())
    """
    return Columns(_query_sources.source(target))


def as_text(condition: Union[str, Condition], dtype_of: DtypeOf) -> tuple[str, bool]:
    """The text, and whether constants take their column's type."""
    if isinstance(condition, str):
        return condition, True
    if not isinstance(condition, Condition):
        raise TypeError(f"a query is a text or a condition on columns, not {type(condition).__name__}")
    exact = condition.is_exact()
    return condition.text(dtype_of, exact), not exact


def with_members(text: str, columns: Mapping[str, _query_sources.Column]) -> str:
    members = {name: column.members() for name, column in columns.items()}
    return _query_text.with_members(text, members.get) if any(members.values()) else text
