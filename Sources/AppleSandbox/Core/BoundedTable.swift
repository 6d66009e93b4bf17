// A table that forgets what was put in first once it is full.

/// Values by name, the newest `limit` of them.
struct BoundedTable<Value: Sendable>: Sendable {
    private let limit: Int
    private var values: [String: Value] = [:]
    /// Names in the order in which they came; those before `start` were forgotten.
    private var order: [String] = []
    private var start = 0

    init(limit: Int) { self.limit = limit }

    /// Setting a name that is there keeps its place; nil cannot be set.
    subscript(name: String) -> Value? {
        get { values[name] }
        set {
            guard let newValue else { return }
            if values.updateValue(newValue, forKey: name) == nil { order.append(name) }
            guard values.count > limit, order.indices.contains(start) else { return }
            values[order[start]] = nil
            start += 1
            // Each name is moved once on average.
            if start > limit {
                order.removeFirst(start)
                start = 0
            }
        }
    }
}
