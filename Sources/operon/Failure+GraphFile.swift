import OperonArguments
import OperonGraphFile

extension Failure {
    /// A wrong graph file, with every problem and its position.
    ///
    /// - Parameter hint: A line for people after the problems.
    init(_ error: GraphFileError, hint: String? = nil) {
        self.init(
            ExitStatus.usage,
            hint.map { "\(error.description)\n\($0)" } ?? error.description,
            problems: error.problems.map { problem in
                Problem(
                    code: problem.code.rawValue,
                    file: problem.file,
                    line: problem.line > 0 ? problem.line : nil,
                    column: problem.column > 0 ? problem.column : nil,
                    message: problem.message
                )
            }
        )
    }
}
