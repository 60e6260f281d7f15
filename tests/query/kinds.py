"""Types of elements, each with a small pool of values: as they are in the file, as numbers or bytes of Python, as a scan gives them.

All of a column's elements come from its pool, so that comparing them exactly, in Python's arithmetic, costs little, and
equality is met often. The first of the pool is the fill value.
"""

import ctypes
import dataclasses
import fractions
import math
import struct
import sys

import numpy as np
from engine import HDF5
from h5py import h5t

Fraction = fractions.Fraction
INF = float("inf")
MOST_POOL = 12


@dataclasses.dataclass
class Kind:
    """`raw`: the pool as the file has it, a row of bytes each. `exact`: int, Fraction, nan and inf, or bytes. `float_format`: (bits of
    precision, largest exponent) of what a scan compares, None: no rounding of constants."""

    name: str
    type: object
    raw: np.ndarray
    exact: list
    native: dict  # {bytes of an element that a scan gives: the pool in that form}
    float_format: object = None
    compared: int = 0  # bytes that count of an element; 0: all
    filters: tuple = ()  # such as need to know the type
    variable: bool = False
    keep: object = None  # memory that `raw` points into

    @property
    def is_text(self):
        return isinstance(self.exact[0], bytes)


def rows(array):
    """An array's elements, a row of bytes each."""
    array = np.ascontiguousarray(array)
    return array.view(np.uint8).reshape(len(array), array.dtype.itemsize).copy()


def exact_of(number):
    """The same number in Python, exactly."""
    if isinstance(number, np.integer):
        return int(number)
    if np.isnan(number):
        return math.nan
    if np.isinf(number):
        return INF if number > 0 else -INF
    return Fraction(*number.as_integer_ratio())


def nearest(number, float_format):
    """The nearest number of a floating type, ties to even; what overflows to infinity."""
    if isinstance(number, float) and (math.isnan(number) or math.isinf(number)):
        return number
    precision, most = float_format
    number = Fraction(number)
    if number == 0:
        return number
    top, bottom = abs(number.numerator), number.denominator
    exponent = top.bit_length() - bottom.bit_length()
    if abs(number) < Fraction(2) ** exponent:
        exponent -= 1
    step = Fraction(2) ** (max(exponent, 1 - most) - precision + 1)
    number = round(number / step) * step
    if abs(number) >= Fraction(2) ** (most + 1):
        return INF if number > 0 else -INF
    return number


def pool_of(rng, candidates, draw):
    """Some of the candidates, and some that are drawn; the first is often 0."""
    found = rng.sample(candidates, min(len(candidates), rng.randint(1, MOST_POOL)))
    found += [draw() for _ in range(rng.randint(0, 4))]
    if rng.random() < 0.6:
        found[0] = candidates[0]
    return found[:MOST_POOL]


def integer_pool(rng, least, most):
    near = [0, 1, -1, 2, 100, 127, 128, least, most, least + 1, most - 1, 2**53, 2**53 + 1, 2**53 - 1, -(2**53) - 1, 2**63, 2**63 + 1, 2**62 + 1]
    base = rng.randint(least, most)
    return pool_of(rng, [n for n in near if least <= n <= most], lambda: min(most, base + rng.randint(0, 3)))


def order_of(rng):
    return rng.choice("<>")


def integer_type(letter, size, order):
    kind = {"i": "STD_I", "u": "STD_U", "b": "STD_B"}[letter]
    return getattr(h5t, f"{kind}{8 * size}{'LE' if order == '<' else 'BE'}").copy()


def integers(rng):
    signed, size, order = rng.random() < 0.5, rng.choice((1, 2, 4, 8)), order_of(rng)
    dtype = np.dtype(f"{'i' if signed else 'u'}{size}")
    info = np.iinfo(dtype)
    pool = integer_pool(rng, int(info.min), int(info.max))
    array = np.array(pool, dtype)
    raw = rows(array.astype(dtype.newbyteorder(order)))
    letter, filters = "i" if signed else "u", ("scaleoffset", "nbit")
    if rng.random() < 0.15 and not signed:
        letter, filters = "b", ()
    return Kind(f"{letter}{order}{size}", integer_type(letter, size, order), raw, pool, {size: rows(array)}, filters=filters)


def set_precision(kind, precision, offset):
    for name, value in (("H5Tset_precision", precision), ("H5Tset_offset", offset)):
        function = getattr(HDF5, name)
        function.restype, function.argtypes = ctypes.c_int, [ctypes.c_int64, ctypes.c_size_t]
        assert function(kind.id, value) >= 0, name


