#!/usr/bin/env python3
"""The disk of replay.py: what a sync makes durable, what it does not, and what a failed one loses."""

import pathlib
import random
import tempfile
import unittest

import replay
from replay import MAKE, RENAME, SIZE, SYNC, SYNC_FOLDER, UNLINK, WRITE, Call


class Traced:
    """A disk that is told of calls as record.c tells."""

    def __init__(self, case, rng=None, files=()):
        folder = tempfile.TemporaryDirectory()
        case.addCleanup(folder.cleanup)
        for name, data in files:
            (pathlib.Path(folder.name) / name).write_bytes(data)
        self.disk = replay.Disk(folder.name, rng or random.Random(1))
        self.disk.inodes = {number: file for number, file in enumerate(self.disk.names.values(), 1)}

    def begin(self, kind, inode=0, at=0, data=b"", name=""):
        call = Call(kind, 0, inode, at, name, data)
        self.disk.take(False, call)
        return call

    def end(self, call, result=None, inode=None):
        call.result = len(call.data) if result is None else result
        call.inode = call.inode if inode is None else inode
        self.disk.take(True, call)

    def do(self, *words, result=None, made=None, **more):
        self.end(self.begin(*words, **more), result, made)

    def states(self, number=300):
        """What was found of all that may be: as text."""
        rng, found = random.Random(2), []
        for _ in range(number):
            for ways in self.disk.cuts(rng, 3):
                state = self.disk.state(ways, rng)
                if state not in found:
                    found.append(state)
        return found


class ReplayTest(unittest.TestCase):
    def test_what_was_synced_is_there_and_the_rest_may_be(self):
        traced = Traced(self, files=[("f", b"a" * 1024)])
        traced.do(WRITE, 1, 0, b"b" * 1024)
        traced.do(SYNC, 1, result=0)
        traced.do(WRITE, 1, 0, b"c" * 1024)
        found = [state["f"] for state in traced.states()]
        self.assertEqual(sorted(found), sorted(a * 512 + b * 512 for a in (b"b", b"c") for b in (b"b", b"c")))

    def test_a_sync_is_of_what_had_ended_before_it_began(self):
        traced = Traced(self, files=[("f", b"a" * 512)])
        write = traced.begin(WRITE, 1, 0, b"b" * 512)
        sync = traced.begin(SYNC, 1)
        traced.end(write)
        traced.end(sync, 0)
        self.assertEqual(sorted(state["f"][:1] for state in traced.states()), [b"a", b"b"])

    def test_a_call_under_way_may_have_happened(self):
        traced = Traced(self, files=[("f", b"")])
        traced.begin(WRITE, 1, 0, b"b" * 512)
        self.assertEqual(sorted({len(state["f"]) for state in traced.states()}), [0, 512])

    def test_a_sector_is_whole(self):
        traced = Traced(self, files=[("f", b"a" * 4096)])
        traced.do(WRITE, 1, 100, b"b" * 600)
        for state in traced.states():
            self.assertIn(state["f"][:512], (b"a" * 512, b"a" * 100 + b"b" * 412))
            self.assertEqual(len(state["f"]), 4096)

    def test_a_size_may_be_there_without_its_bytes_and_a_cut_leaves_zeros(self):
        traced = Traced(self, files=[("f", b"a" * 512)])
        traced.do(SIZE, 1, 0, result=0)
        traced.do(WRITE, 1, 512, b"b" * 512)
        found = [state["f"] for state in traced.states()]
        for one in (b"a" * 512, b"", bytes(1024), bytes(512) + b"b" * 512):
            self.assertIn(one, found)

    def test_a_name_needs_a_sync_of_the_folder(self):
        traced = Traced(self)
        traced.do(MAKE, at=1, name="f", result=3, made=7)
        traced.do(WRITE, 7, 0, b"b" * 512)
        traced.do(SYNC, 7, result=0)
        self.assertEqual(sorted(map(len, traced.states())), [0, 1])
        traced.do(SYNC_FOLDER, result=0)
        self.assertEqual(traced.states(), [{"f": b"b" * 512}])

    def test_names_that_go_and_move_may_have_or_not(self):
        traced = Traced(self, files=[("f", b"1"), ("g", b"2")])
        traced.do(UNLINK, 1, name="f", result=0)
        traced.do(RENAME, name="g", data=b"h", result=0)
        found = traced.states()
        for one in ({"f": b"1", "g": b"2"}, {"g": b"2"}, {"f": b"1", "h": b"2"}, {"h": b"2"}):
            self.assertIn(one, found)
        self.assertEqual(len(found), 4)

    def test_what_a_failed_sync_has_lost_a_later_one_does_not_store(self):
        lost = 0
        for seed in range(20):
            traced = Traced(self, random.Random(seed), files=[("f", b"a" * 8192)])
            traced.do(WRITE, 1, 0, b"b" * 8192)
            traced.do(SYNC, 1, result=-5)
            traced.do(SYNC, 1, result=0)
            (state,) = traced.states(1)
            lost += state["f"][:1] == b"a"
            traced.do(WRITE, 1, 10, b"c")  # with it the page is stored, whole
            traced.do(SYNC, 1, result=0)
            (state,) = traced.states(1)
            self.assertEqual(state["f"][:12], b"bbbbbbbbbbcb")
        self.assertTrue(0 < lost < 20)


if __name__ == "__main__":
    unittest.main()
