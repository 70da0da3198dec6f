import OperonModel
import Testing

@testable import OperonGraphFile

/// `resources` and `workers` in a graph file.
struct ResourceFieldTests {
    private func read(_ text: String) throws -> GraphDescription {
        try Fixture.read(text, "g.yaml").graph
    }

    private func problem(_ text: String) -> String {
        let problems = Fixture.problems(text, "g.yaml").map(\.description)
        return problems.count == 1
            ? String(problems[0].dropFirst("g.yaml:".count)) : "\(problems.count): \(problems)"
    }

    @Test func `amounts and conditions are read, and defaults are replaced`() throws {
        let graph = try read(
            """
            defaults: { resources: { cpus: 1 }, workers: { region: eu } }
            operations:
              a: { run: x }
              b:
                run: x
                resources: { memory: 1.5GiB, cpus: 0.25, gpus: 1, licences: 3 }
                workers:
                  arch: [arm64, x86_64]
                  disk: { exists: true }
                  zone: { notIn: [a, b] }
                  size: { in: [5] }
              c: { run: x, resources: null, workers: ~ }
              d: { external: true }
            """
        )

        let (a, b, c, d) = (
            graph.operations[0], graph.operations[1], graph.operations[2], graph.operations[3]
        )
        #expect(a.resources == [.cpus(1)])
        #expect(a.workers == [.equals("region", "eu")])
        let licences = ResourceAmount(name: "licences", amount: 3)
        #expect(b.resources == [.memory(bytes: 3 << 29), .cpus(0.25), .gpus(1), licences])
        #expect(
            b.workers == [
                WorkerRequirement("arch", .oneOf(["arm64", "x86_64"])),
                WorkerRequirement("disk", .exists(true)),
                WorkerRequirement("zone", .noneOf(["a", "b"])),
                .equals("size", "5"),
            ]
        )
        #expect(c.resources.isEmpty && c.workers.isEmpty)
        #expect(d.resources.isEmpty && d.workers.isEmpty)
    }

    @Test(arguments: [
        (
            "resources: 3",
            "2:27: “resources” must be a map such as { cpus: 2, memory: 8GiB }, not 3"
        ),
        (
            "resources: { cpus: 0 }",
            "2:35: “cpus” must be a number of processors such as 2 or 0.5, from 0.001 to"
                + " 1125899906842.624, with at most three decimals, not 0"
        ),
        (
            "resources: { gpus: 1.5 }",
            "2:35: “gpus” must be a whole number from 1 to 1125899906842624, not 1.5"
        ),
        (
            "resources: { memory: 8GB }",
            "2:37: “memory” must be a size such as 64KiB, 512MiB, 2GiB, or a number of bytes"
                + " from 1 to 1024TiB, not “8GB”"
        ),
        (
            "resources: { \"a b\": 1 }",
            "2:29: “a b” cannot be the name of a resource: a name has 1 to 64 letters, digits, “.”,"
                + " “_”, “-” and “/”"
        ),
        (
            "resorces: { cpus: 1 }",
            "2:16: unknown key “resorces”; did you mean “resources”?"
        ),
        (
            "workers: { zone: { notin: a } }",
            "2:35: unknown key “notin”; did you mean “notIn”?"
        ),
        (
            "workers: { zone: { in: a, exists: true } }",
            "2:33: “zone” must be one condition: in, notIn or exists, not a map"
        ),
        (
            "workers: { zone: [] }",
            "2:33: “zone” must be a value or a list of at least one value, not a list"
        ),
        ("workers: { zone: { exists: 3 } }", "2:43: “exists” must be true or false, not 3"),
    ])
    func `a mistake is told where it is`(fields: String, message: String) {
        #expect(problem("operations:\n  r: { run: x, \(fields) }") == message)
    }

    @Test(arguments: [
        (Double.infinity, "cpus is over 1125899906842.624"),
        (1e30, "cpus is over 1125899906842.624"), (0, "cpus is below 0.001"),
        (-.infinity, "cpus is below 0.001"), (.nan, "cpus is below 0.001"),
    ])
    func `too many or too few processors in code are refused with the bound`(
        count: Double,
        why: String
    ) {
        let amounts: ResourceAmounts = [.cpus(count)]
        #expect(throws: Refusal.invalid(field: "r", why: why)) {
            try amounts.check(Limits(), of: "r")
        }
    }

    @Test func `enforce is read, and as a default it counts for commands that have amounts`() throws
    {
        let graph = try read(
            """
            defaults: { resources: { memory: 1GiB }, enforce: true }
            operations:
              a: { run: x }
              b: { run: x, enforce: false }
              c: { run: x, resources: { gpus: 1 } }
              d: { wait: 1s }
              e: { external: true }
              f: { run: x, resources: { cpus: 1 }, enforce: null }
              g: { run: x, enforce: true }
            """
        )

        let enforced = graph.operations.filter(\.enforcesResources).map(\.name)
        #expect(enforced == ["a", "g"])
    }

    @Test(arguments: [
        (
            "{ run: x, resources: { gpus: 1 }, enforce: true }",
            "2:40: “enforce” of operation “r” needs “cpus” or “memory” in its “resources”"
        ),
        (
            "{ run: x, resources: null, enforce: true }",
            "2:33: “enforce” of operation “r” needs “cpus” or “memory” in its “resources”"
        ),
        (
            "{ run: x, resources: { cpus: 1 }, enforce: 2 }",
            "2:49: “enforce” must be true or false, not 2"
        ),
        (
            "{ wait: 1s, resources: { cpus: 1 }, enforce: true }",
            "2:42: “enforce” of operation “r” is only allowed with “run” and “command”"
        ),
        (
            "{ run: x, enforces: true }",
            "2:16: unknown key “enforces”; did you mean “enforce”?"
        ),
    ])
    func `enforce that cannot be is told where it is`(operation: String, message: String) {
        #expect(problem("operations:\n  r: \(operation)") == message)
    }

    @Test func `a problem with a resource is told once, without enforce`() {
        let text = "operations:\n  r: { run: x, resources: { cpus: 0 }, enforce: true }"
        #expect(problem(text).hasPrefix("2:35: “cpus” must be a number"))
    }

    @Test func `enforce without any resources is refused by the graph, at the operation`() throws {
        let text = "operations:\n  q: { run: x }\n  r: { run: x, enforce: true }"
        let file = try Fixture.read(text, "g.yaml")

        let refusal = try #require(throws: Refusal.self) { try file.graph.check(Limits()) }
        #expect(
            file.located(refusal).problems.map(\.description)
                == ["g.yaml:3:3: enforce of “r”: its resources have neither cpus nor memory"]
        )
    }

    @Test func `an external operation runs on no worker`() {
        #expect(
            problem("operations:\n  r: { external: true, resources: { cpus: 1 } }")
                == "2:24: “resources” of operation “r” is only allowed with what a worker runs"
        )
    }
}
