// A table that, once full, forgets its oldest entry.

/// Values by name, the newest `limit` of them.
struct BoundedTable<Value: Sendable>: Sendable {
    private let limit: Int
    private var values: [String: Value] = [:]
    /// Names in the order of insertion; those before `start` were forgotten.
    private var order: [String] = []
    private var start = 0

    init(limit: Int) { self.limit = limit }

    /// Setting an existing name keeps its position; nil cannot be set.
    subscript(name: String) -> Value? {
        get { values[name] }
        set {
            guard let newValue else { return }
            if values.updateValue(newValue, forKey: name) == nil { order.append(name) }
            guard values.count > limit, order.indices.contains(start) else { return }
            values[order[start]] = nil
            start += 1
            // On average, each name is moved once.
            if start > limit {
                order.removeFirst(start)
                start = 0
            }
        }
    }
}
