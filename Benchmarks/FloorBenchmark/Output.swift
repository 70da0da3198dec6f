import Foundation
import OperonModel

/// One line on standard output. Values are JSON already.
func printJSON(_ fields: [(name: String, value: String)]) {
    print("{" + fields.map { "\"\($0.name)\":\($0.value)" }.joined(separator: ",") + "}")
}

func rounded(_ value: Double) -> String { String(format: "%.3f", value) }
