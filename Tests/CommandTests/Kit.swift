// The programs under test, the folders they run in, and the coordinators that they call.
@_exported import ClusterKit
@_exported import OperonFaultKit
