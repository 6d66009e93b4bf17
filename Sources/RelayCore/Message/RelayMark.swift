// The mark on relayed messages. It detects a loop even if a reply has lost its Received fields.

import InternetMessage

/// `X-Postern-Mark: <hops> <key id><MAC>`. An incoming message with a mark of this installation is
/// in a loop. The hops in another installation's mark are added.
package struct RelayMark: Sendable {
    package static let fieldName = "X-Postern-Mark"
    private static let macDigits = 16

    private let keys: TokenKeys
    /// The prepared fields for mail with few hops, as nearly all mail has.
    private let usual: [HeaderField]

    package init(keys: TokenKeys) {
        self.keys = keys
        usual = (0..<16).map { Self.field(hops: $0, keys: keys) }
    }

    /// The field for a message that has made this number of hops.
    package func field(hops: Int) -> HeaderField {
        usual.indices.contains(hops) ? usual[hops] : Self.field(hops: hops, keys: keys)
    }

    private static func field(hops: Int, keys: TokenKeys) -> HeaderField {
        HeaderField(fieldName, "\(hops) \(keys.seal(label(hops), digits: macDigits))")
    }

    /// The information in the marks and Received fields of a message.
    package enum Trace: Sendable, Hashable {
        /// Relayed by this installation before.
        case ours
        case hops(Int)
    }

    package func trace(_ header: HeaderSection) -> Trace {
        var hops = 0
        for field in header.fields {
            if field.isNamed("Received") {
                hops += 1
            } else if field.isNamed(Self.fieldName) {
                let words = field.rawValue.split {
                    $0 == 0x20 || $0 == 0x09 || $0 == 0x0D || $0 == 0x0A
                }
                guard words.count == 2, let count = Int(String(decoding: words[0], as: UTF8.self)),
                    (0...10_000).contains(count)
                else { continue }
                if keys.isSeal(words[1], of: Self.label(count), digits: Self.macDigits) {
                    return .ours
                }
                hops += count
            }
        }
        return .hops(hops)
    }

    private static func label(_ hops: Int) -> String { "postern mark 1\n\(hops)" }
}
