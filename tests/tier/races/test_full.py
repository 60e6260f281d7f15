"""No room: in the tier, where the file lies, in either by a limit. What was acknowledged is kept, and comes to its place when there is room again."""

import json
import signal
import time

import common
import pytest
from conftest import ALL, BUILT, EMPTY, as_root, meaning, refused

LARGE = ["--rows", "20", "--state", "300000"]  # 2.4 MB a commit


def large(there, *words, env=(), rc=0):
    done = common.run([BUILT.writer, "--file", there.path(), "--report", there.root / "report", *LARGE, *words], there.env() | dict(env), timeout=60)
    assert rc is None or done.rc == rc, done.words()
    return done


def seen(there, env=None):
    return meaning(common.run([BUILT.writer, "--read", there.path(), *LARGE], env or there.env(tier=False), timeout=30))


def stock(there):
    return seen(there, common.native_env())


def acknowledged(there):
    """The commits that the program may have left: the last one done, or one begun later."""
    import kill

    told = kill.read_report(there.root / "report", False)["a.h5"]
    return [told.done, *(number for number in told.begun if number > told.done)]


@pytest.mark.parametrize("size", ["64K", "1M", "3M"])
def test_a_tier_that_is_too_small(there, size):
    large(there, "--steps", "5", env={"TIDELANE_TIER_SIZE": size})
    assert seen(there) == 6
    there.must_drain()
    assert stock(there) == 6


@pytest.mark.parametrize("size", ["64K", "1M", "3M"])
@pytest.mark.parametrize("at", [40, 70, 100])
def test_a_tier_that_is_too_small_and_a_kill(there, size, at):
    """What was in the tier, and what was too much for it, are one commit. A file that cannot be there at all is journalled beside itself, as this program asks for."""
    env = {"TIDELANE_TIER_SIZE": size, "TIDELANE_JOURNAL": "process"} | BUILT.kill_env(there.root, at, only="data/a.h5" if at == 100 else None)
    large(there, "--steps", "12", env=env, rc=None)
    may_be = acknowledged(there)
    answer = seen(there)
    assert answer in may_be or (may_be[0] == 0 and refused(answer)), (may_be, answer)
    assert there.plugin.recover(there.data).rc == 0
    there.must_drain()
    assert stock(there) == answer or refused(answer)


FULL = {"TIDELANE_TIER_SIZE": "1M"}  # all of the 2.4 MB are written again before each flush


def test_what_is_written_again_finds_no_room(there):
    """It may not go to the file, which has it from the last commit on; the log goes on beside the file, and the close brings it home."""
    summary = there.root / "summary.json"
    large(there, "--steps", "6", env=FULL | {"TIDELANE_SUMMARY": summary})
    told = json.loads(summary.read_text())
    assert told["fallbacks"]["tier_full"] == 1, told["fallbacks"]
    assert (there.entries(), there.beside()) == ([], [])
    assert stock(there) == 7


