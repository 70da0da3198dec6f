"""What schemathesis does not know of the types that the API takes; see scripts/check-api."""
import schemathesis


@schemathesis.serializer("application/jsonl")
def json_lines(context, value):
    """Lines are a text; what is no text cannot be lines, so it is sent as no UTF-8 at all."""
    return value.encode() if isinstance(value, str) else b"\xff"
