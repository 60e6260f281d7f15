"""What a random h5py program asks for: types, layouts and filters of datasets, and selections of their elements.

Everything that is drawn is plain (it goes into JSON); `type_of` and `key_of` make h5py's and numpy's of it.
"""

import h5py
import numpy as np

from program import Skip, as_slices, draw_box, seed_of

PAIR = [["a", "<i4"], ["b", "<f8"], ["c", "<i2", [3]]]
PLAIN = ["<f4", "<f8", "<i4", "<i2", "|u1", ">i4", "<i8", "|b1"]


def type_of(name):
    """The type of a dataset from its name in the model."""
    special = {"text": h5py.string_dtype(), "bytes": h5py.string_dtype("ascii"), "ragged": h5py.vlen_dtype(np.dtype("i4"))}
    return special.get(name) or in_memory(name)


def in_memory(name):
    """The model's type: of numpy, or the name itself where elements are objects."""
    if name == "pair":
        return np.dtype([tuple(tuple(x) if isinstance(x, list) else x for x in field) for field in PAIR])
    return name if name in ("text", "bytes", "ragged") else np.dtype(name)


def has_objects(dtype):
    return dtype in ("text", "bytes", "ragged")


def draw_filters(rng, dtype):
    options = {}
    choice = rng.random()
    if choice < 0.6:
        options["compression"] = "gzip"
        options["compression_opts"] = rng.choice([1, 4, 9])
    elif choice < 0.7:
        options["compression"] = "lzf"
    elif choice < 0.76 and np.dtype(in_memory(dtype)).kind in "iu" and dtype[0] != ">":
        return {"scaleoffset": 0}
    if rng.random() < 0.5:
        options["shuffle"] = True
    if rng.random() < 0.3:
        options["fletcher32"] = True
    return options


def draw_dataset(rng):
    """(name of the type, shape, what create_dataset is asked for)"""
    dtype = rng.choice(PLAIN * 3 + ["pair", "|S7", "text", "bytes", "ragged"])
    if has_objects(dtype):
        shape = [rng.choice([1, 30, 500, 900])]
    else:
        shape = rng.choice([[60000], [300, 200], [200, 300], [40, 40, 40], [10], [0, 500], [7, 3], [400, 130], []])
    options = {}
    layout = rng.random()
    if shape and layout < 0.75:
        options["chunks"] = [max(1, rng.choice([n, -(-n // 2), -(-n // 4), 17])) if n else 20 for n in shape]
        if rng.random() < 0.6 or 0 in shape:
            options["maxshape"] = [n if n > 20 and rng.random() < 0.3 else rng.choice([None, None, n + 60]) for n in shape]
        else:
            options["chunks"] = [min(n, c) for n, c in zip(shape, options["chunks"])]
        if not has_objects(dtype):
            options.update(draw_filters(rng, dtype))
        elif rng.random() < 0.5:
            options["compression"] = "gzip"
    if rng.random() < 0.4 and dtype not in ("pair", "ragged", "|S7", "|b1"):
        options["fillvalue"] = {"text": "fill", "bytes": "none"}.get(dtype, rng.randint(1, 90))
    if "chunks" not in options and "fillvalue" not in options:
        options["fill_time"] = "alloc"  # else what was not written is whatever that place in the file held
    elif rng.random() < 0.15:
        options["fill_time"] = rng.choice(["alloc", "ifset"])
    return dtype, shape, options


def draw_selection(rng, shape, chunks):
    """As a list of one entry a dimension; {"mask": seed} for points."""
    if len(shape) == 0:
        return []
    if rng.random() < 0.07 and np.prod(shape) < 70000:
        return [{"mask": seed_of(rng)}]
    box = draw_box(rng, shape, chunks)
    choice = rng.random()
    at = rng.randrange(len(shape))
    if choice < 0.12 and shape[at]:
        box[at] = rng.randrange(shape[at])
    elif choice < 0.2 and shape[at]:
        box[at] = {"list": sorted(rng.sample(range(shape[at]), min(shape[at], rng.choice([1, 3, 9]))))}
    elif choice < 0.25 and shape[at] > 20:
        box[at] = {"blocks": [rng.randrange(3), rng.randint(5, 7), rng.randint(1, 2), rng.randint(1, 4)]}
    elif choice < 0.4:
        return box[:1] + ["..."]
    return box


def key_of(selection, shape):
    """(key for h5py, key for numpy)"""
    if selection and isinstance(selection[0], dict) and "mask" in selection[0]:
        mask = np.random.default_rng(selection[0]["mask"]).random(shape) < 0.05
        if not mask.any():
            raise Skip
        return mask, mask
    ours, models = [], []
    for one, n in zip(selection, shape):
        if one == "...":
            break
        if isinstance(one, int):
            if one >= n:
                raise Skip
            mine = theirs = one
        elif isinstance(one, list):
            (mine,) = (theirs,) = as_slices([one], (n,))
        elif "list" in one:
            mine = theirs = one["list"]
            if mine[-1] >= n:
                raise Skip
        else:
            start, stride, count, block = one["blocks"]
            count = min(count, (n - start - block) // stride + 1)
            if count < 1:
                raise Skip
            mine = h5py.MultiBlockSlice(start, stride, count, block)
            theirs = (start + np.arange(count)[:, None] * stride + np.arange(block)).ravel()
        ours.append(mine)
        models.append(theirs)
    else:
        if len(selection) != len(shape):
            raise Skip
        return tuple(ours), tuple(models)
    return (*ours, Ellipsis), (*models, Ellipsis)
