"""A second broker that a test plays itself: registered with a controller, fenced or not; it never fetches.

    two = Neighbour(broker_connection.ask, controller_connection.ask)
    two.register(); two.until(lambda answer: not answer["IsFenced"])
"""
import time
from pathlib import Path

from metadata import records

ID = 2


def broker_epoch(directory, broker):
    """The newest one that the metadata log in a data directory has for it."""
    return max((offset, fields["BrokerEpoch"]) for path in Path(directory, "__cluster_metadata-0").glob("*.log")
               for offset, name, _, fields in records(path.read_bytes()) if name == "RegisterBrokerRecord" and fields["BrokerId"] == broker)[1]


class Neighbour:
    def __init__(self, ask_broker, ask_controller):
        self.ask_broker, self.ask_controller = ask_broker, ask_controller

    def register(self):
        """The error of it. It has the features of the broker that it is beside."""
        cluster = self.ask_broker("DescribeCluster", 0, {})["ClusterId"]
        features = self.ask_broker("ApiVersions", 4, {"ClientSoftwareName": "a", "ClientSoftwareVersion": "1"})["SupportedFeatures"]
        answer = self.ask_controller("BrokerRegistration", 4, {
            "BrokerId": ID, "ClusterId": cluster, "IncarnationId": b"N" * 16, "LogDirs": [b"D" * 16], "Rack": None,
            "Listeners": [{"Name": "PLAINTEXT", "Host": "h", "Port": 9, "SecurityProtocol": 0}],
            "Features": [{"Name": f["Name"], "MinSupportedVersion": f["MinVersion"], "MaxSupportedVersion": f["MaxVersion"]} for f in features]})
        self.epoch = answer["BrokerEpoch"]
        return answer["ErrorCode"]

    def beat(self, **more):
        return self.ask_controller("BrokerHeartbeat", 2, {"BrokerId": ID, "BrokerEpoch": self.epoch, "CurrentMetadataOffset": 1 << 40,
                                                          "WantFence": False, **more})

    def until(self, done, **more):
        """Beat until the answer is as wanted."""
        limit = time.monotonic() + 20
        while not done(self.beat(**more)):
            assert time.monotonic() < limit, "the controller's answer is not as it is waited for"
            time.sleep(0.05)

    def in_sync(self, directory, topic):
        """What broker 1, leader of the topic's only partition, would ask its controller for when the neighbour had all."""
        def known():
            return self.ask_broker("Metadata", 12, {"Topics": [{"Name": topic}]})["Topics"][0]
        isr = [{"BrokerId": broker, "BrokerEpoch": broker_epoch(directory, broker)} for broker in (1, ID)]
        for partition_epoch in range(50):  # Which one is told nowhere.
            answer = self.ask_controller("AlterPartition", 3, {"BrokerId": 1, "BrokerEpoch": isr[0]["BrokerEpoch"], "Topics": [{"TopicId": known()["TopicId"], "Partitions": [
                {"PartitionIndex": 0, "LeaderEpoch": known()["Partitions"][0]["LeaderEpoch"], "PartitionEpoch": partition_epoch, "NewIsrWithEpochs": isr}]}]})
            if answer["ErrorCode"] == 0 and answer["Topics"][0]["Partitions"][0]["ErrorCode"] == 0:
                break
        limit = time.monotonic() + 20
        while sorted(known()["Partitions"][0]["IsrNodes"]) != [1, ID]:
            assert time.monotonic() < limit, (answer, known())
            time.sleep(0.05)
