import OperonArguments
import OperonGraphFile

extension Failure {
    /// A wrong graph file, with every problem and its position.
    init(_ error: GraphFileError) {
        self.init(
            ExitStatus.usage,
            error.description,
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
