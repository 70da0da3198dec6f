import ArgumentParser
import OperonArguments
import OperonTerminal

struct Graph: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Draw a graph file: as a tree, or for Graphviz or Mermaid."
    )

    @OptionGroup var graphFile: GraphFileArguments

    @Option(help: "tree, dot or mermaid.")
    var format: GraphRendering.Format = .tree

    func run() throws {
        let graph = try graphFile.load()
        let output = FileOutput.standardOutput
        let style = TerminalStyle(
            environment: Environment.current,
            isTerminal: output.isTerminal
        )
        output.write(Array(GraphRendering(graph.description).text(format, style: style).utf8))
    }
}

extension GraphRendering.Format: ExpressibleByArgument {}
