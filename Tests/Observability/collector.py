"""A collector of OpenTelemetry, which decodes with the messages of opentelemetry-proto."""

import http.server
import threading

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
        # The statuses of the next answers.
        self.refusals = []
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """Takes one request."""

            protocol_version = "HTTP/1.1"

            def do_POST(self):
                """The one method of OTLP over HTTP."""
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = collector.take(self.path, self.headers, body)
                answer = ANSWER if status == 200 else b""
                self.send_response(status)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *arguments):
                """The tests say what is wrong."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, path, headers, body):
        """Keeps the spans of a request and returns the status of its answer."""
        request = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
        with self.lock:
            self.requests.append((path, dict(headers)))
            if self.refusals:
                return self.refusals.pop(0)
            for part in request.resource_spans:
                resource = values(part.resource.attributes)
                for group in part.scope_spans:
                    self.received += [Span(span, group.scope.name, resource)
                                      for span in group.spans]
        return 200

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
