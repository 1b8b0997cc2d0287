"""Crates as they were published, the tests that they bring, and librdkafka's, whose whole source is in one of them.

librdkafka is compiled once (without optimization: its tests wait more than they compute), in the folder of its tests; the crates that
want it link that one instead of compiling their own. What only the examples and the benchmarks of a crate need is taken out of its
manifest: together that is a quarter of the time that `cargo test` takes.
"""
import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build/test-suites"
SYS = ("rdkafka-sys", "4.10.0+2.12.1")  # The crate with librdkafka's source: the one of SUITES' rdkafka.
LIBRDKAFKA = BUILD / f"librdkafka-{SYS[1].partition('+')[2]}"


class Unbuilt(Exception):
    """A suite cannot be made here; the text says why."""


def must(command, folder, environment=None):
    done = subprocess.run(command, cwd=folder, env={**os.environ, **(environment or {})}, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise Unbuilt(f"{' '.join(map(str, command[:4]))}: {done.stderr[-500:]}")
    return done.stdout


def cargo(folder, *arguments):
    return must(["cargo", *arguments], folder, {
        "CARGO_TARGET_DIR": str(BUILD / "target"), "CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_PROFILE_TEST_DEBUG": "0",
        "PKG_CONFIG_PATH": str(LIBRDKAFKA / "installed/lib/pkgconfig"), "ZSTD_SYS_USE_PKG_CONFIG": "1"})


def published(name, version):
    """The folder of a crate as cargo keeps it."""
    asking = BUILD / f"{name}-asking"
    (asking / "src").mkdir(parents=True, exist_ok=True)
    (asking / "src/lib.rs").touch()
    (asking / "Cargo.toml").write_text(f'[package]\nname = "asking"\nversion = "0.0.0"\nedition = "2021"\n'
                                       f'[workspace]\n[dependencies]\n{name} = "={version.partition("+")[0]}"\n')
    told = cargo(asking, "metadata", "--format-version", "1", "--quiet")
    manifest, = [package["manifest_path"] for package in json.loads(told)["packages"] if package["name"] == name]
    return Path(manifest).parent


def copy(source, folder, ready):
    """Copy a folder, unless it was copied and `ready(copy)` done before."""
    if (folder / "complete").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source(), folder, ignore=shutil.ignore_patterns("rust-toolchain.toml"))
    ready(folder)
    (folder / "complete").touch()
    return folder


def make_librdkafka(folder):
    jobs = f"-j{os.cpu_count() or 1}"
    must(["./configure", f"--prefix={folder / 'installed'}", "--disable-gssapi", "--disable-curl", "--disable-optimization",
          "--disable-debug-symbols"], folder)
    for target in ["libs"], ["-C", "src", "install"]:
        must(["make", jobs, *target], folder)


def librdkafka():
    """The folder of librdkafka with its library compiled."""
    return copy(lambda: published(*SYS) / "librdkafka", LIBRDKAFKA, make_librdkafka)


@dataclass
class CargoSuite:
    name: str
    version: str
    not_run: dict  # A part of the names of tests: why.
    environment: dict = field(default_factory=dict)
    settings: dict = field(default_factory=dict)
    update: tuple = ()  # Crates of its lock file that today's compiler refuses.
    unneeded: tuple = ()  # Crates that none of its tests uses.
    toolchain = "rust"
    always = True

    def ready(self, folder):
        """Leave out of the manifest what no test needs, and link the librdkafka that is here."""
        text = (folder / "Cargo.toml").read_text()
        for crate in self.unneeded:
            text = re.sub(rf"^\[dev-dependencies\.{crate}\]\n.*?(?=^\[|\Z)", "", text, flags=re.M | re.S)
        text = re.sub(r"(?<=^\[dev-dependencies\.rdkafka\]\n)(.*?features = \[\n)", r'\1    "dynamic-linking",\n', text, flags=re.M | re.S)
        (folder / "Cargo.toml").write_text(text)
        for crate in self.update:
            cargo(folder, "update", "--quiet", "-p", crate)

    def build(self):
        """Its test programs by name and the folder of its sources."""
        librdkafka()
        folder = copy(lambda: published(self.name, self.version), BUILD / f"{self.name}-{self.version}", self.ready)
        features = ["--features", "dynamic-linking"] if self.name == "rdkafka" else []
        told = cargo(folder, "test", "--no-run", "--test", "*", *features, "--quiet", "--message-format", "json")
        made = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
        return {each["target"]["name"]: each["executable"] for each in made if each.get("executable") and "test" in each["target"]["kind"]}, folder

    def run(self, address, programs, folder, names):
        """Passed, failed."""
        passed = failed = 0
        for program, path in programs.items():
            output = self.output_of(path, folder, [*(["--exact", *names] if names else [f"--skip={name}" for name in self.not_run])])
            verdicts = dict(re.findall(r"^test (\S+) \.\.\. (ok|FAILED|ignored)", output, re.M))
            for name in [name for name, verdict in verdicts.items() if verdict == "FAILED"]:
                alone = self.output_of(path, folder, ["--exact", name])
                if re.search(rf"^test {re.escape(name)} \.\.\. ok$", alone, re.M):
                    verdicts[name] = "ok"
                    print(f"{self.name} {program} {name} passed alone, not beside others")
                else:
                    print(f"FAIL {self.name} {program} {name}\n{alone[-2000:]}")
            if "test result: " not in output:
                print(f"FAIL {self.name} {program} did not come to an end\n{output[-2000:]}")
                failed += 1
            passed += sum(verdict == "ok" for verdict in verdicts.values())
            failed += sum(verdict == "FAILED" for verdict in verdicts.values())
            for name in [name for name, verdict in verdicts.items() if verdict == "ignored"]:
                print(f"{self.name} skips {name} itself")
        return passed, failed

    def output_of(self, program, folder, arguments):
        return told_by([program, *arguments], folder, {**self.environment, "LD_LIBRARY_PATH": str(LIBRDKAFKA / "installed/lib")}, 300)


