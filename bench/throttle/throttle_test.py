"""The throttle behaves as a file system: what programs rely on works, requests cost what they should, and no mount stays.

    throttle_test.py BUILD      (the build's binary folder; exit status 77: cannot be tested here)
"""

import errno
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Places, Throttle, is_mounted  # noqa: E402  (found by the line above)

LATENCY_US, BANDWIDTH = 10000, 100e6
places = None


class ThrottleTest(unittest.TestCase):
    def setUp(self):
        self.throttle = Throttle(places, LATENCY_US, BANDWIDTH)
        self.throttle.__enter__()
        self.addCleanup(self.throttle.__exit__)
        self.path = os.path.join(self.throttle.path, "file")

    def open(self, flags=os.O_RDWR | os.O_CREAT, path=None):
        fd = os.open(path or self.path, flags, 0o644)
        self.addCleanup(os.close, fd)
        return fd

    def requests(self, kind):
        return self.throttle.stats()[kind]["requests"]

    def test_every_write_and_read_is_a_request(self):
        fd = self.open()
        for i in range(10):
            os.pwrite(fd, b"x" * 100, i * 100)
        self.assertEqual(os.pread(fd, 50, 25), b"x" * 50)
        self.assertEqual(os.pread(fd, 50, 25), b"x" * 50)
        stats = self.throttle.stats()
        self.assertEqual(stats["writes"], {"requests": 10, "bytes": 1000, "up_to": {"128": 10}})
        self.assertEqual(stats["reads"]["requests"], 2)
        self.throttle.reset()
        self.assertEqual(self.requests("writes"), 0)

    def test_a_request_costs_latency_and_transfer(self):
        fd = self.open()
        begin = time.monotonic()
        for _ in range(5):
            os.pwrite(fd, bytes(400_000), 0)
        self.assertGreaterEqual(time.monotonic() - begin, 5 * (LATENCY_US * 1e-6 + 400_000 / BANDWIDTH))

    def test_concurrent_requests_overlap_their_latency(self):
        def writer(name):
            fd = self.open(path=os.path.join(self.throttle.path, name))
            for _ in range(25):
                os.pwrite(fd, b"y", 0)

        def together():
            threads = [threading.Thread(target=writer, args=(f"f{i}",)) for i in range(4)]
            begin = time.monotonic()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return time.monotonic() - begin

        # One after another they are never quicker than this; a busy machine may make them slower.
        self.assertTrue(any(together() < 0.75 * 4 * 25 * LATENCY_US * 1e-6 for _ in range(10)))

    def test_sizes_and_holes(self):
        fd = self.open()
        os.pwrite(fd, bytes(8192), 1 << 20)
        os.ftruncate(fd, 4 << 20)
        self.assertEqual(os.fstat(fd).st_size, 4 << 20)
        self.assertEqual(os.lseek(fd, 0, os.SEEK_DATA), 1 << 20)
        self.assertEqual(os.lseek(fd, 1 << 20, os.SEEK_HOLE), (1 << 20) + 8192)
        with self.assertRaises(OSError) as beyond:
            os.lseek(fd, 2 << 20, os.SEEK_DATA)
        self.assertEqual(beyond.exception.errno, errno.ENXIO)
        self.open(os.O_WRONLY | os.O_TRUNC)
        self.assertEqual(os.fstat(fd).st_size, 0)
        self.assertGreater(os.statvfs(self.throttle.path).f_blocks, 0)

    def test_names_follow_the_file(self):
        fd = self.open()
        os.pwrite(fd, b"kept", 0)
        inode = os.fstat(fd).st_ino
        os.rename(self.path, self.path + "2")
        self.assertEqual(os.stat(self.path + "2").st_ino, inode)
        os.link(self.path + "2", self.path + "3")
        os.symlink("file3", self.path + "4")
        self.assertEqual(os.stat(self.path + "4").st_nlink, 2)
        for name in ("2", "3"):
            os.unlink(self.path + name)
        self.assertEqual(os.fstat(fd).st_nlink, 0)
        self.assertEqual(os.pread(fd, 4, 0), b"kept")
        self.assertEqual(os.listdir(self.throttle.path), ["file4"])

    def test_locks_conflict(self):
        fcntl.flock(self.open(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        with self.assertRaises(BlockingIOError):
            fcntl.flock(self.open(), fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_no_mount_outlives_what_started_it(self):
        self.throttle.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.throttle.server.wait(30), 0)
        self.assertFalse(is_mounted(self.throttle.path))
        command = self.throttle.command + [self.throttle.backing, self.throttle.path]
        script = '"$@" & until [ -e "$0/.throttle/stats" ]; do sleep 0.01; done; kill -KILL $$'
        subprocess.run(["bash", "-c", script, self.throttle.path, *command], timeout=30, check=False)
        deadline = time.monotonic() + 30
        while is_mounted(self.throttle.path) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertFalse(is_mounted(self.throttle.path))


if __name__ == "__main__":
    if Throttle.missing():
        print("skipped:", Throttle.missing())
        sys.exit(77)
    places = Places(sys.argv.pop(1))
    unittest.main()
