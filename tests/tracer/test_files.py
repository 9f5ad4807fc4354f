"""Files that hold text of traced values: what is read back of them is that text, however it gets there."""

import glob
import linecache
import multiprocessing
import os
import pathlib
import shelve
import shutil
import socket
import sqlite3
import subprocess
import sys

import pytest

from wengert import TraceError, jit, value_and_grad

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX's own functions")


def read(path):
    with open(path) as file:
        return file.read()


def put(path, text):
    with open(path, "w") as file:
        file.write(text)
    return path


def descriptor(x, folder):
    number = os.open(folder / "a", os.O_RDWR | os.O_CREAT)
    os.write(number, str(x).encode())
    text = os.pread(number, 50, 0)
    os.close(number)
    return float(text) * x


def buffers(x, folder):
    text = str(x)
    number = os.open(put(folder / "a", text), os.O_RDONLY)
    found = bytearray(len(text))
    os.readv(number, [found])
    os.close(number)
    return float(bytes(found)) * x


def pipe(x, folder):
    out, into = os.pipe()
    with os.fdopen(into, "w") as file:
        file.write(str(x))
    with os.fdopen(out) as file:
        return float(file.read()) * x


def sockets(x, folder):
    one, other = socket.socketpair()
    with one, other:
        one.sendall(str(x).encode())
        return float(other.recv(50)) * x


def moved(x, folder):
    os.rename(put(folder / "a", str(x)), folder / "b")
    return float(read(folder / "b")) * x


def replaced(x, folder):
    path = pathlib.Path(put(folder / "a", str(x))).replace(folder / "b")
    return float(path.read_text()) * x


def linked(x, folder):
    os.link(put(folder / "a", str(x)), folder / "b")
    return float(read(folder / "b")) * x


def symbolic(x, folder):
    os.symlink(put(folder / "a", str(x)), folder / "b")
    return float(read(folder / "b")) * x


def copied(x, folder):
    shutil.copyfile(put(folder / "a", str(x)), folder / "b")
    return float(read(folder / "b")) * x


def moved_by_shutil(x, folder):
    shutil.move(put(folder / "a", str(x)), folder / "b")
    return float(read(folder / "b")) * x


def read_by_line(x, folder):
    linecache.clearcache()
    return float(linecache.getline(str(put(folder / "a", str(x))), 1)) * x


def listed(x, folder):
    put(folder / str(x), "")
    return float(os.listdir(folder)[0]) * x


def globbed(x, folder):
    put(folder / str(x), "")
    return float(os.path.basename(glob.glob(str(folder / "*"))[0])) * x


def entries(x, folder):
    put(folder / str(x), "")
    return float(next(folder.iterdir()).name) * x


def pointed(x, folder):
    os.symlink(str(x), folder / "a")
    return float(os.readlink(folder / "a")) * x


def database(x, folder):
    one = sqlite3.connect(folder / "a")
    one.execute("create table t (a text)")
    one.execute("insert into t values (?)", (str(x),))
    one.commit()
    one.close()
    other = sqlite3.connect(folder / "a")
    found = other.execute("select a from t").fetchone()[0]
    other.close()
    return float(found) * x


def shelved(x, folder):
    with shelve.open(str(folder / "a")) as shelf:
        shelf["a"] = str(x)
    with shelve.open(str(folder / "a")) as shelf:
        return float(shelf["a"]) * x


def echoed(x, folder):
    return float(subprocess.run(["echo", str(x)], capture_output=True).stdout) * x


def passed_through(x, folder):
    done = subprocess.run(["cat"], input=str(x).encode(), capture_output=True)
    return float(done.stdout) * x


def sent(x, folder):
    one, other = multiprocessing.Pipe()
    with one, other:
        one.send(str(x))
        return float(other.recv()) * x


def sent_one_way(x, folder):
    out, into = multiprocessing.Pipe(duplex=False)
    with out, into:
        into.send_bytes(str(x).encode())
        return float(out.recv_bytes()) * x


def by_the_shell(x, folder):
    os.system(f"echo {x} > {folder / 'a'}")
    return float(read(folder / "a")) * x


def by_a_program(x, folder):
    subprocess.run(f"echo {x} > {folder / 'a'}", shell=True)
    return float((folder / "a").read_text()) * x


def copied_by_a_program(x, folder):
    put(folder / "a", str(x))
    os.system(f"cp {folder / 'a'} {folder / 'b'}")
    return float(read(folder / "b")) * x


def copied_by_a_slow_program(x, folder):
    put(folder / "a", str(x))
    os.system(f"cp {folder / 'a'} {folder / 'b'}; sleep 0.1")
    return float(read(folder / "b")) * x


LOST = [
    copied_by_a_slow_program,
    sent, sent_one_way, by_the_shell, by_a_program, copied_by_a_program,
    descriptor, buffers, pipe, sockets, moved, replaced, linked, symbolic, copied, moved_by_shutil,
    read_by_line, listed, globbed, entries, pointed, database, shelved, echoed, passed_through,
]  # fmt: skip


def emptied(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


@pytest.fixture(params=[False, True], ids=["off", "on"])
def switched(request):
    with jit(request.param):
        yield


@pytest.mark.parametrize("f", LOST)
def test_text_that_comes_back_from_the_system_is_no_number(f, tmp_path, switched):
    for x in (1.5, 2.5, 3.5):
        with pytest.raises(TraceError, match="text that was drawn from a traced value"):
            value_and_grad(f)(x, emptied(tmp_path / "files"))


def other_file(x, folder):
    put(folder / "data", "2.5")
    put(folder / f"log{x}", f"{x}")
    return float(read(folder / "data")) * x


def other_program(x, folder):
    put(folder / "log", f"{x}")
    return float(subprocess.run(["echo", "2.5"], capture_output=True).stdout) * x


def exit_status(x, folder):
    return (subprocess.call(["true", str(x)]) + 2.5) * x


def size(x, folder):
    return (os.path.getsize(put(folder / "a", f"{x:.3f}")) - 2.5) * x


@pytest.mark.parametrize("f", [other_file, other_program, exit_status, size])
def test_what_is_no_text_of_a_traced_value_is_a_number(f, tmp_path, switched):
    for x in (1.5, 2.5, 3.5, 4.5):
        folder = emptied(tmp_path / "files")
        assert value_and_grad(f)(x, folder) == (2.5 * x, 2.5)


def test_a_file_that_no_program_has_written_since_is_no_text(tmp_path, switched):
    def f(x, folder):
        put(folder / "log", f"{x}")
        os.system(f"true {x}")
        return float(read(folder / "data")) * x

    put(tmp_path / "data", "2.5")
    os.utime(tmp_path / "data", (1e9, 1e9))
    for x in (1.5, 2.5, 3.5):
        assert value_and_grad(f)(x, tmp_path) == (2.5 * x, 2.5)


def test_a_traced_time_is_not_left_with_a_file(tmp_path, switched):
    def f(x, path):
        os.utime(path, (x, x))
        return os.stat(path).st_mtime * x

    put(tmp_path / "a", "")
    for x in (1.5, 2.5, 3.5):
        with pytest.raises(TraceError, match="leaves a traced value with the operating system"):
            value_and_grad(f)(x, tmp_path / "a")
