import ArgumentParser
import OperonArguments
import OperonGraphFile
import OperonModel
import OperonReport
import OperonTerminal

struct Graph: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "graph",
        abstract: "Draw a graph file, or close an open graph of a coordinator.",
        discussion: """
            operon graph FILE draws the file; operon graph draw --help lists the options. To draw \
            a file named “close”: operon graph ./close.
            """,
        subcommands: [GraphDraw.self, GraphClose.self],
        defaultSubcommand: GraphDraw.self
    )
}

struct GraphDraw: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "draw",
        abstract:
            "Draw a graph file: as a tree, as a picture, for Graphviz or Mermaid; or as JSON.",
        usage: "operon graph <file> [<options>]"
    )

    @OptionGroup var graphFile: GraphFileArguments

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case tree
        case dot
        case mermaid
        case svg
        case html
        case json

        fileprivate var rendering: GraphRendering.Format? {
            switch self {
            case .tree: .tree
            case .dot: .dot
            case .mermaid: .mermaid
            case .svg, .html, .json: nil
            }
        }
    }

    @Option(
        help: ArgumentHelp(
            "tree, dot, mermaid, svg, html or json.",
            discussion: """
                json is a graph file of what would be submitted: values instead of parameters, \
                and an operation for each element of a repeated one.
                """
        )
    )
    var format: Format = .tree

    @Flag(help: "Draw the elements of repeated operations instead of one operation for all.")
    var elements = false

    func run() throws {
        let graph = try graphFile.load()
        let output = FileOutput.standardOutput
        let style = TerminalStyle(
            environment: Environment.current,
            isTerminal: output.isTerminal
        )
        if format == .svg || format == .html {
            let drawing = PictureDrawing(picture(of: graph))
            return output.write(format == .svg ? drawing.svgFile() : drawing.page())
        }
        guard let format = format.rendering else {
            do throws(GraphFileError) {
                let json = try GraphFile.encodeJSON(graph.description)
                return output.write(json)
            } catch {
                throw Failure(error)
            }
        }
        let drawn = elements ? graph.description : graph.description.folded
        output.write(Array(GraphRendering(drawn).text(format, style: style).utf8))
    }

    private func picture(of graph: LoadedGraph) -> Picture {
        let drawn = elements ? graph.description : graph.description.folded
        return Picture(
            drawn.operations.map { Picture.Operation(name: $0.name) },
            GraphShape(drawn),
            groups: ElementFolding(drawn.operations).groups,
            title: drawn.name
        )
    }
}
