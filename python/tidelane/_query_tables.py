"""PyTables' own queries of tables, answered here: `read_where(table, "(Energy > 1.9) & (x < low)")`.

Conditions are numexpr's: Python expressions with & | ~ and comparisons of columns with constants or with variables of the program.
What is more than that PyTables answers itself.

Invariant: constants are compared as numexpr does, as the numbers that they are; integers, which numexpr makes doubles beside
decimal constants, exactly.
"""

from __future__ import annotations

import ast
import sys
import warnings
from typing import Any, Mapping, Optional

from . import _query_pytables, _query_sources, _query_text
from ._notices import TidelaneWarning
from ._query import Query

_OPS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_KINDS = ("int", "uint", "float", "string")
_told: set[str] = set()


class _NotOurs(Exception):
    """PyTables is to answer it; the reason."""


def read_where(
    table: Any,
    condition: str,
    condvars: Optional[Mapping[str, Any]] = None,
    field: Optional[str] = None,
    start: Optional[int] = None,
    stop: Optional[int] = None,
    step: Optional[int] = None,
) -> Any:
    """The rows of an open PyTables table that fulfil the condition, as `table.read_where` gives them, or one field of them.

    Variables are looked for in `condvars`, or where this is called. What this cannot answer (arithmetic, functions, columns against
    columns) PyTables does, and a TidelaneWarning says so once.
    """
    given = _variables(table, condvars)
    try:
        rows = _rows(table, condition, given, start, stop, step)
    except _NotOurs as why:
        _tell(condition, why)
        return table.read_where(condition, given, field, start, stop, step)
    return table.read_coordinates(rows, field)


def get_where_list(
    table: Any,
    condition: str,
    condvars: Optional[Mapping[str, Any]] = None,
    sort: bool = False,
    start: Optional[int] = None,
    stop: Optional[int] = None,
    step: Optional[int] = None,
) -> Any:
    """The numbers of those rows, as `table.get_where_list` gives them, always ascending."""
    from tables.flavor import internal_to_flavor

    given = _variables(table, condvars)
    try:
        rows = _rows(table, condition, given, start, stop, step)
    except _NotOurs as why:
        _tell(condition, why)
        return table.get_where_list(condition, given, sort, start, stop, step)
    return internal_to_flavor(rows, table.flavor)


def _variables(table: Any, condvars: Optional[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Those that are given; else those of the caller's caller, which columns go before."""
    if condvars is not None:
        return condvars
    frame = sys._getframe(2)
    seen = {**frame.f_globals, **frame.f_locals}
    return {name: value for name, value in seen.items() if name not in table.colinstances}


def _tell(condition: str, why: _NotOurs) -> None:
    if str(why) not in _told:
        _told.add(str(why))
        warnings.warn(f"PyTables answers {condition!r} itself: {why}", TidelaneWarning, stacklevel=3)


# From numexpr's conditions to queries --------------------------------------------------------------------------------------


def _rows(table: Any, condition: str, given: Mapping[str, Any], start: Any, stop: Any, step: Any) -> Any:
    """Their numbers, ascending."""
    import numpy

    table._g_check_open()
    start, stop, step = table._process_range_read(start, stop, step)
    if start >= stop:
        return numpy.empty(0, numpy.int64)
    if step < 1:
        raise _NotOurs(f"rows are asked for in steps of {step}")
    try:
        tree = ast.parse(condition.strip(), mode="eval")
    except SyntaxError as error:
        raise _NotOurs(f"it is no expression of Python ({error.msg})") from error
    translated = _Translation(table, given)
    text = translated.condition(tree.body)
    try:
        query = Query(_query_sources.source(table), text, translated.columns, 0, None, False)
        (rows,) = query.where()
    except ValueError as error:
        raise _NotOurs(str(error)) from error
    first, last = numpy.searchsorted(rows, (start, stop))
    rows = rows[first:last]
    return rows if step == 1 else rows[(rows - start) % step == 0]


class _Translation:
    """One condition; `columns` are those in it, by the names that its text has for them."""

    def __init__(self, table: Any, given: Mapping[str, Any]) -> None:
        self.columns: dict[str, _query_sources.Column] = {}
        self._table, self._given = table, given
        self._item = _query_pytables.Leaf(table)

    def condition(self, node: ast.expr) -> str:
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            word = "and" if isinstance(node.op, ast.BitAnd) else "or"
            return f"({self.condition(node.left)} {word} {self.condition(node.right)})"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            return f"not ({self.condition(node.operand)})"
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPS:
            return self._comparison(node.left, _OPS[type(node.ops[0])], node.comparators[0])
        if isinstance(node, ast.Name):
            column = self._value(node)
            if isinstance(column, _query_sources.Column) and column.dtype.kind == "b":
                return f"({self._name(column)} == True)"
        raise _NotOurs("only comparisons of columns with constants, and & | ~ between them, are answered here")

    def _comparison(self, left: ast.expr, op: str, right: ast.expr) -> str:
        column, value = self._value(left), self._value(right)
        if isinstance(value, _query_sources.Column):
            column, op, value = value, _MIRRORED[op], column
        if isinstance(value, _query_sources.Column) or not isinstance(column, _query_sources.Column):
            raise _NotOurs("a comparison is answered here where it is of one column with one constant")
        try:
            return f"({self._name(column)} {op} {_query_text.constant(_as_numexpr(value, column.dtype))})"
        except TypeError as error:
            raise _NotOurs(str(error)) from error

    def _name(self, column: _query_sources.Column) -> str:
        name = "/".join(column.field)
        self.columns[name] = column
        return _query_text.name(name)

    def _value(self, node: ast.expr) -> Any:
        """A Column, or a constant."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)) and isinstance(node.operand, ast.Constant):
            value = node.operand.value
            if isinstance(value, (int, float)):
                return -value if isinstance(node.op, ast.USub) else value
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            if node.id not in self._given and node.id not in self._table.colinstances:
                raise NameError(f"name {node.id!r} is neither a column of {self._item.place} nor a variable")
            value = self._given.get(node.id, self._table.colinstances.get(node.id))
            return self._column(value) if hasattr(value, "pathname") else _scalar(value)
        raise _NotOurs("there is no arithmetic, and no function, in queries")

    def _column(self, column: Any) -> _query_sources.Column:
        table = self._table
        kind = column.type if hasattr(column, "type") else ""
        if column.shape[1:] != () or not (kind == "bool" or kind.rstrip("0123456789") in _KINDS):
            raise _NotOurs(f"column {column.pathname!r} is of type {kind or 'a nested one'}, with elements of shape {column.shape[1:]}")
        if column._table_file is not table._v_file or column._table_path != table._v_pathname:
            raise _NotOurs(f"column {column.pathname!r} is of another table")
        return _query_sources.Column(self._item, tuple(column.pathname.split("/")))


def _scalar(value: Any) -> Any:
    if getattr(value, "shape", ()) == () and hasattr(value, "item"):
        return value[()] if hasattr(value, "ndim") else value
    return value


def _as_numexpr(value: Any, dtype: Any) -> Any:
    """Beside single precision numexpr makes integers such numbers."""
    import numpy

    if dtype == numpy.float32 and isinstance(value, (int, numpy.integer)):
        return float(numpy.float32(value))
    return value
