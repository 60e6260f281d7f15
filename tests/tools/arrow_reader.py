"""Arrow's streams and files, as far as `tidelane query --arrow` writes them: read by the format's description, without Arrow or flatbuffers.

`tables_of(bytes)` gives the schema, [(name, type)], and each batch as {name: list}. Whatever is not as the format has it is an AssertionError.
"""

import struct

END = b"\xff\xff\xff\xff\0\0\0\0"
MAGIC = b"ARROW1"
SCHEMA, BATCH = 1, 3
INTEGER, FLOAT, TEXT, TRUTH = 2, 3, 5, 6
NUMBERS = {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q"}
NUMBERS |= {"half": "e", "float": "f", "double": "d"}


class Table:
    """A table of flatbuffers."""

    def __init__(self, data, at):
        self.data, self.at = data, at
        fields = at - struct.unpack_from("<i", data, at)[0]
        size = struct.unpack_from("<H", data, fields)[0]
        self.fields = struct.unpack_from(f"<{size // 2 - 2}H", data, fields + 4)

    def number(self, field, form):
        there = self.fields[field] if field < len(self.fields) else 0
        if there == 0:
            return 0
        assert (self.at + there) % struct.calcsize(form) == 0, "not aligned"
        return struct.unpack_from("<" + form, self.data, self.at + there)[0]

    def place(self, field):
        there = self.at + self.fields[field]
        return there + struct.unpack_from("<I", self.data, there)[0]

    def table(self, field):
        return Table(self.data, self.place(field))

    def count(self, field):
        return struct.unpack_from("<I", self.data, self.place(field))[0]

    def structs(self, field, form):
        begin = self.place(field) + 4
        return [struct.unpack_from("<" + form, self.data, begin + i * struct.calcsize(form)) for i in range(self.count(field))]

    def tables(self, field):
        begin = self.place(field) + 4
        places = [begin + 4 * i for i in range(self.count(field))]
        return [Table(self.data, place + struct.unpack_from("<I", self.data, place)[0]) for place in places]

    def text(self, field):
        begin = self.place(field) + 4
        return self.data[begin : begin + self.count(field)].decode()


def root(data):
    return Table(data, struct.unpack_from("<I", data)[0])


def type_of(field):
    kind, about = field.number(2, "B"), field.table(3)
    if kind == INTEGER:
        return ("int" if about.number(1, "B") else "uint") + str(about.number(0, "i"))
    if kind == FLOAT:
        return ("half", "float", "double")[about.number(0, "h")]
    return {TEXT: "text", TRUTH: "truth"}[kind]


def fields_of(schema):
    assert schema.number(0, "h") == 0, "the other order of bytes"
    fields = schema.tables(1)
    assert not any(field.number(1, "B") for field in fields), "may have nulls"
    assert all(field.count(5) == 0 for field in fields)
    return [(field.text(0), type_of(field)) for field in fields]


def values_of(kind, rows, take):
    assert take() == b"", "nulls"
    if kind == "text":
        ends = struct.unpack(f"={rows + 1}i", take())
        texts = take()
        assert ends[0] == 0 and ends[-1] == len(texts)
        return [texts[begin:end].decode() for begin, end in zip(ends, ends[1:])]
    if kind == "truth":
        bits = take()
        assert len(bits) == (rows + 7) // 8
        return [bool(bits[i // 8] >> i % 8 & 1) for i in range(rows)]
    return list(struct.unpack(f"={rows}{NUMBERS[kind]}", take()))


def batch_of(fields, batch, body):
    rows = batch.number(0, "q")
    assert batch.structs(1, "qq") == [(rows, 0)] * len(fields)
    places = iter(batch.structs(2, "qq"))

    def take():
        begin, length = next(places)
        assert begin % 8 == 0 and begin + length <= len(body)
        return body[begin : begin + length]

    columns = [values_of(kind, rows, take) for _, kind in fields]
    assert next(places, None) is None and rows > 0
    return columns


def stream_of(data, begin):
    """(fields, batches, where each is, where the stream ends)."""
    fields, batches, blocks, at = None, [], [], begin
    while data[at : at + 8] != END:
        mark, size = struct.unpack_from("<Ii", data, at)
        assert mark == 0xFFFFFFFF and size % 8 == 0 and at % 8 == 0
        message = root(data[at + 8 : at + 8 + size])
        length = message.number(3, "q")
        assert message.number(0, "h") == 4 and length % 8 == 0
        body = data[at + 8 + size : at + 8 + size + length]
        assert len(body) == length, "cut"
        if fields is None:
            assert message.number(1, "B") == SCHEMA and length == 0
            fields = fields_of(message.table(2))
        else:
            assert message.number(1, "B") == BATCH
            batches.append(batch_of(fields, message.table(2), body))
            blocks.append((at, 8 + size, 0, length))
        at += 8 + size + length
    return fields, batches, blocks, at + 8


def tables_of(data):
    begin = 8 if data.startswith(MAGIC) else 0
    fields, batches, blocks, end = stream_of(data, begin)
    if begin == 0:
        assert end == len(data)
    else:
        size = struct.unpack("<I", data[-10:-6])[0]
        assert data[6:8] == b"\0\0" and data[-6:] == MAGIC and end + size + 10 == len(data)
        footer = root(data[end : end + size])
        assert footer.number(0, "h") == 4 and fields_of(footer.table(1)) == fields
        assert footer.structs(3, "qiiq") == blocks
    return fields, batches


def columns_of(data):
    """All batches in one: {name: values}."""
    fields, batches = tables_of(data)
    return {name: [value for batch in batches for value in batch[i]] for i, (name, _) in enumerate(fields)}
