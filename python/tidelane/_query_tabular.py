"""Hits of a query as tables: pandas' and Arrow's. Strings are text there, by UTF-8."""

from __future__ import annotations

from typing import Any, Iterator


def _is_text(dtype: Any) -> bool:
    return dtype.kind in "SO"


def _texts(values: Any, errors: str) -> list[Any]:
    return [value.decode("utf-8", errors) if isinstance(value, bytes) else value for value in values.tolist()]


def to_pandas(query: Any, *names: str) -> Any:
    import numpy
    import pandas

    wanted = names or query.names
    values: dict[str, list[Any]] = {name: [] for name in wanted}
    places: list[tuple[Any, ...]] = []
    for block in query.blocks(*names):
        places.append(block.where())
        for name in wanted:
            values[name].append(block[name])
    found = {name: numpy.concatenate(parts) if parts else numpy.empty(0, query.dtype(name)) for name, parts in values.items()}
    axes = [numpy.concatenate(parts) for parts in zip(*places)] or [numpy.empty(0, numpy.int64) for _ in query.shape]
    columns = {name: _texts(array, "surrogateescape") if _is_text(array.dtype) else array for name, array in found.items()}
    if len(axes) > 1:
        index = pandas.MultiIndex.from_arrays(axes, names=[f"dim_{number}" for number in range(len(axes))])
    else:
        index = pandas.Index(axes[0], dtype="int64") if axes else None
    return pandas.DataFrame(columns, index=index)


def to_arrow(query: Any, *names: str) -> Any:
    import numpy
    import pyarrow

    wanted = list(names or query.names)
    forms: dict[str, Any] = {}
    for name in wanted:
        dtype = query.dtype(name)
        forms[name] = None if _is_text(dtype) else numpy.dtype(numpy.float32) if dtype == numpy.float16 else dtype  # which others do not know
    types = {name: pyarrow.string() if form is None else pyarrow.from_numpy_dtype(form) for name, form in forms.items()}
    schema = pyarrow.schema(list(types.items()))

    def array(name: str, values: Any) -> Any:
        form = forms[name]
        return pyarrow.array(_texts(values, "strict") if form is None else values.astype(form, copy=False), type=types[name])

    def batches() -> Iterator[Any]:
        for block in query.blocks(*wanted):
            yield pyarrow.RecordBatch.from_arrays([array(name, block[name]) for name in wanted], schema=schema)

    return pyarrow.RecordBatchReader.from_batches(schema, batches())
