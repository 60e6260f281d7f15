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
    import pyarrow

    wanted = list(names or query.names)
    types = {name: pyarrow.string() if _is_text(query.dtype(name)) else pyarrow.from_numpy_dtype(query.dtype(name)) for name in wanted}
    schema = pyarrow.schema(list(types.items()))

    def batches() -> Iterator[Any]:
        for block in query.blocks(*wanted):
            arrays = [
                pyarrow.array(_texts(block[name], "strict") if _is_text(query.dtype(name)) else block[name], type=types[name]) for name in wanted
            ]
            yield pyarrow.RecordBatch.from_arrays(arrays, schema=schema)

    return pyarrow.RecordBatchReader.from_batches(schema, batches())
