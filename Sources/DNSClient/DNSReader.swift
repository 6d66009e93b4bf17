// A cursor over a DNS message (RFC 1035 section 4.1). Every read is checked against
// the end of the message.

import InternetMessage
import MailAuth

/// Reads names, numbers and records; nil means that the message is not well formed.
struct DNSReader {
    struct Header {
        let isResponse: Bool
        let isTruncated: Bool
        /// RCODE without the extension in an OPT record.
        let code: Int
        let counts: (question: Int, answer: Int, authority: Int)
    }

    struct Record {
        /// Lower case, uncompressed wire form.
        let owner: [UInt8]
        let type: UInt16
        let `class`: UInt16
        /// Seconds.
        let ttl: Int64
        /// Position of its data in the message.
        let data: Range<Int>
    }

    /// Longest name on the wire, in octets (RFC 1035 section 2.3.4).
    static let maximumName = 255

    /// Maximum compression pointers within one name; beyond: malformed. A name has at most 127
    /// labels, so an honest one needs no more.
    static let maximumPointers = 127

    private let bytes: UnsafeBufferPointer<UInt8>
    /// The next octet to read; always within 0...count.
    var position = 0

    init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    /// A cursor at the start of a record's data.
    func at(_ range: Range<Int>) -> DNSReader {
        var copy = self
        copy.position = range.lowerBound
        return copy
    }

    mutating func uint8() -> UInt8? {
        guard position < bytes.count else { return nil }
        defer { position += 1 }
        return bytes[position]
    }

    mutating func uint16() -> UInt16? {
        guard bytes.count - position >= 2 else { return nil }
        defer { position += 2 }
        return UInt16(bytes[position]) << 8 | UInt16(bytes[position + 1])
    }

    /// A TTL: 31 bits. A value with the highest bit set counts as zero (RFC 2181 section 8).
    mutating func ttl() -> Int64? {
        guard let high = uint16(), let low = uint16() else { return nil }
        return high & 0x8000 == 0 ? Int64(high) << 16 | Int64(low) : 0
    }

    mutating func header() -> Header? {
        guard uint16() != nil, let flags = uint16(), let questions = uint16(),
            let answers = uint16(), let authorities = uint16(),
            uint16() != nil
        else { return nil }
        return Header(
            isResponse: flags & 0x8000 != 0 && flags & 0x7800 == 0,
            isTruncated: flags & 0x0200 != 0, code: Int(flags & 0x0F),
            counts: (Int(questions), Int(answers), Int(authorities)))
    }

    /// A name in uncompressed wire form, in lower case. A pointer must lead to an earlier position
    /// than all before it, so that every chain ends.
    mutating func name() -> [UInt8]? {
        var name: [UInt8] = []
        var cursor = position
        var end: Int?
        var earliest = position
        var pointers = 0
        while true {
            guard cursor < bytes.count else { return nil }
            let length = Int(bytes[cursor])
            switch length {
            case 0:
                name.append(0)
                position = end ?? cursor + 1
                return name
            case 1...63:
                guard bytes.count - cursor > length, name.count + length + 2 <= Self.maximumName
                else { return nil }
                name.append(UInt8(length))
                for octet in bytes[(cursor + 1)...(cursor + length)] {
                    name.append(octet.asciiLowercased)
                }
                cursor += length + 1
            case 0xC0...0xFF:
                guard bytes.count - cursor >= 2 else { return nil }
                let target = (length & 0x3F) << 8 | Int(bytes[cursor + 1])
                if end == nil { end = cursor + 2 }
                pointers += 1
                guard target < earliest, pointers <= Self.maximumPointers else { return nil }
                earliest = target
                cursor = target
            default: return nil
            }
        }
    }

    mutating func record() -> Record? {
        guard let owner = name(), let type = uint16(), let `class` = uint16(), let ttl = ttl(),
            let length = uint16(),
            bytes.count - position >= Int(length)
        else { return nil }
        let data = position..<(position + Int(length))
        position = data.upperBound
        return Record(owner: owner, type: type, class: `class`, ttl: ttl, data: data)
    }

    /// The data of a record: one value, or none if it contains a name without a text form.
    func value(_ record: Record, _ type: DNSRecordType) -> [DNSRecord]? {
        var data = at(record.data)
        switch type {
        case .a, .aaaa:
            guard record.data.count == (type == .a ? 4 : 16) else { return nil }
            return [.address(Array(bytes[record.data]))]
        case .txt:
            var text: [UInt8] = []
            guard !record.data.isEmpty else { return nil }
            while data.position < record.data.upperBound {
                guard let length = data.uint8(),
                    record.data.upperBound - data.position >= Int(length)
                else { return nil }
                text += bytes[data.position..<(data.position + Int(length))]
                data.position += Int(length)
            }
            return [.txt(text)]
        case .mx:
            guard let preference = data.uint16(), let name = data.name(),
                data.position == record.data.upperBound
            else {
                return nil
            }
            return Self.text(name).map { [.mx(preference: preference, exchange: $0)] } ?? []
        case .ptr:
            guard let name = data.name(), data.position == record.data.upperBound else {
                return nil
            }
            return Self.text(name).map { [.ptr($0)] } ?? []
        }
    }

    /// The text of a wire name without trailing dot; empty for the root. Nil if a label contains a
    /// dot or an octet outside printable ASCII, since two names could then have the same text.
    private static func text(_ wire: [UInt8]) -> String? {
        var labels: [String] = []
        var index = 0
        while index < wire.count, wire[index] != 0 {
            let label = wire[(index + 1)...(index + Int(wire[index]))]
            guard label.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ".") }) else {
                return nil
            }
            labels.append(String(decoding: label, as: UTF8.self))
            index += label.count + 1
        }
        return labels.joined(separator: ".")
    }
}
