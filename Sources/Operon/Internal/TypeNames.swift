internal import Synchronization

/// The names of types without their modules. Each name is requested from the runtime only once,
/// because that takes as long as all other steps of adding an operation together.
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
