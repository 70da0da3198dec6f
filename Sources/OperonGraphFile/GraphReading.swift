import OperonModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// What the readers of all formats share: an assembler, and how reading ends.
struct GraphReading {
    var assembler: GraphAssembler
    let file: String
    private let name: String

    init(file: String, options: GraphFileOptions, isYAML: Bool = false) {
        self.file = file
        name = options.name ?? Self.name(of: file)
        assembler = GraphAssembler(
            limits: options.limits,
            base: options.directory,
            isYAML: isYAML,
            given: options.parameters,
            expandedBytesMax: options.expandedBytesMax ?? options.limits.graphFileBytes
        )
        assembler.readsFiles = options.readsFiles
        assembler.parameters.isOfTrigger = options.isOfTrigger
        assembler.parameters.isAddition = options.isAddition
    }

    /// Returns the graph, or throws everything that is wrong.
    mutating func finish(_ stop: Stop?) throws(GraphFileError) -> GraphFile {
        var stop = stop
        if stop == nil, !assembler.hasOperations {
            stop = .problem(
                GraphFileError.Problem(
                    .missingKey,
                    at: .none,
                    "operations",
                    "the graph has no “operations”"
                )
            )
        }
        if stop == nil { stop = assembler.unknownParameter }
        if stop == nil, assembler.reader.fields.log.problems.isEmpty {
            do throws(Stop) { try assembler.resolveGroups() } catch { stop = error }
        }
        if let error = assembler.reader.fields.log.error(after: stop, file: file) { throw error }
        let (graph, sourceMap) = assembler.finish(name: name)
        var read = GraphFile(graph: graph, sourceMap: sourceMap, file: file)
        let warnings = assembler.reader.fields.log.warnings + assembler.shellWarnings
        read.warnings = warnings.map { warning in
            var warning = warning
            warning.file = file
            return warning
        }
        read.warnings += read.approvalWarnings(stated: assembler.reader.statedDefaults)
        return read
    }

    /// The name of the graph if the file gives none.
    static func name(of file: String) -> String {
        let name = Path.baseName(of: file)
        return name.isEmpty || name.hasControl ? "graph" : name
    }

    /// Whether `parameters` may be among the keys of the file: a fast search, so that files without
    /// parameters are walked only once.
    static func mentionsParameters(_ bytes: [UInt8]) -> Bool {
        let key = Array(GraphAssembler.parametersKey.utf8)
        return unsafe bytes.withUnsafeBytes { text in
            // benign: an empty file has no address, and no keys.
            guard var start = text.baseAddress else { return false }
            let end = unsafe start + text.count
            while unsafe end - start >= key.count,
                let found = unsafe memchr(start, Int32(key[0]), end - start - key.count + 1)
            {
                if unsafe memcmp(found, key, key.count) == 0 { return true }
                unsafe start = UnsafeRawPointer(found) + 1
            }
            return false
        }
    }

    static func refuseReplay(_ options: GraphFileOptions) throws(Stop) {
        guard options.replayScale != nil else { return }
        throw .problem(
            GraphFileError.Problem(
                .unsupported,
                at: .none,
                "--replay",
                "--replay is for WfFormat files, which have recorded run times"
            )
        )
    }

    static func empty() -> Stop {
        .problem(GraphFileError.Problem(.empty, at: .none, "", "the file is empty"))
    }
}
