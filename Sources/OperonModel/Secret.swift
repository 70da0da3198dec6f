/// A value that no text shows: what prints the fields of the value that has it, as `dump`, an
/// interpolation or a failed test does, prints `***` in its place.
///
/// ```swift
/// @Secret private(set) var privateKey: [UInt8]
/// ```
@propertyWrapper package struct Secret<Value> {
    package var wrappedValue: Value

    package init(wrappedValue: Value) { self.wrappedValue = wrappedValue }
}

extension Secret: Sendable where Value: Sendable {}
extension Secret: Equatable where Value: Equatable {}
extension Secret: Hashable where Value: Hashable {}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "***" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