def test_what_is_written_again_finds_no_room_and_a_kill(there):
    """Wherever it comes while the log changes its place: the last commit, by whoever opens the file, and by a mover."""
    count = there.root / "count"
    words = ["--steps", "3"]
    large(there, *words, env=FULL | BUILT.kill_env(there.root, 0, count=count))
    calls = int.from_bytes(count.read_bytes(), "little")
    wrong = []
    for at in range(2, calls, 1 if ALL else max(calls // 25, 1)):
        for left in [*there.data.iterdir(), there.root / "report"]:
            left.unlink(missing_ok=True)
        there.must_drain_all()
        large(there, *words, env=FULL | BUILT.kill_env(there.root, at), rc=None)
        may_be = acknowledged(there)
        answer = seen(there)
        if answer not in may_be and not (may_be[0] == 0 and (refused(answer) or answer == EMPTY)):
            wrong.append((at, may_be, answer))
        there.kill_movers()
        there.drain()
        assert there.plugin.recover(there.data).rc == 0
        if answer in may_be and stock(there) != answer:
            wrong.append((at, may_be, answer, stock(there)))
    assert calls > 40 and not wrong, wrong


@as_root
def test_what_is_written_again_and_no_room_in_the_tiers_file_system(there, mounted):
    mounted(there.tier, "5m")
    summary = there.root / "summary.json"
    large(there, "--steps", "6", "--state", "900000", env={"TIDELANE_TIER_SIZE": "100M", "TIDELANE_SUMMARY": summary})
    assert json.loads(summary.read_text())["fallbacks"]["tier_full"] == 1
    assert meaning(common.run([BUILT.writer, "--read", there.path(), *LARGE, "--state", "900000"], common.native_env(), timeout=30)) == 7


@as_root
def test_a_tier_in_memory_takes_a_share_of_what_this_program_may_have(there, mounted):
    """Its pages count as the program's where a control group limits that, which ends whoever takes more. (Here another limit stands for it.)"""
    mounted(there.tier, "500m")
    summary, size = there.root / "summary.json", {}
    for data in ("unlimited", "100000"):
        words = ["bash", "-c", f'ulimit -d {data}; exec "$@"', "limited", BUILT.writer, "--file", there.path(), "--report", there.root / "report", "--rows", "20", "--state", "5000000", "--steps", "1"]
        done = common.run(words, there.env() | {"TIDELANE_SUMMARY": summary}, timeout=60)
        assert done.rc == 0, done.words()
        told = json.loads(summary.read_text())
        size[data] = told["counters"]["bytes_logged"]
        assert (told["counters"]["bytes_past_tier"] > 0) == (data != "unlimited"), (data, told["counters"]["bytes_past_tier"])
        there.must_drain()
    assert size["100000"] < size["unlimited"], size


@as_root
def test_the_tiers_file_system_is_full(there, mounted):
    mounted(there.tier, "8m")
    done = large(there, "--steps", "20", rc=None)
    if done.rc == 0:
        assert seen(there) == 21
    else:
        assert seen(there) in acknowledged(there), done.words()
    answer = seen(there)
    there.must_drain()
    assert stock(there) == answer
    assert done.rc == 0, done.words()


@as_root
def test_no_room_where_the_file_lies(there, mounted):
    mounted(there.data, "1m")
    done = large(there, "--steps", "2", rc=None)
    assert done.rc == 0, done.words()
    assert seen(there) == 3
    mover = there.start()
    time.sleep(1)
    assert refused(stock(there)) and seen(there) == 3
    mounted.more(there.data, "30m")
    assert there.end(mover) is not None and there.drained()
    assert stock(there) == 3


@as_root
def test_no_room_where_an_older_commit_lies(there, mounted):
    """A file that was there, and grows: what is there of it stays whole with what waits."""
    mounted(there.data, "4m")
    large(there, "--steps", "1")
    there.must_drain()
    with open(there.data / "ballast", "wb") as ballast:
        ballast.write(bytes(1300000))
    large(there, "--steps", "2", "--continue")
    assert seen(there) == 5
    mover = there.start()
    time.sleep(1)
    assert seen(there) == 5 and (refused(stock(there)) or stock(there) == 5)
    (there.data / "ballast").unlink()
    assert there.end(mover) is not None and there.drained()
    assert stock(there) == 5


@pytest.mark.parametrize("limit", [200, 2000])
def test_a_mover_that_may_not_write_so_much(there, limit):
    """RLIMIT_FSIZE, and the signal that comes with it."""
    large(there, "--steps", "2")
    limited = common.run(["bash", "-c", f'ulimit -f {limit}; exec "$@"', "limited", there.plugin.folder / "tidelane-mover", there.own], common.native_env(), timeout=3)
    assert limited.rc in (None, 0, 1, -signal.SIGXFSZ)  # it may go on trying
    assert seen(there) == 3 and (refused(stock(there)) or stock(there) == 3)
    there.must_drain()
    assert stock(there) == 3


def test_a_program_that_may_not_write_so_much(there):
    """The log has no room: the program is told, and what was acknowledged is kept."""
    words = ["bash", "-c", 'ulimit -f 9000; trap "" XFSZ; exec "$@"', "limited", BUILT.writer, "--file", there.path(), "--report", there.root / "report", *LARGE, "--steps", "20"]
    done = common.run(words, there.env(), timeout=60)
    assert done.rc is not None and done.rc != -signal.SIGKILL
    answer = seen(there)
    assert answer in acknowledged(there), (answer, acknowledged(there), done.words())
    there.must_drain()
    assert stock(there) == answer
