"""/openapi/v2 and /openapi/v3: documents, their definitions and paths, and v2 as protobuf."""
