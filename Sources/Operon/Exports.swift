// Values that appear in the library's interface: priorities, conditions, errors, graph files.
@_exported public import OperonModel