def odd_integers(rng):
    """Fewer bits than the bytes have; of bit fields, too."""
    size, order, letter = rng.choice((2, 4, 8)), order_of(rng), rng.choice("iub")
    precision = rng.randint(2, 8 * size - 1)
    signed = letter == "i"
    # HDF5 2 takes no more bytes than are needed; and what is signed, swapped and has no offset, HDF5 only swaps if the size is right.
    least = 1 if signed and order == ">" else 0
    offset = rng.randint(max(least, 4 * size - precision + 1), 8 * size - precision)
    least, most = (-(1 << (precision - 1)), (1 << (precision - 1)) - 1) if signed else (0, (1 << precision) - 1)
    pool = integer_pool(rng, least, most)
    stored = [(n & ((1 << precision) - 1)) << offset for n in pool]
    raw = rows(np.array(stored, np.dtype(f"u{size}")).astype(np.dtype(f"{order}u{size}")))
    kind = integer_type(letter, size, order)
    set_precision(kind, precision, offset)
    forms = {n: rows(np.array(pool, np.dtype(f"{'i' if signed else 'u'}{n}"))) for n in (1, 2, 4, 8) if 8 * n >= precision}
    return Kind(f"{letter}{order}{size}p{precision}o{offset}", kind, raw, pool, forms, filters=("nbit",) if letter != "b" else ())


def enums(rng):
    base = integers(rng) if rng.random() < 0.7 else odd_integers(rng)
    while "b" in base.name:
        base = integers(rng)
    kind, seen = h5t.enum_create(base.type), set()
    for number, raw in zip(base.exact, base.raw):
        if number not in seen and (not seen or rng.random() < 0.8):  # some numbers have no name
            insert_member(kind, f"m{len(seen)}", raw)
        seen.add(number)
    return dataclasses.replace(base, name=f"enum of {base.name}", type=kind, filters=())


def insert_member(kind, name, raw):
    """As the file has it: h5py's own takes numbers of C's long."""
    insert = HDF5.H5Tenum_insert
    insert.restype, insert.argtypes = ctypes.c_int, [ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p]
    raw = np.ascontiguousarray(raw)
    assert insert(kind.id, name.encode(), raw.ctypes.data) >= 0


FORMATS = {2: (11, 15), 4: (24, 127), 8: (53, 1023)}


def float_pool(rng, dtype):
    info = np.finfo(dtype)
    texts = ["0", "-0.0", "1", "-1", "nan", "inf", "-inf", "0.1", "0.5", "3.25", "-2.5", "16777217", "9007199254740993", "1e-7"]
    candidates = [dtype.type(text) for text in texts]
    candidates += [info.max, -info.max, info.tiny, info.smallest_subnormal, -info.smallest_subnormal]
    base = dtype.type(str(rng.choice((rng.uniform(-2, 2), rng.uniform(0, 6e4), rng.gauss(0, 1e-3)))))
    return pool_of(rng, candidates, lambda: np.nextafter(base, dtype.type(str(rng.choice("01")))))


def floats(rng):
    size, order = rng.choice((2, 4, 8)), order_of(rng)
    dtype = np.dtype(f"f{size}")
    with np.errstate(all="ignore"):
        array = np.array(float_pool(rng, dtype), dtype)
    if rng.random() < 0.3:
        array[np.isnan(array)] *= dtype.type(-1)
    kind = h5t.py_create(dtype.newbyteorder(order))
    raw = rows(array.astype(dtype.newbyteorder(order)))
    exact = [exact_of(x) for x in array]
    return Kind(f"f{order}{size}", kind, raw, exact, {size: rows(array)}, FORMATS[size], filters=("nbit",))


def long_doubles(rng):
    dtype = np.dtype(np.longdouble)
    with np.errstate(all="ignore"):
        array = np.array(float_pool(rng, dtype), dtype)
    if rng.random() < 0.5:
        array[-1] = np.nextafter(np.longdouble("0.1"), np.longdouble(1))
    raw = rows(array)
    if dtype.itemsize == 16 and sys.platform == "linux":
        raw[:, 10:] = 0
    compared = 10 if np.finfo(dtype).nmant == 63 else 0
    return Kind("long double", h5t.NATIVE_LDOUBLE.copy(), raw, [exact_of(x) for x in array], {dtype.itemsize: raw}, compared=compared)


def custom_float(size, sign, exponent_bits, mantissa_bits, bias):
    kind = (h5t.IEEE_F32LE if size <= 4 else h5t.IEEE_F64LE).copy()
    kind.set_fields(sign, mantissa_bits, exponent_bits, 0, mantissa_bits)
    kind.set_size(size)
    kind.set_ebias(bias)
    return kind


