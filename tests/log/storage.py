"""Storage: what files hold, what one write does to them, and what a power cut may leave.

A file is (blocks, size, superblock). The superblock lies beside the blocks: None, or (value, end, mark, open flag).
`value` stands for all that HDF5 has in it; `end` is kept in a marked one, too, where storage has the mark in its place.

A segment is (header, slot of even generations, slot of odd ones, note, items). Each of the first four is a sector of
its own: 0 where it was never written, BAD where it is torn or damaged.
    header  (id, before, end, superblock)
    slot    (id, generation, offset, crc of the record)
    note    (id, next, whole)
    item    EXTENT: ('E', value), or RECORD: ('R', id, generation, end, stored, previous, entries, superblock)
An item's offset is its index, and its crc is crc(item). An entry is (address, offset, value); at offset ZEROS there are none.
`superblock` in a record is None where the commit has none; `previous` is (offset, crc) or None.

A node is (durable image, writes that are not synced). Under `process` nothing is ever left unsynced.
"""
BLOCKS = 4
BAD = 'BAD'
ZEROS = -1
NEW_FILE = ((0,) * BLOCKS, 0, None)
NEW_SEGMENT = (None, 0, 0, 0, ())
NEVER_COMMITTED = 1  # the mark of a file that was created
EMPTY = ((), 0, 0)  # the state of a file that was created, before its first commit
FILE = 0  # the file's node; the others are segments

UNSYNCED, SYNCED, LOST_SYNC = 0, 1, 2  # of one write; LOST_SYNC: its sync failed, and no other one writes it

crc = hash


def put(image, write):
    """The image after one write."""
    kind = write[0]
    if kind in ('block', 'grow', 'cut', 'superblock', 'empty'):
        return put_file(image, write)
    header, even, odd, note, items = image
    if kind == 'header':
        header = write[1]
    elif kind == 'slot':
        even, odd = (even, write[2]) if write[1] else (write[2], odd)
    elif kind == 'note':
        note = write[1]
    else:
        place = write[1]
        items = items + (0,) * (place + 1 - len(items))
        items = items[:place] + (write[2],) + items[place + 1:]
    return (header, even, odd, note, items)


def put_file(image, write):
    kind = write[0]
    blocks, size, superblock = image
    if kind == 'block':
        if write[1] >= size:
            return image
        return (blocks[:write[1]] + (write[2],) + blocks[write[1] + 1:], size, superblock)
    if kind == 'grow':
        return (blocks, max(size, write[1]), superblock)
    if kind == 'cut':
        return (tuple(b if i < write[1] else 0 for i, b in enumerate(blocks)), write[1], superblock)
    if kind == 'superblock':
        return (blocks, size, write[1])
    return NEW_FILE


def torn(write):
    """The same write, half done. A superblock is much shorter than a sector, and an extent's block is one place here."""
    if write[0] in ('header', 'note'):
        return (write[0], BAD)
    if write[0] == 'slot':
        return ('slot', write[1], BAD)
    if write[0] == 'item' and write[2][0] == 'R':  # longer than a sector: its last entries are not there
        return ('item', write[1], half_record(write[2]))
    return None


def half_record(record):
    return record[:6] + (record[6][:-1], None)


def now(node):
    """What programs see."""
    image = node[0]
    for write, _ in node[1]:
        image = put(image, write)
    return image


def sync(node):
    durable, pending = node[0], tuple((w, SYNCED if s == UNSYNCED else s) for w, s in node[1])
    while pending and pending[0][1] == SYNCED:
        durable, pending = put(durable, pending[0][0]), pending[1:]
    return (durable, pending)


def fail_sync(node):
    return (node[0], tuple((w, LOST_SYNC if s == UNSYNCED else s) for w, s in node[1]))


KNOWN = {}


def survivors(node):
    """All images that a power cut may leave: any subset of what was not synced, each of them whole or torn."""
    images = KNOWN.get(node)
    if images is None:
        images = {node[0]}
        for write, state in node[1]:
            new = {put(image, write) for image in images}
            if state != SYNCED:
                half = torn(write)
                if half:  # the same bytes once more: there is nothing to tear
                    new |= {put(image, half) for image in images if put(image, write) != image}
                new |= images
            images = new
        KNOWN[node] = images
    return images


def put_folder(names, change):
    """names: ((name, node), ...); change: ('link', name, node), ('unlink', name) or ('rename', name, new name)."""
    names = dict(names)
    if change[0] == 'link':
        names[change[1]] = change[2]
    elif change[1] in names:
        node = names.pop(change[1])
        if change[0] == 'rename':
            names[change[2]] = node
    return tuple(sorted(names.items()))


def folder_survivors(durable, pending):
    found = {durable}
    for change in pending:
        found |= {put_folder(names, change) for names in found}
    return found
