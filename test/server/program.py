"""The program: settings, signals, ready line, test mode, health, readiness, metrics."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from dohle import DOHLE, Node, free_port
from wire import Raw, fetch, metadata


def run(*arguments, seconds=20, **more):
    return subprocess.run([DOHLE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=seconds, text=True,
                          **more)


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.read().decode()


def wait_until(condition, seconds=10):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it did not come to pass"
        time.sleep(0.02)


def test_wrong_settings_are_refused_with_their_place():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "server.properties")
        with open(path, "w") as file:
            file.write("# mine\nnum.partition=3\nlog.dirs=%s/d\nnum.partitions=many\nnode.id=-5\n" % folder)
        done = run("start", "--config", path)
        assert done.returncode == 1 and done.stdout == "", done
        assert f'{path}:2: num.partition = "3": is not a known setting' in done.stderr
        assert "is num.partitions meant?" in done.stderr
        assert f'{path}:4: num.partitions = "many": is not a whole number' in done.stderr
        assert f"{path}:5: node.id" in done.stderr
        assert not os.path.exists(folder + "/d")


def test_command_line_is_checked():
    for arguments, words in ((["start", "--set", "x"], "is not name=value"), (["start", "--topic", "a:1"], "--test"),
                             (["start", "--test", "--topic", "a:0"], "NAME:PARTITIONS"),
                             (["start", "--config", "/no/such"], "could not open")):
        done = run(*arguments)
        assert done.returncode != 0 and words in done.stderr, (arguments, done)


def test_port_that_is_taken():
    with Node() as node:
        other = tempfile.mkdtemp()
        done = run("start", "--data", other, "--set", f"listeners=PLAINTEXT://{node.address}", "--set",
                   "dohle.http.listener=")
        shutil.rmtree(other)
        assert done.returncode == 1 and f"could not listen on {node.address}" in done.stderr, done
        assert "Address already in use; stop the server" in done.stderr, done


def refused(directory, *arguments):
    """What is said, in one line or two, when a node does not start on this directory."""
    done = run("start", "--data", directory, "--set", "listeners=PLAINTEXT://127.0.0.1:0", "--set", "dohle.http.listener=",
               *arguments)
    assert done.returncode in (1, 2) and done.stdout == "" and done.stderr.count("\n") <= 2, done
    return done.stderr


def test_directory_that_is_taken():
    with Node() as node:
        said = refused(node.directory)
        assert f'"{node.directory}" is in use by another process' in said and "--data DIR" in said, said
        node.kcat("-L")


def test_directory_of_another_node():
    with Node({"node.id": "3"}) as node:
        node.stop()
        assert "belongs to node 3, this is node 4; set node.id=3" in refused(node.directory, "--set", "node.id=4")
        meta = pathlib.Path(node.directory) / "meta.properties"
        text = meta.read_text()
        cluster = re.search("cluster.id=(.*)", text)[1]
        assert f"belong to cluster {cluster}, not to other" in refused(node.directory, "--cluster-id", "other")
        meta.write_text("version=1\nnode.id=3\n")
        assert "meta.properties\" is not valid: it must have" in refused(node.directory)
        meta.write_text(re.sub("directory.id=.*\n", "", text))  # As Kafka 3.6 left it.
        node.start()
        assert re.search("directory.id=.{22}\n", meta.read_text())
        node.kcat("-P", "-t", "t", data=b"x\n")


def test_directory_with_other_things():
    """Nothing is written into what is no data directory; what is missing above a new one is made."""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/photos")
        assert 'has other things in it ("photos")' in refused(folder)
        assert os.listdir(folder) == ["photos"]
        assert "could not make" in refused("/proc/nothing")
        pathlib.Path(f"{folder}/file").touch()
        assert "Not a directory" in refused(f"{folder}/file")
        assert "--cluster-id takes" in refused(f"{folder}/new", "--cluster-id", "a b")
        with Node(data=f"{folder}/new/and/deep") as node:
            node.kcat("-L")
            node.stop()
            os.mkdir(f"{folder}/new/and/deep/lost+found")
            assert "lost+found" in refused(f"{folder}/new/and/deep")


def test_full_disk_at_the_start():
    """Refused in words, and nothing is wrong with the directory when there is room."""
    with tempfile.TemporaryDirectory() as folder:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], stderr=subprocess.DEVNULL)
        if mounted.returncode != 0:
            return  # Not root, or no right to mount: nothing to see here.
        try:
            done = run("start", "--data", f"{folder}/data", "--set", "listeners=PLAINTEXT://127.0.0.1:0", "--set",
                       "dohle.http.listener=")
            assert done.returncode == 1 and "is full" in done.stderr, done
            assert "could not open the metadata log" in done.stderr, done
            subprocess.run(["mount", "-o", "remount,size=300m", folder], check=True)
            with Node(data=f"{folder}/data") as node:
                node.kcat("-P", "-t", "t", data=b"x\n")
                node.stop()
        finally:
            subprocess.run(["umount", folder], check=True)


def test_file_of_kafka():
    """A server.properties as Apache Kafka ships it works; --set is stronger."""
    with tempfile.TemporaryDirectory() as folder:
        port, control = free_port(), free_port()
        path = os.path.join(folder, "server.properties")
        with open(path, "w") as file:
            file.write(f"process.roles=broker,controller\nnode.id=4\ncontroller.quorum.bootstrap.servers=localhost:{control}\n"
                       f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}\n"
                       "inter.broker.listener.name=PLAINTEXT\ncontroller.listener.names=CONTROLLER\n"
                       f"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
                       f"num.network.threads=3\nsocket.send.buffer.bytes=102400\nlog.dirs={folder}/logs\n"
                       "num.partitions=1\noffsets.topic.replication.factor=1\nlog.retention.hours=168\n")
        node = subprocess.Popen([DOHLE, "start", "--config", path, "--set", "num.partitions=5", "--set",
                                 "dohle.http.listener="], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            assert "node 4" in node.stdout.readline()
            assert os.path.exists(f"{folder}/logs/meta.properties")
            subprocess.run(["kcat", "-b", f"127.0.0.1:{port}", "-P", "-t", "five"], input=b"x\n", check=True)
            listed = subprocess.run(["kcat", "-b", f"127.0.0.1:{port}", "-L", "-t", "five"], stdout=subprocess.PIPE)
            assert b"5 partitions" in listed.stdout, listed.stdout
        finally:
            node.terminate()
            assert node.wait(timeout=20) == 0
        assert "warn" not in node.stderr.read()


def test_terminate_and_interrupt():
    for number in (signal.SIGTERM, signal.SIGINT):
        with Node() as node:
            node.kcat("-P", "-t", "t", data=b"x\n")
            with Raw(node.port) as waiting, Raw(node.port):
                waiting.send(fetch(1, b"t", offset=1, wait_ms=30000))
                time.sleep(0.1)
                node.process.send_signal(signal.SIGHUP)  # Of no meaning.
                time.sleep(0.1)
                assert node.process.poll() is None
                start = time.monotonic()
                node.process.send_signal(number)
                assert node.process.wait(timeout=20) == 0
                assert time.monotonic() - start < 10
            node.start()
            assert node.kcat("-C", "-t", "t", "-o", "beginning", "-e", "-q") == b"x\n"


def test_log_lines_in_json():
    with Node() as node:
        port = free_port()
        data = tempfile.mkdtemp()
        other = subprocess.Popen([DOHLE, "start", "--log", "json", "--data", data, "--set",
                                  f"listeners=PLAINTEXT://127.0.0.1:{port}", "--set", "dohle.http.listener=", "--set",
                                  "no.such.setting=1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        other.stdout.readline()
        other.terminate()
        lines = other.communicate(timeout=20)[1].splitlines()
        shutil.rmtree(data)
        assert lines
        for line in lines:
            entry = json.loads(line)
            assert {"time", "level", "part", "message"} <= entry.keys()
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["time"])


# ---- health, readiness, metrics ------------------------------------------------------------------


def test_health_and_readiness():
    port = free_port()
    with Node({"dohle.http.listener": f"127.0.0.1:{port}"}) as node:
        assert get(f"http://127.0.0.1:{port}/healthz") == (200, "ok\n")
        status, text = get(f"http://127.0.0.1:{port}/readyz")
        assert status == 200 and text.startswith("ready: node 1 of cluster "), text
        assert get(f"http://127.0.0.1:{port}/nothing")[0] == 404
        request = urllib.request.Request(f"http://127.0.0.1:{port}/readyz", data=b"x", method="POST")
        try:
            urllib.request.urlopen(request, timeout=10)
            raise AssertionError("a POST was taken")
        except urllib.error.HTTPError as answer:
            assert answer.code == 405
        assert run("ready", "--data", node.directory).returncode == 0
        assert run("ready", "--http", f"127.0.0.1:{port}").stdout.startswith("ready: ")
        assert (os.stat(node.directory + "/dohle.sock").st_mode & 0o777) == 0o600
        node.stop()
        assert not os.path.exists(node.directory + "/dohle.sock")
        done = run("ready", "--data", node.directory)
        assert done.returncode == 1 and done.stdout.startswith("not ready: nobody answers"), done
        node.start()
        node.kill()  # Its socket is left behind; the next node takes the place.
        assert run("ready", "--data", node.directory).returncode == 1
        node.start()
        assert run("ready", "--data", node.directory, "--wait", "5").returncode == 0


def test_ready_waits():
    directory = tempfile.mkdtemp()
    waiting = subprocess.Popen([DOHLE, "ready", "--data", directory, "--wait", "15"], stdout=subprocess.PIPE, text=True)
    time.sleep(0.3)
    assert waiting.poll() is None
    with Node(data=directory):
        assert waiting.wait(timeout=15) == 0
    shutil.rmtree(directory)


def sample(text, name):
    found = re.search(rf"^{re.escape(name)} (\d+)", text, re.M)
    return int(found[1]) if found else None


def test_metrics():
    port = free_port()
    url = f"http://127.0.0.1:{port}/metrics"
    with Node({"dohle.http.listener": f"127.0.0.1:{port}"}) as node:
        with Raw(node.port) as raw:
            for _ in range(3):
                raw.send(metadata(1))
                raw.reply()
            text = get(url)[1]
            assert sample(text, 'dohle_requests_total{api="Metadata",version="1",error="NONE"}') == 3, text
            assert sample(text, "dohle_connections") == 1
            assert sample(text, "dohle_ready") == 1
            assert sample(text, "dohle_received_bytes_total") == 3 * len(metadata(1))
            assert sample(text, "process_resident_memory_bytes") > 0
        with Raw(node.port) as raw:
            raw.send(b"\xff\xff\xff\xff")
            assert raw.closed()
        text = get(url)[1]
        assert sample(text, "dohle_malformed_frame_total") == 1
        assert sample(text, "dohle_connections") == 0
        for line in text.splitlines():  # The format of the exposition.
            assert re.fullmatch(r'# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [0-9.e+-]+', line), line
        names = re.findall(r"^# TYPE (\w+)", text, re.M)
        assert len(names) == len(set(names))


def test_two_nodes_with_the_default_listener():
    """The second goes without, and says so."""
    default = {"dohle.http.listener": "127.0.0.1:9644"}
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 9644))
            taken.listen()
        except OSError:
            pass  # Somebody has it: as good.
        node = Node()
        del node.settings["dohle.http.listener"]
        with node:
            assert "dohle.http.listener" in node.said()
            assert run("ready", "--data", node.directory).returncode == 0
        broken = Node(default)
        try:
            broken.start()
            raise AssertionError("a listener that was asked for is missing, and the node serves")
        except RuntimeError:
            pass
        finally:
            broken.__exit__()


# ---- the test mode -------------------------------------------------------------------------------


def suite(*arguments, **more):
    process = subprocess.Popen([DOHLE, "start", "--test", *arguments], stdout=subprocess.PIPE, stdin=subprocess.PIPE,
                               stderr=subprocess.PIPE, **more)
    line = process.stdout.readline()
    assert line, process.stderr.read().decode()
    return process, json.loads(line)


def gone(told):
    with socket.socket() as s:
        refused = s.connect_ex(("127.0.0.1", told["port"])) != 0
    return refused and not os.path.exists(told["data"]) and not os.path.exists(f"/proc/{told['pid']}")


def test_suite_ends_with_its_input():
    process, told = suite("--topic", "words:3", "--topic", "more:1")
    assert told["ready"] and told["topics"] == {"words": 3, "more": 1}
    assert told["durability"] == "page cache" and told["data_removed_at_exit"]
    assert "end of standard input" in told["ends"]
    listed = subprocess.run(["kcat", "-b", told["bootstrap"], "-L"], stdout=subprocess.PIPE).stdout
    assert b'topic "words" with 3 partitions' in listed, listed
    subprocess.run(["kcat", "-b", told["bootstrap"], "-P", "-t", "words", "-p", "0"], input=b"x\n", check=True)
    process.stdin.close()
    assert process.wait(timeout=20) == 0
    assert gone(told)


def test_suite_ends_with_its_parent():
    code = ("import subprocess,sys,time\n"
            f"p=subprocess.Popen([{DOHLE!r},'start','--test'],stdin=subprocess.DEVNULL,stdout=subprocess.PIPE)\n"
            "sys.stdout.buffer.write(p.stdout.readline());sys.stdout.flush()\n"
            "time.sleep(60)\n")
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    told = json.loads(parent.stdout.readline())
    assert "end of standard input" not in told["ends"], told
    parent.kill()
    parent.wait()
    wait_until(lambda: gone(told))


def test_suite_outlives_the_thread_that_started_it():
    """As in Java or Go, where the thread that forks may end at once."""
    import threading
    started = []
    thread = threading.Thread(target=lambda: started.append(suite()))
    thread.start()
    thread.join()
    process, told = started[0]
    time.sleep(0.5)
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(timeout=20) == 0 and gone(told)


def test_suite_many_at_once():
    nodes = [suite() for _ in range(10)]
    assert len({told["port"] for _, told in nodes}) == len(nodes)
    for process, told in nodes:
        with Raw(told["port"]) as raw:
            raw.send(metadata(9))
            assert raw.reply()[0] == 9
    for process, _ in nodes:
        process.terminate()
    for process, told in nodes:
        assert process.wait(timeout=20) == 0 and gone(told)


def test_suite_settings_win():
    process, told = suite("--set", "dohle.ack.durability=sync", "--set", "num.partitions=4")
    assert told["durability"] == "sync"
    process.stdin.close()
    assert process.wait(timeout=20) == 0


# ---- the settings' own pages ---------------------------------------------------------------------


def test_config_pages():
    listed = run("config", "list").stdout
    assert "log.retention.ms" in listed and "internal.segment.bytes" not in listed
    page = run("config", "explain", "max.connections.per.ip").stdout
    assert "2147483647" in page
    wrong = run("config", "explain", "max.conections")
    assert wrong.returncode == 1 and "did you mean max.connections?" in wrong.stderr


TESTS = [value for name, value in sorted(globals().items()) if name.startswith("test_")]