def brain_floats(rng):
    with np.errstate(all="ignore"):
        whole = np.array(float_pool(rng, np.dtype("f4")), np.dtype("f4")).view(np.uint32)
    upper = (whole >> 16).astype(np.uint16)
    quiet = np.where(np.isnan(whole.view("f4")), np.uint16(0x7FC0), upper)
    exact = [exact_of(x) for x in (quiet.astype(np.uint32) << 16).view("f4")]
    kind, order = custom_float(2, 15, 8, 7, 127), order_of(rng)
    if order == ">":
        kind.set_order(h5t.ORDER_BE)
    return Kind(f"bf16{order}", kind, rows(quiet.astype(np.dtype(f"{order}u2"))), exact, {2: rows(quiet)}, (8, 127))


def small_floats(rng):
    """One byte: a sign, four bits of exponent, three of mantissa. HDF5 converts them."""
    bits = pool_of(rng, [0, 0x80, 0x38, 0xB8, 0x78, 0xF8, 0x7C, 0x01, 0x07, 0x77], lambda: rng.randint(0, 0x77))
    exact = []
    for byte in bits:
        exponent, mantissa, sign = byte >> 3 & 15, byte & 7, -1 if byte & 0x80 else 1
        if exponent == 15:
            exact.append(math.nan if mantissa else sign * INF)
        else:
            exact.append(sign * Fraction(mantissa + (8 if exponent else 0)) * Fraction(2) ** (max(exponent, 1) - 10))
    numbers = [(-0.0 if byte == 0x80 else float(number)) for byte, number in zip(bits, exact)]
    forms = {n: rows(np.array(numbers, np.dtype(f"f{n}"))) for n in (2, 4, 8)}
    return Kind("fp8", custom_float(1, 7, 4, 3, 7), np.array(bits, np.uint8).reshape(-1, 1), exact, forms, float_format="converted")


PADS = {"null-terminated": h5t.STR_NULLTERM, "null-padded": h5t.STR_NULLPAD, "space-padded": h5t.STR_SPACEPAD}


def text_of(element, pad):
    if pad == "null-terminated":
        return element.split(b"\0")[0]
    return element.rstrip(b"\0" if pad == "null-padded" else b" ")


def random_bytes(rng, most):
    return bytes(rng.choice(b"aaab \x00\x7f\xff\xc3'\\\"") for _ in range(rng.randint(0, most)))


def fixed_strings(rng):
    size, pad = rng.choice((1, 2, 3, 5, 8, 16, 33)), rng.choice(sorted(PADS))
    blank = b" " if pad == "space-padded" else b"\0"
    texts = pool_of(rng, [b"\0" * size, b"", b"a", b"a b", b"ab", b"a\0b", b" a", b"b" * size], lambda: random_bytes(rng, size))
    raw = [text[:size].ljust(size, blank) for text in texts]
    kind = h5t.C_S1.copy()
    kind.set_size(size)
    kind.set_strpad(PADS[pad])
    array = np.frombuffer(b"".join(raw), np.uint8).reshape(-1, size)
    return Kind(f"S{size} {pad}", kind, array, [text_of(element, pad) for element in raw], {size: array})


def variable_strings(rng):
    texts = pool_of(rng, [b"", b"a", b"a b", b"ab", b" a", b"a" * 300], lambda: random_bytes(rng, 12).replace(b"\0", b"0"))
    texts[0] = b""
    keep = [ctypes.create_string_buffer(text) for text in texts]
    addresses = [0] + [ctypes.addressof(buffer) for buffer in keep[1:]]  # the fill value: no string at all
    kind = h5t.C_S1.copy()
    kind.set_size(h5t.VARIABLE)
    kind.set_strpad(rng.choice(sorted(PADS.values())))
    raw = rows(np.array(addresses, np.uint64))
    return Kind("variable string", kind, raw, texts, {}, variable=True, keep=keep)


class Sequences:
    """What a record may have beside its columns: a sequence of variable length."""

    def __init__(self, rng):
        self.type, self.variable = h5t.vlen_create(h5t.NATIVE_INT16), True
        self.keep = [(ctypes.c_int16 * 5)(*range(5))]
        self.raw = np.frombuffer(b"".join(struct.pack("NP", n, ctypes.addressof(self.keep[0]) if n else 0) for n in (0, 1, 5)), np.uint8).reshape(3, -1)


MAKERS = (
    (integers, 8), (odd_integers, 2), (enums, 1), (floats, 6), (long_doubles, 1), (brain_floats, 1),
    (small_floats, 0.5), (fixed_strings, 3), (variable_strings, 1.5),
)  # fmt: skip


def draw_kind(rng, fixed=False):
    makers, weights = zip(*MAKERS)
    while True:
        kind = rng.choices(makers, weights)[0](rng)
        if not (fixed and kind.variable):
            return kind
