internal import Synchronization

/// The names of types without their modules, each asked of the runtime once: it takes as long to
/// answer as everything else that is done to add an operation.
enum TypeNames {
    private static let names = Mutex<[ObjectIdentifier: String]>([:])

    static func name(of type: any Any.Type) -> String {
        let id = ObjectIdentifier(type)
        if let name = names.withLock({ $0[id] }) { return name }
        let name = String(describing: type)
        names.withLock { $0[id] = name }
        return name
    }
}
