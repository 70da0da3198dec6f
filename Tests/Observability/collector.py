"""A collector of OpenTelemetry, which decodes with the messages of opentelemetry-proto."""

import gzip
import http.server
import threading
import time

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

ANSWER = trace_service_pb2.ExportTraceServiceResponse().SerializeToString()


class Span:
    """A span, and who sent it."""

    def __init__(self, span, scope, resource):
        self.raw = span
        self.scope = scope
        self.resource = resource
        self.name = span.name
        self.trace = span.trace_id.hex()
        self.id = span.span_id.hex()
        self.parent = span.parent_span_id.hex()
        self.start = span.start_time_unix_nano
        self.end = span.end_time_unix_nano
        self.links = {link.span_id.hex() for link in span.links}
        self.attributes = values(span.attributes)

    def __repr__(self):
        return f"{self.scope}:{self.name}"


def values(attributes):
    """Attributes as a dictionary."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


class Collector:
    """Listens on a port of the loopback interface and keeps what it gets."""

    def __init__(self):
        self.lock = threading.Lock()
        self.received = []
        self.requests = []
        # What was sent, as it was before it was compressed.
        self.bodies = []
        # The next answers: a status, a body, and further headers.
        self.refusals = []
        # Seconds between the bytes of an answer.
        self.drip = 0
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """Takes one request."""

            protocol_version = "HTTP/1.1"

            def do_POST(self):
                """The one method of OTLP over HTTP."""
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers["Content-Encoding"] == "gzip":
                    body = gzip.decompress(body)
                status, answer, headers = collector.take(self.path, self.headers, body)
                self.send_response(status)
                self.send_header("Content-Type", "application/x-protobuf")
                for name, value in headers.items():
                    self.send_header(name, value)
                if collector.drip:
                    answer = bytes(100)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                try:
                    for byte in answer if collector.drip else [answer]:
                        self.wfile.write(bytes([byte]) if collector.drip else byte)
                        time.sleep(collector.drip)
                except OSError:
                    # The other side has waited long enough.
                    self.close_connection = True

            def log_message(self, *arguments):
                """The tests say what is wrong."""

        class Server(http.server.ThreadingHTTPServer):
            """Says nothing of clients that go away."""

            def handle_error(self, request, client_address):
                """The tests say what is wrong."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, path, headers, body):
        """Keeps the spans of a request and returns the answer."""
        request = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
        with self.lock:
            self.requests.append((path, dict(headers)))
            self.bodies.append(body)
            if self.refusals:
                return self.refusals.pop(0)
            for part in request.resource_spans:
                resource = values(part.resource.attributes)
                for group in part.scope_spans:
                    self.received += [Span(span, group.scope.name, resource)
                                      for span in group.spans]
        return 200, ANSWER, {}

    def spans(self, graph=None):
        """What was received; with `graph`, of the graphs with this name."""
        with self.lock:
            received = list(self.received)
        return [span for span in received
                if graph is None or span.attributes.get("operon.graph") == graph]

    def close(self):
        """Takes nothing more."""
        self.server.shutdown()
        self.server.server_close()
