"""A real forward proxy on loopback: CONNECT for TLS, whole addresses for plain http."""

import base64
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

REFUSAL = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"


@dataclass
class ForwardProxy:
    """``asked``: the first line of each request that came, as the proxy reads it."""

    credentials: str = ""
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.address = f"http://{self.credentials and self.credentials + '@'}127.0.0.1:{port}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        with client:
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(65536)
            first, _, rest = head.partition(b"\r\n")
            self.asked.append(first.decode())
            if self.credentials:
                expected = base64.b64encode(self.credentials.encode())
                if b"Proxy-Authorization: Basic " + expected not in rest:
                    client.sendall(REFUSAL)
                    return
            method, target, version = first.split(b" ")
            if method == b"CONNECT":
                host, _, port = target.decode().rpartition(":")
                path = ""
            else:
                parts = urlsplit(target.decode())
                host, port, path = str(parts.hostname), str(parts.port), parts.path or "/"
            with socket.create_connection((host, int(port))) as server:
                if method == b"CONNECT":
                    client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                else:
                    server.sendall(b"%s %s %s\r\n%s" % (method, path.encode(), version, rest))
                back = threading.Thread(target=_pour, args=(server, client), daemon=True)
                back.start()
                _pour(client, server)
                back.join()


def _pour(source: socket.socket, target: socket.socket) -> None:
    try:
        while chunk := source.recv(65536):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


@contextmanager
def forward_proxy(credentials: str = "") -> Iterator[ForwardProxy]:
    proxy = ForwardProxy(credentials)
    try:
        yield proxy
    finally:
        proxy.close()
