import OperonModel
import OperonTerminal
import Testing

/// How repeated operations are shown as one.
@Suite struct ElementFoldingTests {
    private static func operation(
        _ name: String,
        _ dependencies: [String] = [],
        isNothing: Bool = false
    ) -> OperationDescription {
        let command = CommandDescription(arguments: ["true"])
        var operation = OperationDescription(
            name: name,
            work: isNothing ? .nothing : .command(command)
        )
        operation.dependencies = dependencies.map { DependencyDescription($0) }
        return operation
    }

    /// Names end with “!” if the operation does nothing, and with “+” if it adds elements.
    private static func plain(_ name: String) -> String {
        String(name.prefix { $0 != "!" && $0 != "+" })
    }

    private static func kind(_ name: String) -> String {
        switch name.last {
        case "!": Work.nothingKind
        case "+": Work.forEachKind
        default: Work.commandKind
        }
    }

    private static func view(
        _ index: UInt32,
        _ name: String,
        _ outcome: OutcomeKind?,
        kind: String = Work.commandKind
    ) -> OperationView {
        var view = OperationView(
            graph: 3,
            index: index,
            name: name,
            kind: kind,
            queue: "default",
            priority: .normal,
            state: outcome == nil ? .executing : .finished
        )
        view.outcome = outcome
        view.attempts = 2
        return view
    }

    private static let sweep = GraphDescription(
        name: "g",
        operations: [
            operation("a"), operation("r[1]", ["a"]), operation("r[2]", ["a", "r[1]"]),
            operation("r", ["r[1]", "r[2]"], isNothing: true), operation("s[1]", ["r[1]"]),
            operation("s[2]", ["r[2]"]), operation("s", ["s[1]", "s[2]"], isNothing: true),
            operation("z", ["r", "s[1]"]),
        ]
    )

    @Test func `elements and the group that follows them are one repeated operation`() {
        let groups = ElementFolding(Self.sweep.operations).groups
        #expect(groups.map(\.name) == ["r", "s"])
        #expect(groups.map(\.elements) == [1..<3, 4..<6])
    }

    @Test(arguments: [
        // Without a group behind them, with another group, with a group that does something.
        ["r[1]", "r[2]"], ["r[1]", "x!", "r!"], ["r[1]", "s!"], ["r[1]", "r"], ["r!", "r[1]"],
    ])
    func `operations that only look like elements stay as they are`(names: [String]) {
        var folding = ElementFolding()
        for name in names {
            folding.add(Self.plain(name), kind: Self.kind(name))
        }
        #expect(folding.groups == [])
    }

    @Test func `brackets in names belong to the operation that has them`() {
        var folding = ElementFolding()
        for name in ["b[x]", "a[b][1]", "a[b][2]", "a[b]!"] {
            folding.add(Self.plain(name), kind: Self.kind(name))
        }
        #expect(folding.groups.map(\.title) == ["a[b][*]"])
        #expect(folding.groups.map(\.elements) == [1..<3])
    }

