import ArgumentParser
import OperonArguments
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
        abstract: "Draw a graph file as a tree, or for Graphviz or Mermaid.",
        usage: "operon graph draw <file> [<options>]"
    )

    @OptionGroup var graphFile: GraphFileArguments

    @Option(help: "tree, dot or mermaid.")
    var format: GraphRendering.Format = .tree

    @Flag(help: "Draw the elements of repeated operations instead of one operation for all.")
    var elements = false

    func run() throws {
        let graph = try graphFile.load()
        let output = FileOutput.standardOutput
        let style = TerminalStyle(
            environment: Environment.current,
            isTerminal: output.isTerminal
        )
        let drawn = elements ? graph.description : graph.description.folded
        output.write(Array(GraphRendering(drawn).text(format, style: style).utf8))
    }
}

extension GraphRendering.Format: ExpressibleByArgument {}
