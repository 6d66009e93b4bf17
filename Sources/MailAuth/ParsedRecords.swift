// A cache of parsed DNS records by their text, as one domain's records are read for every message
// that it sends.

import Glibc
import Synchronization

/// Parsed records by their exact text. A text always parses to the same value, so no entry expires.
/// Only the resolver knows whether the domain still has the record.
final class ParsedRecords<Value: Sendable>: Sendable {
    /// Longest text that is kept, in octets. A longer one is parsed each time.
    private let longest: Int
    /// Maximum texts, and maximum octets of all texts; the parsed values need up to eight times as
    /// much. Beyond either limit all are dropped.
    private let (capacity, octets): (Int, Int)
    private let parse: @Sendable ([UInt8]) -> Value
    private let known = Mutex<(values: [Text: Value], octets: Int)>(([:], 0))

    /// Hashes and compares all octets together; an array does it one by one.
    private struct Text: Hashable, Sendable {
        let octets: [UInt8]

        static func == (left: Text, right: Text) -> Bool {
            guard left.octets.count == right.octets.count else { return false }
            return left.octets.withUnsafeBytes { left in
                right.octets.withUnsafeBytes { right in
                    guard let one = left.baseAddress, let other = right.baseAddress else {
                        return true
                    }
                    return memcmp(one, other, left.count) == 0
                }
            }
        }

        func hash(into hasher: inout Hasher) {
            octets.withUnsafeBytes { hasher.combine(bytes: $0) }
        }
    }

    init(
        capacity: Int = 512, octets: Int = 262_144, longest: Int = 2_048,
        parse: @escaping @Sendable ([UInt8]) -> Value
    ) {
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
            if known.values.count >= capacity || known.octets + text.count > octets {
                known = ([:], 0)
            }
            // Another thread may have parsed it at the same time.
            if known.values.updateValue(value, forKey: key) == nil { known.octets += text.count }
        }
        return value
    }

    /// The number of texts in the cache.
    var count: Int { known.withLock { $0.values.count } }
}
