"""A headless Chromium that opens pages, looked at over its debugging pipe: no package beside the browser's is needed."""

import base64
import json
import os
import select
import signal
import subprocess
import time

SECONDS = 30  # for one answer


class Browser:
    """`with Browser(program, folder) as browser`; `folder` is its home."""

    def __init__(self, program, folder):
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        os.set_inheritable(to_browser, True)
        os.set_inheritable(from_browser, True)
        # It takes commands at 3 and answers at 4. As root, it has no sandbox; the pages are our own.
        self.process = subprocess.Popen(
            ["bash", "-c", 'exec "$0" "${@:3}" 3<&"$1" 4>&"$2"', program, str(to_browser), str(from_browser), "--headless",
             "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe", f"--user-data-dir={folder}",
             "--no-first-run", "--disable-background-networking", "--disable-component-update", "about:blank"],
            pass_fds=(to_browser, from_browser), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(folder)}, start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self.rest, self.number, self.events = b"", 0, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.ask(domain + ".enable")
        self.ask("Emulation.setFocusEmulationEnabled", enabled=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # All its processes: those that remain would write into the folder while it is removed.
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)

    def ask(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if hasattr(self, "session"):
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next_message(method)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def next_message(self, what):
        deadline = time.monotonic() + SECONDS
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.read_end], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self.read_end, 1 << 20) if ready else b""
            if not data:
                raise RuntimeError(f"the browser {'is gone' if ready else 'does not answer'}: {what}")
            self.rest += data
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def open(self, url, width, height, scheme):
        """What the browser had to say until the page was there: (problems, addresses that it asked for)."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events = []
        self.ask("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.next_message(url))
        self.value("document.readyState")
        problems, asked = [], []
        for event in self.events:
            method, about = event.get("method"), event.get("params", {})
            if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                problems.append(json.dumps(about))
            elif method == "Network.requestWillBeSent":
                asked.append(about["request"]["url"])
        return problems, asked

    def value(self, expression):
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def spoken(self):
        """What a screen reader gets, in its order: a dictionary of role, name, description and level each."""
        nodes = {node["nodeId"]: node for node in self.ask("Accessibility.getFullAXTree")["nodes"]}
        heard = []

        def walk(node):
            if not node.get("ignored"):
                level = next((p["value"]["value"] for p in node.get("properties", []) if p["name"] == "level"), None)
                heard.append({"level": level, **{what: node.get(what, {}).get("value", "") for what in ("role", "name", "description")}})
            for child in node.get("childIds", []):
                if child in nodes:
                    walk(nodes[child])

        walk(next(node for node in nodes.values() if "parentId" not in node))
        return heard

    def press(self, key, code, text=""):
        """A key as a person presses it; `code` is its virtual key code."""
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                     **({"text": text} if kind == "keyDown" and text else {}))

    def until(self, expression):
        """Waits until a condition of the page holds."""
        deadline = time.monotonic() + SECONDS
        while not self.value(expression):
            assert time.monotonic() < deadline, f"not true: {expression}"

    def picture(self, path):
        """The whole page as a PNG, for people."""
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))
