"""The fake cluster over HTTP, on a free port of this machine."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, urlsplit

from videoflow.testing.kubernetes._api import FakeCluster, encoded
from videoflow.testing.kubernetes._faults import Request


class FakeApiServer:
    """Serves a `FakeCluster` at `url`, from `with` to its end.

    >>> from videoflow.testing.kubernetes import FakeApiServer, FakeCluster
    >>> with FakeApiServer(FakeCluster()) as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True

    Attributes:
        cluster: What is served.
    """

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self._stopping = threading.Event()
        verbs = {f"do_{verb}": _Handler.serve for verb in ("GET", "POST", "PUT", "PATCH", "DELETE")}
        members = {"cluster": cluster, "stopping": self._stopping, **verbs}
        handler = type("Handler", (_Handler,), members)
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def kubeconfig(self, namespace: str = "default") -> str:
        """Returns the text of a kubeconfig file that names this server."""
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "fake", "cluster": {"server": self.url}}],
                "users": [{"name": "fake", "user": {}}],
                "contexts": [
                    {"name": "fake", "context": {"cluster": "fake", "user": "fake", "namespace": namespace}}
                ],
                "current-context": "fake",
            }
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    cluster: FakeCluster
    stopping: threading.Event

    def log_message(self, *args: object) -> None:
        pass

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def serve(self) -> None:
        request = self._request()
        if request is None:
            self._send(
                415, b'{"kind":"Status","status":"Failure","code":415,"message":"only JSON is read here"}'
            )
            return
        if request.method == "GET" and request.query.get("watch") in ("1", "true"):
            self._watch(request)
            return
        response = self.cluster.handle(request)
        if response.hangs:
            self.stopping.wait()
        if response.hangs or response.dropped:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self._send(response.status, encoded(response))

    def _request(self) -> Request | None:
        split = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        text = self.rfile.read(length) if length else b""
        try:
            body = json.loads(text) if text else None
        except ValueError:
            return None
        return Request(
            method=self.command,
            path=split.path,
            query=dict(parse_qsl(split.query, keep_blank_values=True)),
            content_type=(self.headers.get("Content-Type") or "").partition(";")[0],
            body=body,
            client=self.headers.get("User-Agent") or "",
        )

    def _send(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _watch(self, request: Request) -> None:
        limit = float(request.query.get("timeoutSeconds") or 3600)
        end = monotonic() + limit
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        for event in self.cluster.watch(request, lambda: self.stopping.is_set() or monotonic() > end):
            line = json.dumps(event).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
