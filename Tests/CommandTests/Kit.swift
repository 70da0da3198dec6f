// The programs under test, the scenes they play in, and the coordinators that they ask.
@_exported import ClusterKit
@_exported import OperonFaultKit
