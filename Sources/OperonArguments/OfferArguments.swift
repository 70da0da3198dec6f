import ArgumentParser
package import OperonModel
package import OperonRuntime

/// What a worker offers besides slots.
package struct OfferArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Offer these amounts, separated by commas: gpus=2,licences=3.",
            discussion: """
                The worker offers cpus, memory and gpus as its machine has them. An amount that is \
                given here replaces or adds to them: at most 16 resources in all. cpus has up to \
                three decimals, memory is a size such as 8GiB, and all others are whole numbers \
                from 1, gpus at most 4096.
                """,
            valueName: "name=amount,…"
        ),
        transform: { try Self.amounts($0) }
    )
    private var resources: ResourceAmounts?

    @Option(
        help: ArgumentHelp(
            "A label that operations can ask for: region=eu. May be repeated.",
            discussion: """
                The worker has the labels arch, host, name and os by itself, and at most 64 in \
                all. A name has 1 to 64 letters, digits, “.”, “_”, “-” and “/”, a value 1 to 256 \
                bytes.
                """,
            valueName: "name=value"
        ),
        transform: { try Self.label($0) }
    )
    private var label: [WorkerLabel] = []

    @Option(
        help: ArgumentHelp(
            "Make control groups here, for operations with enforce: own, or a path.",
            discussion: """
                The worker holds an operation with “enforce: true” to its cpus and its memory \
                with control groups (cgroups, version 2). “own” stands for the group in which the \
                worker is started. Without this option, the worker runs no such operation.
                """,
            valueName: "group"
        ),
        transform: { try Self.place($0) }
    )
    private var controlGroup: ControlGroupPlace?

    package init() {}

    package var isEmpty: Bool { resources == nil && label.isEmpty && controlGroup == nil }

    package var controlGroups: ControlGroupPlace? { controlGroup }

    package var amounts: ResourceAmounts { resources ?? [] }

    package var workerLabels: [WorkerLabel] { label }

    /// - Throws: What a person reads who gave them although operations run elsewhere.
    package func checkUnused() throws {
        guard !isEmpty else { return }
        throw ValidationError(
            "--resources, --label and --control-group are of a worker: with a broker, give them to "
                + "operon-worker"
        )
    }

    package func validate() throws {
        var offer = WorkerOffer(resources: amounts)
        for one in label {
            guard !offer.labels.contains(where: { $0.name == one.name }) else {
                throw ValidationError("--label \(one.name) is there twice")
            }
            offer.set(one)
        }
        do throws(Refusal) {
            try offer.check(Limits())
        } catch {
            throw ValidationError("\(error)")
        }
    }

    private static func place(_ text: String) throws -> ControlGroupPlace {
        guard let place = ControlGroupPlace(text: text) else {
            throw ValidationError(
                "it must be “own” or the absolute path of a control group"
            )
        }
        return place
    }

    private static func amounts(_ text: String) throws -> ResourceAmounts {
        var amounts: ResourceAmounts = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let (name, value) = try split(part, "NAME=AMOUNT")
            if let meant = ResourceText.meant(by: name) {
                throw ValidationError(
                    "“\(name)” is not the name of a resource; did you mean “\(meant)”?"
                )
            }
            guard let amount = ResourceText.amount(value, of: name) else {
                let hint = ResourceText.hint(name)
                throw ValidationError("\(name)=\(value): \(name) must be \(hint)")
            }
            guard amounts[name] == nil else {
                throw ValidationError("\(name) is there twice")
            }
            amounts[name] = amount
        }
        return amounts
    }

    private static func label(_ text: String) throws -> WorkerLabel {
        let (name, value) = try split(text[...], "NAME=VALUE")
        return WorkerLabel(name, value)
    }

    private static func split(
        _ text: Substring,
        _ form: String
    ) throws -> (name: String, value: String) {
        guard let equals = text.firstIndex(of: "="), equals > text.startIndex else {
            throw ValidationError("“\(text)” must have the form \(form)")
        }
        let name = String(text[..<equals])
        guard ResourceText.isName(name) else {
            throw ValidationError("“\(name)” \(ResourceText.nameHint)")
        }
        return (name, String(text[text.index(after: equals)...]))
    }
}
