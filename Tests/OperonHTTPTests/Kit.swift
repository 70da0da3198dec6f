// The coordinator behind the server.
@_exported import ClusterKit
