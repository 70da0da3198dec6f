package import OperonModel

/// Makes the operations that `forEach: { output: … }` stands for. A worker asks it, because only
/// then the output is there.
package protocol OutputElementReader: Sendable {
    /// Reads and checks an output as a whole, so that no operation is made from one that is partly
    /// wrong.
    ///
    /// - Parameters:
    ///   - template: the input of the operation that adds the elements.
    ///   - output: finds the output of an operation; `nil`: it left none.
    func elements(
        of template: Payload,
        output: (String) throws(OutputElementError) -> Payload?
    ) throws(OutputElementError) -> any OutputElements
}

/// The operations for the elements of one output, made piece by piece. Equal values give equal
/// operations.
package protocol OutputElements: Sendable {
    /// The name of the repeated operation.
    var name: String { get }
    /// The number of elements.
    var count: Int { get }
    /// Makes the operations for the next elements; none: there are no more.
    mutating func next(atMost count: Int) throws(OutputElementError) -> [OperationDescription]
}

/// Why no operations can be made from an output.
package struct OutputElementError: Error, Hashable, Sendable {
    /// A sentence that says what was found, and in which element.
    package let message: String

    package init(_ message: String) { self.message = message }
}