    @Test func `elements that are added later belong to the group, wherever they come`() {
        var folding = ElementFolding()
        let names = [
            "list", "r.forEach+", "r!", "a[b].forEach+", "a[b]!", "r[1]", "r[2]", "z", "a[b][1]",
            "r[3]", "x[1]",
        ]
        let findings = names.map { folding.add(Self.plain($0), kind: Self.kind($0)) }
        #expect(
            findings == [
                nil, nil, .group(0), nil, .group(1), .element(0), .element(0), nil, .element(1),
                .element(0), nil,
            ]
        )
        #expect(folding.groups.map(\.title) == ["r[*]", "a[b][*]"])
        #expect(folding.groups.map(\.indices) == [[5..<7, 9..<10], [8..<9]])
        #expect(folding.groups.map(\.adding) == [1, 3])
        #expect(folding.group(ofAdded: "a[b][9]") == 1)
        #expect(folding.group(ofAdded: "r.forEach") == nil)
    }

    @Test(arguments: [
        ["r.forEach", "r!", "r[1]"], ["r.forEach+", "s!", "r[1]"], ["r.forEach+", "r", "r[1]"],
        ["r.forEach+", "x", "r!", "r[1]"], ["r+", "r!", "r[1]"],
    ])
    func `what only looks like the adding of elements stays as it is`(names: [String]) {
        var folding = ElementFolding()
        for name in names { folding.add(Self.plain(name), kind: Self.kind(name)) }
        #expect(folding.groups == [])
    }

    @Test func `a list counts added elements in the row of their group, and shows what adds`() {
        let text = ViewText(style: TerminalStyle(environment: [:], isTerminal: false), width: nil)
        for isAdded in [false, true] {
            var folding = OperationFolding()
            folding.add(
                Self.view(0, "r.forEach", isAdded ? .succeeded : nil, kind: Work.forEachKind)
            )
            folding.add(Self.view(1, "r", nil, kind: Work.nothingKind))
            folding.add(Self.view(2, "z", .succeeded))
            if isAdded {
                folding.add(Self.view(3, "r[1]", .failed))
                let areElements = [Self.view(4, "r[2]", nil), Self.view(5, "y", nil)].map {
                    folding.addElement($0)
                }
                #expect(areElements == [true, false])
            }
            #expect(folding.isGrowing)
            let lines = text.operations(Array(folding.rows)).map {
                $0.split(separator: " ").prefix(6).joined(separator: " ")
            }
            #expect(
                lines.dropFirst()
                    == (isAdded
                    ? ["3/r[*] 2: 1 executing, 1 failed", "3/z succeeded default normal 2"]
                    : [
                        "3/r.forEach executing default normal 2", "3/r[*] no elements 0",
                        "3/z succeeded default normal 2",
                    ])[...]
            )
        }
    }

    @Test(
        arguments: [
            (nil, ["a", "r[*]", "s[*]", "z"]), (0, ["r[*]", "s[*]", "z"]),
            (1, ["r[*]", "s[*]", "z"]), (2, ["s[*]", "z"]), (3, ["s[*]", "z"]), (5, ["z"]),
            (6, []), (9, []),
        ] as [(UInt32?, [String])]
    )
    func `a later page has no row for elements of an earlier row`(after: UInt32?, rows: [String]) {
        var folding = OperationFolding(after: after)
        folding.add(Self.view(0, "a", .succeeded))
        folding.add(Self.view(1, "r.forEach", .succeeded, kind: Work.forEachKind))
        folding.add(Self.view(2, "r", nil, kind: Work.nothingKind))
        folding.add(Self.view(3, "s[1]", .succeeded))
        folding.add(Self.view(4, "s[2]", .failed))
        folding.add(Self.view(5, "s", nil, kind: Work.nothingKind))
        folding.add(Self.view(6, "z", nil))
        for index in UInt32(7)...9 { folding.add(Self.view(index, "r[\(index)]", .failed)) }

        let found = folding.rows.map { row in
            switch row {
            case .operation(let operation): operation.name
            case .repeated(let row): row.title
            }
        }
        #expect(found == rows)
        // Each of them counts all elements, wherever the page begins.
        for case .repeated(let row) in folding.rows {
            #expect(row.counts.failed == (row.title == "r[*]" ? 3 : 1))
        }
    }

    @Test func `the states of elements are whole where queues and priorities would be`() {
        var folding = OperationFolding()
        for index in UInt32(0)..<170 {
            let outcome: OutcomeKind = index == 0 ? .failed : index == 1 ? .skipped : .succeeded
            folding.add(Self.view(index, "s[\(index)]", outcome))
        }
        folding.add(Self.view(170, "s", nil, kind: Work.nothingKind))
        func shown(_ width: Int) -> [String] {
            ViewText(style: unicode, width: width).operations(Array(folding.rows))
        }
        let counts = "170: 168 succeeded, 1 failed, 1 skipped"
        #expect(shown(80).last == "3/s[*]     \(counts)  default  normal         340")
        #expect(shown(70).last == "3/s[*]     \(counts)  default       340")
        #expect(shown(52).last == "3/s[*]     \(counts)")
        let narrow = shown(40)
        #expect(narrow.allSatisfy { TerminalText.width($0) <= 40 }, "\(narrow)")
    }

    @Test func `a row says how many of its elements were up to date`() {
        var folding = OperationFolding()
        for index in UInt32(0)..<3 {
            var element = Self.view(index, "s[\(index)]", .succeeded)
            if index > 0 { element.isUpToDate = true }
            folding.add(element)
        }
        folding.add(Self.view(3, "s", nil, kind: Work.nothingKind))
        let lines = ViewText(style: unicode, width: 80).operations(Array(folding.rows))
        #expect(lines.last?.contains("3: 3 succeeded (2 up to date)") == true, "\(lines)")
    }

    @Test func `a drawing has one operation for elements that are not there yet`() {
        var adding = Self.operation("r.forEach", ["list", "setup"])
        adding.work = .registered(kind: Work.forEachKind, input: .empty)
        let graph = GraphDescription(
            name: "g",
            operations: [
                Self.operation("list"), Self.operation("setup"), adding,
                Self.operation("r", ["r.forEach"], isNothing: true), Self.operation("z", ["r"]),
            ]
        )
        #expect(graph.folded.operations.map(\.name) == ["list", "setup", "r[*]", "z"])
        #expect(graph.folded.operations[2].dependencies.map(\.name) == ["list", "setup"])
        #expect(graph.folded.operations[3].dependencies.map(\.name) == ["r[*]"])
    }

    @Test func `a drawing has one operation for all elements`() {
        let folded = Self.sweep.folded
        #expect(folded.operations.map(\.name) == ["a", "r[*]", "s[*]", "z"])
        #expect(
            folded.operations.map { $0.dependencies.map(\.name) }
                == [[], ["a"], ["r[*]"], ["r[*]", "s[*]"]]
        )
    }

    @Test func `a list has one row for all elements, and the others as they are`() {
        var folding = OperationFolding()
        folding.add(Self.view(0, "a", .succeeded))
        folding.add(Self.view(1, "r[1]", .failed))
        #expect(folding.isWithinGroup)
        folding.add(Self.view(2, "r[2]", nil))
        folding.add(Self.view(3, "r", nil, kind: Work.nothingKind))
        #expect(!folding.isWithinGroup)
        #expect(folding.last == 3)

        let text = ViewText(style: TerminalStyle(environment: [:], isTerminal: false), width: nil)
        #expect(
            text.operations(Array(folding.rows)) == [
                "OPERATION  STATE                     QUEUE    PRIORITY  ATTEMPTS",
                "3/a        succeeded                 default  normal           2",
                "3/r[*]     2: 1 executing, 1 failed  default  normal           4",
            ]
        )
    }

    @Test func `on a pipe, elements have a line for each tenth of them and for each failure`() async
    {
        let recorder = ScreenOutput()
        let style = TerminalStyle(environment: [:], isTerminal: false)
        let display = ProgressDisplay(
            printer: LinePrinter(output: recorder, style: style),
            startedAt: .zero
        )
        let group = await display.addGroup(name: "g")
        await display.operationsAdded(21, to: group, work: 21)
        let repeated = await display.addRepeated(name: "r[*]")
        await display.elementsAdded(20, to: repeated, work: 20)
        func move(_ name: String, _ old: ProgressPhase, _ new: ProgressPhase) async {
            let isElement = name.hasPrefix("r[")
            let move = ProgressDisplay.Move(
                name,
                from: old,
                to: new,
                work: 1,
                repeated: isElement ? repeated : nil
            )
            await display.operationsMoved([move], in: group, at: .zero)
        }

        for number in 1...20 {
            await move("r[\(number)]", .pending, .executing)
            await move("r[\(number)]", .executing, number == 3 ? .failed : .succeeded)
        }
        await move("r", .pending, .skipped)

        let lines = recorder.writes.joined().split(separator: "\n").map(String.init)
        #expect(lines.count == 13)
        #expect(lines.first == "[0/21] r[*]: 0 of 20 finished, 1 running")
        #expect(lines[2] == "[3/21] failed r[3]")
        #expect(lines[3] == "[4/21] r[*]: 4 of 20 finished, 1 failed")
        #expect(
            lines.suffix(2) == ["[20/21] r[*]: 20 of 20 finished, 1 failed", "[21/21] skipped r"]
        )
    }
}
