"""librdkafka's mock cluster, the server that many clients' unit tests talk to.

    with Mock() as mock:
        print(mock.address)
"""
import ctypes
import ctypes.util


def available():
    """None if librdkafka with its mock cluster is here, else why not."""
    name = ctypes.util.find_library("rdkafka")
    if name is None:
        return "no librdkafka"
    return None if hasattr(ctypes.CDLL(name), "rd_kafka_mock_cluster_new") else "a librdkafka without mock cluster"


class Mock:
    def __init__(self, brokers=1):
        self.library = ctypes.CDLL(ctypes.util.find_library("rdkafka"))
        for function, result, arguments in (
                ("rd_kafka_conf_new", ctypes.c_void_p, []),
                ("rd_kafka_new", ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]),
                ("rd_kafka_destroy", None, [ctypes.c_void_p]),
                ("rd_kafka_mock_cluster_new", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int]),
                ("rd_kafka_mock_cluster_destroy", None, [ctypes.c_void_p]),
                ("rd_kafka_mock_cluster_bootstraps", ctypes.c_char_p, [ctypes.c_void_p])):
            getattr(self.library, function).restype = result
            getattr(self.library, function).argtypes = arguments
        why = ctypes.create_string_buffer(256)
        self.handle = self.library.rd_kafka_new(0, self.library.rd_kafka_conf_new(), why, len(why))
        assert self.handle, why.value.decode()
        self.cluster = self.library.rd_kafka_mock_cluster_new(self.handle, brokers)
        self.address = self.library.rd_kafka_mock_cluster_bootstraps(self.cluster).decode().split(",")[0]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.library.rd_kafka_mock_cluster_destroy(self.cluster)
        self.library.rd_kafka_destroy(self.handle)
