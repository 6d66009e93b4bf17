// What DNS records say, kept with their text: one domain's records are read for every message that it sends.

import Glibc
import Synchronization

/// Parsed records by their exact text. A text always parses to the same, so nothing here grows old: whether a domain has the record at
/// all is the resolver's to know.
final class ParsedRecords<Value: Sendable>: Sendable {
    /// Octets of a text that is kept; a longer one is parsed each time.
    private let longest: Int
    /// Texts kept. Beyond it all are forgotten.
    private let capacity: Int
    private let parse: @Sendable ([UInt8]) -> Value
    private let known = Mutex<[Text: Value]>([:])

    /// Octets hashed and compared in one piece; those of an array are taken one by one.
    private struct Text: Hashable, Sendable {
        let octets: [UInt8]

        static func == (left: Text, right: Text) -> Bool {
            guard left.octets.count == right.octets.count else { return false }
            return left.octets.withUnsafeBytes { left in
                right.octets.withUnsafeBytes { right in
                    guard let one = left.baseAddress, let other = right.baseAddress else { return true }
                    return memcmp(one, other, left.count) == 0
                }
            }
        }

        func hash(into hasher: inout Hasher) { octets.withUnsafeBytes { hasher.combine(bytes: $0) } }
    }

    init(capacity: Int = 512, longest: Int = 2_048, parse: @escaping @Sendable ([UInt8]) -> Value) {
        self.capacity = capacity
        self.longest = longest
        self.parse = parse
    }

    subscript(text: [UInt8]) -> Value {
        guard text.count <= longest else { return parse(text) }
        let key = Text(octets: text)
        if let value = known.withLock({ $0[key] }) { return value }
        let value = parse(text)
        known.withLock { known in
            if known.count >= capacity { known.removeAll() }
            known[key] = value
        }
        return value
    }

    /// How many texts are kept.
    var count: Int { known.withLock { $0.count } }
}
