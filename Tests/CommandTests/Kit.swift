// The programs under test, and the scenes they play in: the same as for the fault tests.
@_exported import OperonFaultKit
