// What DNS records say, kept with their text: one domain's records are read for every message that it sends.

import Glibc
import Synchronization

/// Parsed records by their exact text. A text always parses to the same, so nothing here grows old: whether a domain has the
/// record at all is the resolver's to know.
final class ParsedRecords<Value: Sendable>: Sendable {
    /// Octets of a text that is kept; a longer one is parsed each time.
    private let longest: Int
    /// Texts kept, and octets of all of them; what a text parses to takes up to eight times as many. Beyond either all are
    /// forgotten.
    private let (capacity, octets): (Int, Int)
    private let parse: @Sendable ([UInt8]) -> Value
    private let known = Mutex<(values: [Text: Value], octets: Int)>(([:], 0))

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

    init(capacity: Int = 512, octets: Int = 262_144, longest: Int = 2_048, parse: @escaping @Sendable ([UInt8]) -> Value) {
        (self.capacity, self.octets) = (capacity, octets)
        self.longest = longest
        self.parse = parse
    }

    subscript(text: [UInt8]) -> Value {
        guard text.count <= longest else { return parse(text) }
        let key = Text(octets: text)
        if let value = known.withLock({ $0.values[key] }) { return value }
        let value = parse(text)
        known.withLock { known in
            if known.values.count >= capacity || known.octets + text.count > octets { known = ([:], 0) }
            // Another thread may have parsed it meanwhile.
            if known.values.updateValue(value, forKey: key) == nil { known.octets += text.count }
        }
        return value
    }

    /// How many texts are kept.
    var count: Int { known.withLock { $0.values.count } }
}
