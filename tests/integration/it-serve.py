"""stella-exec serve: a client that does not trust it. Run through meson test, which names the program.

Every wait has a deadline; every refusal has its twin that works."""
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM = sys.argv[1]
PATIENCE = 30
failures = 0
passed = 0


def check(what, condition, shown=None):
    global failures, passed
    if condition:
        passed += 1
        print("ok:", what)
    else:
        failures += 1
        print("FAIL:", what, "" if shown is None else repr(shown)[:2000])


class Client:
    """One connection: requests by id, and the notifications that came."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.answers, self.notes = {}, []
        self.changed = threading.Condition()
        self.last = 0
        self.ended = False
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.reader:
            message = json.loads(line)
            with self.changed:
                if "method" in message:
                    self.notes.append(message)
                else:
                    self.answers[message["id"]] = message
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def send_line(self, text):
        self.writer.write(text.encode() + b"\n")
        self.writer.flush()

    def send(self, method, **params):
        self.last += 1
        self.send_line(json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}))
        return self.last

    def wait(self, condition, patience=PATIENCE):
        with self.changed:
            return self.changed.wait_for(condition, patience)

    def answer(self, number):
        if not self.wait(lambda: number in self.answers):
            raise TimeoutError(f"no answer to {number}")
        return self.answers.pop(number)

    def call(self, method, **params):
        return self.answer(self.send(method, **params))

    def result(self, method, **params):
        answer = self.call(method, **params)
        if "result" not in answer:
            raise RuntimeError(answer)
        return answer["result"]

    def noted(self, method):
        with self.changed:
            return [note["params"] for note in self.notes if note["method"] == method]


def data_of(pieces, stream):
    text = b""
    for piece in pieces:
        if piece["stream"] == stream:
            data = piece["data"]
            text += base64.b64decode(data) if piece["encoding"] == "base64" else data.encode()
    return text


def policy(workspace, **more):
    return {"version": 1, "filesystem": {"working_dir": "/workspace", "mounts": [
        {"host_path": workspace, "view_path": "/workspace", "access": "rw"}]}, **more}


def start(environment=None):
    server = subprocess.Popen([PROGRAM, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env={**os.environ, **(environment or {})})
    return server, Client(server.stdout, server.stdin)


def start_on_a_socket():
    ours, theirs = socket.socketpair()
    server = subprocess.Popen([PROGRAM, "serve"], stdin=theirs, stdout=theirs)
    theirs.close()
    return server, Client(ours.makefile("rb"), ours.makefile("wb")), ours


def processes(mark):
    count = 0
    for pid in os.listdir("/proc"):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                count += pid.isdigit() and mark.encode() in file.read().split(b"\0")
        except OSError:
            pass
    return count


def messages_that_make_no_sense(client):
    lines = [("nonsense", -32700), ("[]", -32700), ('{"jsonrpc":"2.0","id":"a","method":7}', -32600),
             ('{"id":"a","method":"exec"}', -32600), ('{"jsonrpc":"2.0","id":{},"method":"x"}', -32600),
             ('{"jsonrpc":"2.0","id":"a","method":"x","params":[]}', -32602),
             ('{"jsonrpc":"2.0","id":"a","method":"x"}', -32601),
             ('{"jsonrpc":"2.0","id":"a","id":"b","method":"x"}', -32700)]
    for line, code in lines:
        client.send_line(line)
        client.wait(lambda: client.answers)
        (number, answer), = client.answers.items()
        client.answers.clear()
        check(f"{line}: {code}", answer.get("error", {}).get("code") == code, answer)
    client.send_line('{"jsonrpc":"2.0","method":"exec"}')
    check("a notification gets no answer", client.result("initialize")["protocol"] == 1 and not client.answers)


def backends(client, workspace):
    other = client.call("session.create", policy=policy(workspace), backend="other")
    check("an unknown backend is named", "params.backend" in other["error"]["message"], other)
    refused = client.call("session.create", policy=policy(workspace, network={"mode": "disabled"}), backend="none")
    check("what a backend cannot enforce is told", refused["error"]["data"]["code"] == "policy-incompatible"
          and refused["error"]["data"]["key"] == "network.mode", refused)
    names = ["fsgate", "none"] + (["bwrap"] if os.access("/usr/bin/bwrap", os.X_OK) else [])
    for name in names:
        gone = client.call("session.create", backend=name,
                           policy={"version": 1, "filesystem": {"working_dir": workspace + "/missing"}})
        check(f"{name}: a missing working directory is told by its key", gone["error"]["data"]["code"] == "policy-invalid"
              and gone["error"]["data"]["key"] == "filesystem.working_dir", gone)
        session = client.result("session.create", policy=policy(workspace), backend=name)
        check(f"{name} is told", session["backend"] == name, session)
        number = session["session_id"]
        result = client.result("exec", session_id=number, command="pwd; echo $FRESH")
        where = workspace if name == "none" else "/workspace"
        check(f"{name}: a command runs", result["stdout"] == f"{where}\n\n", result)
        client.result("session.refresh_env", session_id=number, env={"FRESH": "x"})
        process = client.result("process.start", session_id=number, argv=["sh", "-c", "read line; echo $FRESH$line; exit 7"])
        client.result("process.write", process_id=process["process_id"], data="y\n")
        ended = client.result("process.wait", process_id=process["process_id"])
        check(f"{name}: a process is talked to", ended["exit_code"] == 7, ended)
        # all of its output comes before this, and may come after the answer
        client.wait(lambda: any(n["method"] == "process.ended" and n["params"]["process_id"] == process["process_id"]
                                for n in client.notes))
        pieces = [note for note in client.noted("process.output") if note["process_id"] == process["process_id"]]
        check(f"{name}: and heard", data_of(pieces, "stdout") == b"xy\n", pieces)
        held = client.result("process.start", session_id=number, argv=["sh", "-c", "setsid sleep 7654353 & sleep 7654353"])
        deadline = time.monotonic() + PATIENCE
        while processes("7654353") < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        client.result("session.close", session_id=number)
        check(f"{name}: its end is theirs", processes("7654353") == 0, held)
    session = client.result("session.create", policy=policy(workspace, network={"mode": "disabled"}), backend="nop")
    check("nop keeps nothing from the network", session["policy"]["network"]["mode"] == "allow_all", session)
    result = client.result("exec", session_id=session["session_id"], command="exit 3")
    check("nop: nothing runs", result["exit_code"] == 0 and result["stdout"] == "", result)
    live = client.call("process.start", session_id=session["session_id"], argv=["cat"])
    check("nop: no process is started", "starts no programs" in json.dumps(live), live)
    check("nop: it lives until it is closed", client.result("session.get", session_id=session["session_id"])["alive"])
    client.result("session.close", session_id=session["session_id"])
    client.notes.clear()


def sessions(client, workspace):
    bad = client.call("session.create", policy={"version": 1, "filesystem": {"working_dir": "relative"}})
    check("a bad policy is told", bad["error"]["code"] == -32000 and bad["error"]["data"]["code"] == "policy-invalid"
          and bad["error"]["data"]["key"] == "filesystem.working_dir", bad)
    missing = client.call("session.create", policy={"version": 1, "filesystem": {"working_dir": "/workspace", "mounts": [
        {"host_path": workspace + "/missing", "view_path": "/workspace", "access": "rw"}]}})
    check("a host path that is missing is told by its key", missing["error"]["data"]["code"] == "policy-invalid"
          and missing["error"]["data"]["key"] == "filesystem.mounts[0].host_path", missing)
    unknown = client.call("session.create", policy=policy(workspace), surprise=1)
    check("an unknown parameter is named", "params.surprise" in unknown["error"]["message"], unknown)
    created = client.result("session.create", policy=policy(workspace))
    check("a session says what it is", created["alive"] and created["working_dir"] == "/workspace"
          and "/workspace" in created["writable"] and created["session_id"].startswith("sandbox-"), created)
    check("it is listed", client.result("session.list")["sessions"] == [created["session_id"]])
    effective_policies(client, workspace)
    return created["session_id"]


def effective_policies(client, workspace):
    asked = {"version": 1, "filesystem": {"working_dir": workspace}}
    created = client.result("session.create", policy=asked)
    filesystem = created["policy"]["filesystem"]
    check("the policy is the effective one: where commands start", filesystem["working_dir"] == "/workspace", created)
    check("and every mount that it implies", [(row["host_path"], row["view_path"], row["access"])
          for row in filesystem["mounts"]] == [(workspace, "/workspace", "rw")], created)
    check("session.get says the same", client.result("session.get", session_id=created["session_id"])["policy"]
          == created["policy"])
    again = client.result("session.create", policy=created["policy"])
    check("it is the effective policy of itself", again["policy"] == created["policy"], again)
    client.result("exec", session_id=again["session_id"], command="echo twice >by-effective")
    with open(os.path.join(workspace, "by-effective")) as file:
        check("and makes the same view", file.read() == "twice\n")
    os.unlink(os.path.join(workspace, "by-effective"))
    for session in created, again:
        client.result("session.close", session_id=session["session_id"])


def commands(client, session, workspace):
    result = client.result("exec", session_id=session, command="echo out; echo err >&2; exit 3")
    check("a command has its result", (result["ended"], result["exit_code"], result["stdout"], result["stderr"])
          == ("exited", 3, "out\n", "err\n"), result)
    result = client.result("exec", session_id=session, argv=["printf", "%s|", "a b", ""])
    check("arguments are taken as they are", result["stdout"] == "a b||", result)
    result = client.result("exec", session_id=session, argv=["cat"], stdin={"b64": base64.b64encode(b"\0\xff").decode()})
    check("input and output are binary-safe", result["stdout_encoding"] == "base64"
          and base64.b64decode(result["stdout"]) == b"\0\xff", result)
    result = client.result("exec", session_id=session, command="echo $A ${HOME-none}; pwd", cwd="/tmp",
                           env={"A": "x y", "HOME": None})
    check("environment and directory are the request's", result["stdout"] == "x y none\n/tmp\n", result)
    result = client.result("exec", session_id=session, argv=["no-such-program"])
    check("a program that is not there is a result", result["ended"] == "start_failed"
          and result["error"]["code"] == "program-not-found", result)
    result = client.result("exec", session_id=session, command="echo early; sleep 7654351", timeout_ms=300)
    check("a timeout keeps the output", result["ended"] == "timed_out" and result["stdout"] == "early\n", result)
    for params, word in [({}, "argv"), ({"argv": []}, "argv"), ({"argv": ["a"], "command": "a"}, "argv"),
                         ({"argv": "ls"}, "argv"), ({"command": "ls", "timeout_ms": "1"}, "timeout_ms"),
                         ({"command": "ls", "env": {"A=B": "c"}}, "env"), ({"command": "touch ran", "x": 1}, "x"),
                         ({"command": "touch ran", "stdin": 7}, "stdin")]:
        answer = client.call("exec", session_id=session, **params)
        check(f"{params} is refused", answer["error"]["code"] == -32602
              and f"params.{word}" in answer["error"]["message"], answer)
    answer = client.call("exec", session_id="sandbox-0000000000000000", command="touch ran")
    check("a session that is not there is told", "session_id" in answer["error"]["message"], answer)
    check("nothing of that has run", not os.path.exists(f"{workspace}/ran"))
    client.result("session.refresh_env", session_id=session, env={"R": "fresh"})
    check("a refreshed variable is seen", client.result("exec", session_id=session, command="echo $R")["stdout"] == "fresh\n")


def streams_and_cancel(client, session):
    number = client.send("exec", session_id=session, command="echo one; echo two >&2; exec sleep 7654352", stream=True)
    client.wait(lambda: len(client.notes) >= 2)
    pieces = [piece for piece in client.noted("exec.output") if piece["id"] == number]
    check("output is told while the command runs", data_of(pieces, "stdout") == b"one\n"
          and data_of(pieces, "stderr") == b"two\n", pieces)
    check("other calls go on meanwhile", client.result("exec", session_id=session, command="echo x")["stdout"] == "x\n")
    check("a call is cancelled", client.result("exec.cancel", id=number)["canceled"])
    result = client.answer(number)["result"]
    check("and says so, with its output", result["ended"] == "canceled" and result["stdout"] == "one\n", result)
    check("nothing of it is left", processes("7654352") == 0)
    waiting = client.result("process.start", session_id=session, argv=["cat"])["process_id"]
    number = client.send("process.wait", process_id=waiting)
    check("a wait is not cancelled", not client.result("exec.cancel", id=number)["canceled"])
    client.result("process.close", process_id=waiting)
    client.answer(number)
    check("one that is over is not", not client.result("exec.cancel", id=number)["canceled"])


def live_processes(client, session):
    started = client.result("process.start", session_id=session, argv=["cat"])
    process = started["process_id"]
    for i in range(200):
        client.send("process.write", process_id=process, data=f"line {i}\n")
    expected = b"".join(b"line %d\n" % i for i in range(200))
    client.wait(lambda: data_of([n["params"] for n in client.notes if n["method"] == "process.output"], "stdout") == expected)
    check("what is written keeps its order", data_of(client.noted("process.output"), "stdout") == expected)
    client.result("process.close_stdin", process_id=process)
    check("its end is waited for", client.result("process.wait", process_id=process)["exit_code"] == 0)
    client.wait(lambda: any(n["method"] == "process.ended" for n in client.notes))
    check("and told", client.noted("process.ended")[0]["process_id"] == process)
    late = client.call("process.write", process_id=process, data="x")
    check("a write to one that has ended fails", late["error"]["data"]["errno"] == "EPIPE", late)
    asleep = client.result("process.start", session_id=session, command="exec sleep 7654353")["process_id"]
    client.result("process.signal", process_id=asleep, signal="SIGTERM")
    check("a signal ends one", client.result("process.wait", process_id=asleep)["signal"] == "SIGTERM")
    asleep = client.result("process.start", session_id=session, command="setsid sleep 7654353 & exec sleep 7654353")["process_id"]
    check("closing kills", client.result("process.close", process_id=asleep)["ended"] == "canceled" and processes("7654353") == 0)
    check("a closed one is gone", "process_id" in client.call("process.wait", process_id=asleep)["error"]["message"])
    answer = client.call("process.start", session_id=session, argv=["no-such-program"])
    check("a program that is not there starts nothing", answer["error"]["data"]["code"] == "program-not-found", answer)


def many_at_once(client, session):
    numbers = [client.send("exec", session_id=session, command=f"sleep 0.05; echo {i}") for i in range(60)]
    results = [client.answer(number)["result"]["stdout"] for number in numbers]
    check("sixty at once do not mix", results == [f"{i}\n" for i in range(60)], results)


def a_client_that_does_not_read(workspace):
    server = subprocess.Popen([PROGRAM, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def say(number, method, **params):
        server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n")
        server.stdin.flush()

    say(1, "session.create", policy=policy(workspace, limits={"output_bytes": 1000}))
    session = json.loads(server.stdout.readline())["result"]["session_id"]
    # Twice as much as may be queued, while nobody reads: it is lost, and counted, and the command goes on.
    say(2, "exec", session_id=session, command="head -c 64000000 /dev/zero; touch done", stream=True)
    done = time.monotonic() + PATIENCE
    while not os.path.exists(f"{workspace}/done") and time.monotonic() < done:
        time.sleep(0.05)
    check("the command is not held up", os.path.exists(f"{workspace}/done"))
    with open(f"/proc/{server.pid}/status") as status:
        peak = [int(line.split()[1]) for line in status if line.startswith("VmHWM")][0]
    # A sanitizer keeps what was freed.
    with open(PROGRAM, "rb") as program:
        bound = 1024 if b"__asan_init" in program.read() else 80
    check("memory stays bounded", peak < bound * 1024, peak)
    result = None
    while result is None:
        message = json.loads(server.stdout.readline())
        result = message.get("result")
    check("the result comes", result["stdout_bytes"] == 64000000, result)
    server.stdin.close()
    check("and it ends with its input", server.wait(PATIENCE) == 0)


def the_end_of_a_client(workspace, state):
    server, client, connection = start_on_a_socket()
    session = client.result("session.create", policy=policy(workspace))["session_id"]
    client.send("exec", session_id=session, command="exec sleep 7654354")
    client.result("process.start", session_id=session, command="exec sleep 7654354")
    while processes("7654354") < 2:
        time.sleep(0.02)
    connection.shutdown(socket.SHUT_RDWR)
    check("one that goes takes all with it", server.wait(PATIENCE) == 0 and processes("7654354") == 0)
    server, client = start()
    session = client.result("session.create", policy=policy(workspace))["session_id"]
    client.send("exec", session_id=session, command="exec sleep 7654354")
    while processes("7654354") < 1:
        time.sleep(0.02)
    server.send_signal(signal.SIGTERM)
    check("so does a signal", server.wait(PATIENCE) == 0 and processes("7654354") == 0)
    check("nothing is left on disk", os.listdir(f"{state}/sessions") == [], os.listdir(f"{state}/sessions"))
    # Requests and no more: the answers still come.
    lines = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session.create", "params": {"policy": policy(workspace)}})
    done = subprocess.run([PROGRAM, "serve"], input=lines.encode() + b"\n", stdout=subprocess.PIPE, timeout=PATIENCE)
    check("input that ends is answered yet", b"session_id" in done.stdout and done.returncode == 0, done)


def an_id_is_free_once_it_is_answered(client):
    refused = 0
    for _ in range(500):
        client.send_line('{"jsonrpc":"2.0","id":"same","method":"session.list"}')
        refused += "error" in client.answer("same")
    check("one id serves for one call after the other", refused == 0, refused)


def clients_that_go_while_they_close(workspace):
    for _ in range(12):
        server, client, connection = start_on_a_socket()
        ids = [client.result("session.create", policy=policy(workspace))["session_id"] for _ in range(3)]
        for session in ids:
            client.send("session.close", session_id=session)
        connection.shutdown(socket.SHUT_RDWR)
        if server.wait(PATIENCE) != 0:
            check("the server survives it", False, server.returncode)
            return
    check("a client may go while its sessions close", True)


def a_session_that_dies(client, workspace):
    session = client.result("session.create", policy=policy(workspace))["session_id"]
    parent = client.server.pid
    children = []
    for pid in os.listdir("/proc"):
        try:
            with open(f"/proc/{pid}/stat") as stat, open(f"/proc/{pid}/comm") as comm:
                fields = stat.read().rsplit(")", 1)[1].split()
                if int(fields[1]) == parent and comm.read().startswith("stella-fsgate"):
                    children.append((int(fields[19]), int(pid)))  # by age: numbers begin again
        except (OSError, ValueError, IndexError):
            pass
    newest = max(children)[1]
    os.kill(newest, signal.SIGKILL)
    client.wait(lambda: any(n["method"] == "session.ended" for n in client.notes))
    check("its death is told", client.noted("session.ended") == [{"session_id": session, "reason": "died"}], client.notes)
    result = client.result("exec", session_id=session, command="true")
    check("it takes no command", result["error"]["code"] == "session-closed", result)
    client.result("session.close", session_id=session)


def a_socket(workspace, directory):
    path = f"{directory}/rpc.sock"
    left = socket.socket(socket.AF_UNIX)
    left.bind(path)
    left.close()  # nobody listens any more
    server = subprocess.Popen([PROGRAM, "serve", "--socket", path])
    clients = []
    deadline = time.monotonic() + PATIENCE
    while len(clients) < 2 and time.monotonic() < deadline:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(path)
        except OSError:
            time.sleep(0.02)
            continue
        clients.append((connection, Client(connection.makefile("rb"), connection.makefile("wb"))))
    check("a socket takes several clients, also where a dead one was", len(clients) == 2)
    check("it is for its user alone", os.stat(path).st_mode & 0o777 == 0o600, oct(os.stat(path).st_mode))
    (one, first), (two, second) = clients
    session = first.result("session.create", policy=policy(workspace))["session_id"]
    check("a session is its client's", second.result("session.list")["sessions"] == []
          and "error" in second.call("exec", session_id=session, command="true"))
    check("and works for that one", first.result("exec", session_id=session, command="echo x")["stdout"] == "x\n")
    busy = subprocess.run([PROGRAM, "serve", "--socket", path], stderr=subprocess.PIPE, timeout=PATIENCE)
    check("a second server is refused", busy.returncode == 125 and b"in use" in busy.stderr, busy)
    server.send_signal(signal.SIGTERM)
    check("it ends, and takes its socket away", server.wait(PATIENCE) == 0 and not os.path.exists(path))
    one.close()
    two.close()


def main():
    directory = tempfile.mkdtemp(prefix="stella-serve-")
    workspace, state = f"{directory}/workspace", f"{directory}/state"
    os.mkdir(workspace)
    os.environ["STELLA_STATE_DIR"] = state
    try:
        server, client = start()
        client.server = server
        messages_that_make_no_sense(client)
        backends(client, workspace)
        session = sessions(client, workspace)
        commands(client, session, workspace)
        streams_and_cancel(client, session)
        client.notes.clear()
        live_processes(client, session)
        many_at_once(client, session)
        an_id_is_free_once_it_is_answered(client)
        a_session_that_dies(client, workspace)
        check("a session closes once", client.result("session.close", session_id=session) == {}
              and "error" in client.call("session.close", session_id=session))
        server.stdin.close()
        check("the server ends with its client", server.wait(PATIENCE) == 0)
        a_client_that_does_not_read(workspace)
        clients_that_go_while_they_close(workspace)
        the_end_of_a_client(workspace, state)
        a_socket(workspace, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{passed} passed, {failures} failed, 0 skipped")
    return 1 if failures else 0


sys.exit(main())
