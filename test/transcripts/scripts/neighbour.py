"""A second broker, registered, fenced and not: what is told of it."""
from neighbour import ID, Neighbour


def shown(side, fenced):
    """What the broker tells, as soon as it knows."""
    def known(answer):
        return [b["IsFenced"] for b in answer["Brokers"] if b["BrokerId"] == ID] == [fenced]
    answer = side.until(known, "DescribeCluster", 2, {"IncludeFencedBrokers": True}, quiet=True)
    side.note("fenced ones too", answer["Brokers"])
    for on in ("a", "controller"):
        for version in (0, 1, 2):
            answer = side.ask("DescribeCluster", version, {"EndpointType": 1 if on == "a" else 2} if version else {}, on=on, quiet=True)
            # Any broker that is not fenced may be named as the one for requests to the controller.
            side.note(f"DescribeCluster v{version} on {on}", {**answer, "ControllerId": answer["ControllerId"] in (1, ID)})
    side.note("Metadata", side.ask("Metadata", 12, {"Topics": []}, quiet=True)["Brokers"])


def script_second_broker(side):
    two = Neighbour(lambda *what: side.ask(*what, quiet=True), lambda *what: side.ask(*what, on="controller", quiet=True))
    side.note("the neighbour registers", two.register())
    shown(side, fenced=True)
    two.until(lambda answer: not answer["IsFenced"])
    shown(side, fenced=False)
    two.until(lambda answer: answer["IsFenced"], WantFence=True)
    shown(side, fenced=True)
    side.ask("UnregisterBroker", 0, {"BrokerId": ID})
    side.until(lambda answer: [b["BrokerId"] for b in answer["Brokers"]] == [1], "DescribeCluster", 2, {"IncludeFencedBrokers": True})
