"""The rules that the model can leave out, by the names that its code asks for, each with the scenes that show what it is for."""

# A violation is found without them.
RULES = {
    'W2: the claim comes before E.file': 'reopen, no locks',
    'W2: E.file comes before the segment': 'overwrite',
    'W2: M comes before the mark': 'overwrite',
    'W2: the segment is there before the mark': 'overwrite',
    'W2: the first superblock of a created file is marked': 'create',
    "W5: the mover's lock is taken before the descriptors are sent": 'reopen',
    'W5: the program makes its lock a shared one': 'read',
    'W5: a lock that cannot be had is not waited for': 'reopen',
    'W5: the mover begins when the program has closed its own descriptors': 'stock creates over, no locks',
    'W5: descriptors are closed, never unlocked': 'reopen, no locks',
    'O1: the log is looked for in T, not by the marker': 'rename',
    'O1: an entry of another inode is not used': 'copy',
    'O1: the log must have the id of the mark': 'create over it again',
    'O1: the mark is read again when there is no log': 'read',
    'O1: a file that is marked with 1 is empty': 'create',
    'O3: who recovers has the claim': 'reopen, no locks',
    'O3: who truncates has the claim before': 'create over it again',
    'O3: who is refused waits for the mover, and tries again': 'reopen',
    "O3: waits for the mover's lock, not for another's": 'reopen, no locks',
    'O3: holds the gate while it tries again': 'reopen',
    'V2: the path must lead to the inode of E.file': 'a copy takes its place',
    "V2: the mover's lock is taken": 'reopen',
    'V2: the claim is taken': 'reopen, no locks',
    'V2: the claim comes before flock': 'reopen',
    'V2: flock is taken': 'stock creates over, no leases',
    'V2: the log is read under the claim': 'reopen',
    'V2: a lease holds up who opens the file': 'stock creates over, no locks',
    'V3: an entry without its file is kept': 'rename',
    'V3: a file that is marked with 1 becomes empty': 'create',
    'V3: only a log with the id of the mark is applied': 'create over it again',
    'V3: the log of a deleted file is dropped only under a lease': 'delete',
    'V3: the superblock comes last': 'overwrite',
    'V3: the log goes after the superblock': 'overwrite',
    'V3: who finds no room gives the file up': 'no room',
    'V3: M is removed where E.file says': 'rename',
    'V3: M is removed where the file is': 'rename both',
    'V3: M is removed only if it names E': 'create over it again',
    'V3: E.file is removed last': 'overwrite',
    'N: a note without its entry is collected': 'no room',
}
# Not needed beside the others: nothing is found without them. Each with the scenes that come nearest.
NEEDLESS = {
    # Two writers without locks, and natively they break each other's file as well.
    'W2: the mark is read again when it has the claim': 'reopen, no locks',
    # When they are gone the file has all of it; but he would have to notice.
    'O2: a reader holds the segments': 'read',
    # It is, when there is no log.
    'O3: the mark is read again when it has the claim': 'reopen',
    # The claims are enough.
    'V: one mover': 'overwrite',
    # The next mover collects it: until one comes it would lie there.
    'N: the note goes with its entry': 'no room',
    # Where there are leases. Where there are none it makes what BEYOND shows rarer.
    'V3: the mark is read again before the superblock is written': 'stock creates over',
}

# Steps that nobody takes who keeps the rules.
ONLY_WITHOUT = {('program', 'keep them')}
