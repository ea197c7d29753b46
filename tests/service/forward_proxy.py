"""A real forward proxy on loopback: it opens tunnels for TLS."""

import base64
import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ForwardProxy(ThreadingHTTPServer):
    """``asked``: the first line of each request that came."""

    def __init__(self, credentials: str) -> None:
        super().__init__(("127.0.0.1", 0), _Tunnel)
        self.asked: list[str] = []
        self.expected = f"Basic {base64.b64encode(credentials.encode()).decode()}"
        self.address = f"http://{credentials}@127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _Tunnel(BaseHTTPRequestHandler):
    server: ForwardProxy

    def do_CONNECT(self) -> None:
        self.server.asked.append(self.requestline)
        if self.headers["Proxy-Authorization"] != self.server.expected:
            self.send_error(407)
            return
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port))) as service:
            self.send_response(200)
            self.end_headers()
            ways = ((service, self.connection), (self.connection, service))
            threads = [threading.Thread(target=_pour, args=way, daemon=True) for way in ways]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    def log_message(self, *_args: object) -> None:
        """Quiet."""


def _pour(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(65536):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