@dataclass
class LibrdkafkaSuite:
    """The tests that librdkafka brings in C and C++, those that speak to a server. One program runs them all, some beside each other; its
    quick mode leaves out parts of most and all of some. The whole of one runs when it is named."""
    not_run: dict  # Test: why.
    whole: tuple  # Tests of which quick mode would leave out everything.
    parts: dict  # Test whose parts run one by one, since one that needs what is not built ends it: what is in the names of the parts.
    environment: dict = field(default_factory=dict)
    settings: dict = field(default_factory=lambda: {"num.partitions": "4"})
    name = "librdkafka"
    toolchain = "rust"  # Its source comes in a crate.
    always = False  # Minutes of waiting.

    def build(self):
        folder = librdkafka() / "tests"
        must(["make", f"-j{os.cpu_count() or 1}", "build"], folder)
        return folder / "test-runner", folder

    def run(self, address, program, folder, names):
        """Passed, failed."""
        if names:
            return self.count(self.verdicts(program, folder, address, ["-p1"], {"TESTS": ",".join(names)}))
        aside = {number(name) for name in [*self.not_run, *self.parts, *self.whole]}
        found = self.verdicts(program, folder, address, ["-L", "-Q", "-p6"], {"TESTS_SKIP": ",".join(sorted(aside))})
        found = {name: verdict for name, verdict in found.items() if number(name) not in aside}
        found.update(self.verdicts(program, folder, address, ["-L", "-p6"], {"TESTS": ",".join(map(number, self.whole))}))
        for name in [name for name, (verdict, _) in found.items() if verdict == "FAILED"]:
            mode = [] if number(name) in map(number, self.whole) else ["-Q"]
            alone = self.verdicts(program, folder, address, ["-L", "-p1", *mode], {"TESTS": name}).get(name, ("", ""))
            if alone[0] == "PASSED":
                print(f"{self.name} {name} passed alone, not beside others: {found[name][1]}")
                found[name] = alone
        for test, parts in self.parts.items():
            for part in parts:
                verdict = self.verdicts(program, folder, address, ["-Q", "-p1"], {"TESTS": test, "SUBTESTS": f"do_test_{part}:"})
                found[f"{test} {part}"] = verdict.get(test, ("FAILED", "was not run"))
        return self.count(found)

    def count(self, found):
        for name, (verdict, text) in sorted(found.items()):
            if verdict == "SKIPPED":
                print(f"{self.name} skips {name} itself: {text}")
            if verdict == "FAILED":
                print(f"FAIL {self.name} {name}\n{text}")
        verdicts = [verdict for verdict, _ in found.values()]
        return verdicts.count("PASSED"), verdicts.count("FAILED") + (not verdicts)

    def verdicts(self, program, folder, address, arguments, environment):
        """By test: PASSED, FAILED or SKIPPED, and the last that was said of it."""
        with tempfile.TemporaryDirectory() as scratch:  # Tests leave files where they run.
            configuration = Path(scratch) / "test.conf"
            configuration.write_text(f"bootstrap.servers={address}\nbroker.address.family=v4\ntest.timeout.multiplier=3\n")
            output = told_by([program, *arguments], scratch, {
                "CI": "true", "TEST_KAFKA_VERSION": "4.0.0", "RDKAFKA_TEST_CONF": str(configuration), "BROKERS": address,
                "LD_LIBRARY_PATH": f"{folder.parent / 'src'}:{folder.parent / 'src-cpp'}", **self.environment, **environment}, 600)
        output = re.sub(r"\x1b\[[0-9;]*m", "", output)
        found = {}
        for name in re.findall(r"=+ Running test (\S+) =", output):
            said = re.findall(rf"^\[{name} +/ *[0-9.]+s\] (.*)", output, re.M)
            passed = any(line.startswith("=") and f"Test {name} PASSED" in line for line in said)
            skipped = [line.partition("SKIPPING TEST: ")[2] for line in said if "SKIPPING TEST: " in line]
            failed = re.search(rf'^### Test "{name}" failed at .*\n.*', output, re.M)
            if skipped:
                found[name] = "SKIPPED", skipped[0]
            elif passed and not failed and re.search(rf"^\[{name} .*\] {name}: duration 0\.\d+ms$", output, re.M):
                found[name] = "SKIPPED", "all of its parts are left out"
            elif passed and not failed:
                found[name] = "PASSED", ""
            else:
                found[name] = "FAILED", (failed.group() if failed else "did not come to an end\n") + "\n" + "\n".join(said[-12:])
        return found


def number(name):
    """By which librdkafka's program knows a test: 0081 of 0081_admin."""
    return name.partition("_")[0]


def told_by(command, folder, environment, seconds):
    try:
        done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=seconds)
        return done.stdout
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode(errors="replace") + f"\nnot within {seconds} s"
