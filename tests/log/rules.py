"""The rules of docs/formats/log.md that the model can leave out, each by the name that the code of the model asks for."""
import scripts
from locks import SECOND
from program import LATE_MARKS

# A violation is found without them under `process`.
PROCESS = [
    LATE_MARKS[2], 'mark: of a file that is created', 'mark: one that failed is taken back',
    'high water', 'high water: it never falls', 'high water: it rises when a commit begins',
    'truncation: an entry of zeros', 'truncation: the file keeps what is under the high water',
    'commit: HDF5 flags are cleared',
    'header: of the commit before this segment', 'a new id when a segment is used again', 'slots and note are zeroed',
    'writer: a note of the next segment', 'note: which commit is whole', 'a segment with uncommitted bytes is not moved',
    'reuse: not before the whole COMMIT has happened', 'reuse: a whole COMMIT has all that is seen', 'reuse: a whole COMMIT has the superblock',
    'checkpoint: the superblock last', 'checkpoint: free after the superblock', 'checkpoint: HDF5 flags are cleared',
    'checkpoint: marked while a later segment goes on', 'checkpoint: the mark is decided when it is written',
    'checkpoint: zeros of a truncation are moved, too', 'checkpoint: who begins a segment after a mark that failed marks again',
    'reader: only a marked file has a log', 'reader: no log is an error', 'reader: the id of the mark', 'reader: the later segment, too',
    'reader: the order of commits', 'reader: an older commit that is wrong is damage', 'reader: two wrong slots are damage',
    'note: what is whole is said with the next segment', 'reader: the whole commit is no torn tail', 'reader: who has a commit goes on, whatever the note says', 'reader: a file that is shorter is refused',
    'reader: crc of a record', 'reader: crc of extents', 'reader: a torn tail is cut',
    'recovery: the superblock last', 'recovery: removes the log last', 'recovery: HDF5 flags are cleared',
    'left log: it is set aside', 'left log: the file has all of it before it is removed',
]
# Under `power`.
POWER = [
    LATE_MARKS[1],
    'power: the file is synced before COMMIT', 'power: the segment is synced after the slot',
    'power: the file is synced before a superblock that is the commit', 'power: the file is synced after a superblock that is the commit',
    'power: the folder is synced at the first commit of a created file', 'power: a file that was cut when it was opened is synced',
    'power: the folder is synced when a segment is made', 'power: a header is synced before the mark',
    'power: a header is synced when its segment is used again', 'power: the note is synced before the next segment has a commit',
    'power: the first commit syncs what an earlier program left', 'power: who opens a file beside a log stores its superblock first',
    'power: a checkpoint syncs the file before the superblock', 'power: a checkpoint syncs the file before the segment is free',
    'power: no commit after a failed sync', 'power: no checkpoint after a failed sync',
    'power: a checkpoint that is under way ends when another sync fails',
    'power: recovery writes the newest commit again', 'power: recovery syncs the log before it changes anything',
    'power: recovery syncs the folder', 'power: recovery syncs the file before it changes anything',
    'power: recovery syncs before the superblock', 'power: recovery syncs before it removes the log',
]
LOCKS = [
    'lock: a recoverer claims the file', 'lock: a recoverer claims the segments', 'lock: a writer claims the file',
    'lock: the mark is looked at again', 'lock: only the own segment is removed', 'lock: the own segment is found aside',
    'lock: a segment that is held is not removed', "lock: a reader has HDF5's lock",
]
# Not needed beside the others: nothing is found without them.
NEEDLESS = [
    LATE_MARKS[0],  # before the acknowledgement is enough; under `power` before COMMIT
    'the slot after the record',  # the record's crc is in the slot
    'reader: id of a slot',  # slots are zeroed with the header
    'reader: id and generation of a record',  # the record's crc
    'power: the file is synced before a left log goes',  # who opened the file beside it has done so
    'power: the superblock is written again before a sync of what was found',  # the same
    'power: recovery syncs its note',  # the commit itself is synced; the note is for damage
]
NEEDLESS_IN_PROCESS = [LATE_MARKS[1]]
# What the rules do not cover, each with the power (True), the process (False) or the locks (None) that show it, and the scripts.
BEYOND = [
    ("power: the name of a file that a program without power has made", True, scripts.NAME_UNSYNCED),
    (SECOND, None, None),
]
