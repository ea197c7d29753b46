"""Real servers on loopback: one that keeps its connections, and a forward proxy for TLS."""

import base64
import socket
import ssl
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    """Runs in a thread of its own until ``close``."""

    def __init__(
        self,
        handler: type["Handler"],
        proof: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        if proof is not None:
            self.socket = proof.wrap_socket(self.socket, server_side=True)
        # The number: how soon it notices that it is to end.
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args: object) -> None:
        """Quiet."""


class KeepingServer(Server):
    """``callers``: the client's port, for each request.

    ``most``: so many requests are answered on one connection. At the next one the server hangs up.
    """

    def __init__(
        self,
        proof: ssl.SSLContext | None = None,
        *,
        most: int = 1000,
    ) -> None:
        self.callers: list[int] = []
        self.most = most
        # Set while requests may be answered. Those that wait have a connection each.
        self.answering = threading.Event()
        self.answering.set()
        super().__init__(_Keeping, proof)
        self.origin = f"http{'s' if proof else ''}://127.0.0.1:{self.server_port}"


class _Keeping(Handler):
    server: KeepingServer

    def do_GET(self) -> None:
        port = self.client_address[1]
        is_over = self.server.callers.count(port) >= self.server.most
        self.server.callers.append(port)
        self.server.answering.wait(30)
        if is_over:
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.send_header("Set-Cookie", "followed=1; Path=/")
        self.send_header("X-Cookie-Seen", self.headers.get("Cookie", "none"))
        self.end_headers()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()


class ForwardProxy(Server):
    """``asked``: the first line of each request."""

    def __init__(self, credentials: str) -> None:
        self.expected = f"Basic {base64.b64encode(credentials.encode()).decode()}"
        self.asked: list[str] = []
        super().__init__(_Tunnel)
        self.address = f"http://{credentials}@127.0.0.1:{self.server_port}"


class _Tunnel(Handler):
    server: ForwardProxy

    def do_CONNECT(self) -> None:
        self.server.asked.append(self.requestline)
        self.close_connection = True
        if self.headers["Proxy-Authorization"] != self.server.expected:
            self.send_error(407)
            return
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port))) as service:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(
                target=_pour,
                args=(service, self.connection),
                daemon=True,
            )
            back.start()
            _pour(self.connection, service)
            back.join()


def _pour(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(65536):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
