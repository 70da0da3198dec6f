import FoundationEssentials
import Operon

/// Reads a page, and returns the pages that it links to, each once, in order; `nil`: there is no such
/// page. That is an answer and no failure: a failure would skip what comes behind it.
struct Visit: Operation {
    var site: String
    var page: String

    func main(_ context: OperationContext) async throws -> [String]? {
        let file = "\(site)/\(page)"
        guard FileManager.default.fileExists(atPath: file) else { return nil }
        let text = try String(contentsOf: URL(filePath: file), encoding: .utf8)
        var links: [String] = []
        for part in text.split(separator: "href=\"").dropFirst() {
            let link = String(part.prefix { $0 != "\"" })
            if !link.contains("/"), !links.contains(link) { links.append(link) }
        }
        return links
    }
}

/// One round of the crawl: it depends on the visits of the round before, adds a visit for each page
/// that nobody has seen yet, and the round behind those, and waits for that. So the first round
/// ends with the last page.
struct Round: Operation {
    var site: String
    var map: String
    var number = 1
    /// The pages that were visited or are about to be, in the order of finding.
    var seen: [String] = []

    func main(_ context: OperationContext) async throws {
        var new: [String] = number == 1 ? ["index.html"] : []
        for visit in context.dependencies {
            guard let links = try context.output(of: visit, as: [String]?.self) else { continue }
            new += links.filter { !seen.contains($0) && !new.contains($0) }
        }
        context.log("round \(number): \(new.count) new pages")
        guard !new.isEmpty else { return try writeMap() }

        // Names are unique in the graph, and the same in another attempt: adding is safe to repeat.
        let first = number == 1 ? context.operationName : firstName
        var visits: [String] = []
        for page in new {
            let name = "\(first) \(page)"
            try await context.addOperation(Visit(site: site, page: page), named: name)
            visits.append(name)
        }
        let next = "\(first) round \(number + 1)"
        var round = self
        round.number += 1
        round.seen += new
        round.firstName = first
        try await context.addOperation(round, named: next, after: visits)
        // Without a slot meanwhile: one slot is enough for any depth.
        try await context.wait(for: [next])
    }

    /// The name of the first round, by which this crawl's names begin.
    private var firstName = ""

    init(site: String, map: String) {
        self.site = site
        self.map = map
    }

    private func writeMap() throws {
        let text = seen.map { $0 + "\n" }.joined()
        try Data(text.utf8).write(to: URL(filePath: map), options: .atomic)
    }
}
