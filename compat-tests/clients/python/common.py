"""What the Python clients' programs share: the cases by name, and how they are reported (see ../CASES.md)."""
import json
import signal
import sys
import threading
import time
import traceback

CASE_LIMIT_SECONDS = 130
PARTITIONS = 2
RECORDS = 300


def key(i):
    return None if i % 7 == 0 else b"key %d" % i


def value(i):
    return None if i % 11 == 0 and i % 7 else b"value %d " % i + b"v" * (i % 200)


def check(ok, *what):
    if not ok:
        raise AssertionError(" ".join(str(w) for w in what))


def name(what):
    return "py-%s-%d" % (what, time.time_ns() % 10**12)


def check_records(got, null_header=None):
    """got has (partition, offset, key, value, headers) of every record, in the order in which they came."""
    check(len(got) == RECORDS, len(got), "records came, not", RECORDS)
    by_partition = {p: [r for r in got if r[0] == p] for p in range(PARTITIONS)}
    for p, records in by_partition.items():
        for n, (_, offset, k, v, headers) in enumerate(records):
            i = n * PARTITIONS + p
            check(offset == n, "record", i, "has offset", offset)
            check(k == key(i), "record", i, "has key", k)
            check(v == value(i), "record", i, "has value", v)
            want = [("n", b"%d" % i), ("null", null_header)]
            check([(h[0], h[1]) for h in headers] == want, "record", i, "has headers", headers)


def until(what, ready, limit=40):
    """Waits for what other threads do."""
    end = time.monotonic() + limit
    while not ready():
        check(time.monotonic() < end, "after", limit, "s:", what())
        time.sleep(0.02)


class Member(threading.Thread):
    """A member of a group in a thread of its own. It commits after each poll that has brought something.

    driver has: poll(consumer) -> values, assignment(consumer) -> set of partitions, commit(consumer), and close(consumer)."""

    def __init__(self, driver, consumer):
        super().__init__(daemon=True)
        self.driver, self.consumer = driver, consumer
        self.values, self.held, self.error = [], frozenset(), None
        self.leaving = threading.Event()
        self.start()

    def run(self):
        try:
            while not self.leaving.is_set():
                values = self.driver.poll(self.consumer)
                self.held = frozenset(self.driver.assignment(self.consumer))
                if values:
                    self.values += values
                    self.driver.commit(self.consumer)
            self.driver.close(self.consumer)
        except BaseException:
            self.error = traceback.format_exc()

    def leave(self):
        self.leaving.set()
        self.join(30)
        check(not self.is_alive(), "the member does not leave")
        check(self.error is None, self.error)


def group_case(driver, consumer, produce):
    """consumer() makes a consumer that is subscribed to a topic of four partitions; produce(values) fills it."""
    sent = 0

    def produced(count):
        nonlocal sent
        produce([b"%d" % i for i in range(sent, sent + count)])
        sent += count

    produced(200)
    first = Member(driver, consumer())
    members = [first]

    def told():
        return "; ".join("%d values, holds %s, %s" % (len(m.values), sorted(m.held), m.error) for m in members)

    def seen(count):
        return len({v for m in members for v in m.values}) == count or any(m.error for m in members)

    until(told, lambda: len(first.held) == 4 and seen(200))
    second = Member(driver, consumer())
    members.append(second)
    until(told, lambda: [len(m.held) for m in members] == [2, 2] or any(m.error for m in members))
    for _ in range(5):  # the first may still have asked for what is the second's
        if not second.values:
            produced(200)
            until(told, lambda: seen(sent))
    check(len(second.values) > 0, "the second member reads nothing:", told())
    second.leave()
    until(told, lambda: len(first.held) == 4 or first.error)
    produced(100)
    until(told, lambda: seen(sent))
    check(not any(m.error for m in members), told())
    first.leave()
    produced(50)
    third = Member(driver, consumer())
    members = [third]
    until(told, lambda: len(third.values) >= 50 or third.error)
    check(sorted(third.values, key=int) == [b"%d" % i for i in range(sent - 50, sent)], "from the commit on came", third.values)
    third.leave()


def expired(*_):
    raise TimeoutError("the case is not done after %d s" % CASE_LIMIT_SECONDS)


def main(cases):
    """cases maps a name, or its part before the first dash, to a function of the rest of the name."""
    signal.signal(signal.SIGALRM, expired)
    for case in sys.argv[2:]:
        outcome = {"case": case, "ok": True}
        start = time.monotonic()
        signal.alarm(CASE_LIMIT_SECONDS)
        try:
            if case in cases:
                cases[case]()
            else:
                kind, _, rest = case.partition("-")
                cases[kind](rest)
        except BaseException:
            outcome.update(ok=False, why=traceback.format_exc()[-3000:])
        signal.alarm(0)
        outcome["seconds"] = round(time.monotonic() - start, 2)
        print(json.dumps(outcome), flush=True)
