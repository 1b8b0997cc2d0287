"""What a clean stop and a new start leave: the epochs of the lives before, and their producers."""
from batches import batch, record
from scripts.reading import T0, fetch, partition
from scripts.records import NOW, produce
from scripts.topics import made, seen, topic
from side import batches_of

EPOCHS = ("Epoch", "LeaderEpoch", "epoch")


class Lives:
    """The leader epochs of a partition by their order: how much each start adds is each server's own."""

    def __init__(self, side, name):
        self.side, self.name, self.known = side, name, []

    def learn(self):
        answer = fetch(self.side, [(self.name, partition(0))], quiet=True)
        self.known = sorted({b["epoch"] for b in batches_of(answer["Responses"][0]["Partitions"][0]["Records"])})

    def named(self, value, key=None):
        if isinstance(value, dict):
            return {name: self.named(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [self.named(item, key) for item in value]
        if key == "Records":
            return [self.named(item) for item in batches_of(value)]
        return f"life {self.known.index(value)}" if key in EPOCHS and value in self.known else value

    def note(self, label, answer):
        self.side.note(f"{self.name}: {label}", self.named(answer))


def fill(side, name, life):
    seen(side, name)
    for i in range(2):
        ms = T0 + 1000 * life + 100 * i
        produce(side, name, batch(records=[record(b"%d" % life, offset=j, ms=j) for j in range(3)], first_ms=ms, max_ms=ms + 2), quiet=True)


def script_lives(side):
    made(side, topic("lives"), topic("producers-live"))
    pid = side.until(lambda a: a["ErrorCode"] == 0, "InitProducerId", 4, {"TransactionalId": None, "TransactionTimeoutMs": 60000}, quiet=True)["ProducerId"]

    def put(sequence, epoch=0):
        # Now, because producers that wrote long ago are forgotten at a start.
        produce(side, "producers-live", batch(pid=pid, producer_epoch=epoch, sequence=sequence, first_ms=NOW), tell=f"sequence {sequence} epoch {epoch}")
    for sequence in range(7):
        put(sequence)
    for life in range(4):  # The second one writes nothing: its epoch is one between two that there were.
        if life:
            side.restart()
        if life != 1:
            fill(side, "lives", life)
    put(6), put(5), put(2), put(8), put(7), put(6), put(7), put(0, epoch=1), put(7)
    side.ask("DescribeProducers", 0, {"Topics": [{"Name": "producers-live", "PartitionIndexes": [0]}]})
    lives = Lives(side, "lives")
    lives.learn()
    first, second, last = lives.known
    assert second > first + 1, lives.known
    asked = {"below": first - 1, "first": first, "behind the first": first + 1, "before the second": second - 1, "second": second, "before the last": last - 1,
             "last": last, "behind": last + 1, "none": -1}
    for label, epoch in asked.items():
        for version in (2, 3, 4):
            lives.note(f"OffsetForLeaderEpoch v{version} {label}", side.ask("OffsetForLeaderEpoch", version, {"Topics": [{"Topic": "lives", "Partitions": [
                {"Partition": 0, "CurrentLeaderEpoch": -1, "LeaderEpoch": epoch}]}]}, quiet=True))
        for version in (12, 13, 18):
            for offset in (0, 3, 6, 7, 12, 15, 18, 19):
                lives.note(f"Fetch v{version} {offset} last of {label}", fetch(side, [("lives", partition(offset, last_epoch=epoch))], version, quiet=True))
    for label, epoch in {**asked, "long ago": 0}.items():
        lives.note(f"Fetch by a client at {label}", fetch(side, [("lives", partition(3, epoch=epoch))], quiet=True))
    for ms in (T0, T0 + 101, T0 + 103, T0 + 2000, T0 + 3102, T0 + 3103, -1, -2, -3):
        lives.note(f"ListOffsets {ms}", side.ask("ListOffsets", 7, {"ReplicaId": -1, "Topics": [{"Name": "lives", "Partitions": [
            {"PartitionIndex": 0, "CurrentLeaderEpoch": -1, "Timestamp": ms}]}]}, quiet=True))
