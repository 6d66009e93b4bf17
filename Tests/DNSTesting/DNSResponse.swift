// The server's side of a DNS message: questions read, answers written.

import DNSClient
import MailAuth

/// A question as the server read it.
package struct ReceivedQuestion: Sendable, Hashable {
    package enum Transport: String, Sendable, Hashable { case udp, tcp }
    /// Lower case, without trailing dot.
    package let name: String
    /// Nil for a type that no test asks for.
    package let type: DNSRecordType?
    package let transport: Transport
    /// Whether the question had an OPT record.
    package let hasOPT: Bool

    let id: [UInt8]
    /// The question section as received.
    let section: [UInt8]
    let udpPayload: Int

    /// Reads a message; nil where it is not a question with one name.
    init?(_ message: [UInt8], transport: Transport) {
        guard message.count > DNSMessage.headerLength, message[2] & 0x80 == 0, message[5] == 1
        else { return nil }
        var labels: [String] = []
        var index = DNSMessage.headerLength
        while index < message.count, message[index] != 0 {
            let length = Int(message[index])
            guard length < 64, index + 1 + length < message.count else { return nil }
            labels.append(String(decoding: message[(index + 1)...(index + length)], as: UTF8.self))
            index += length + 1
        }
        guard index + 5 <= message.count else { return nil }
        let code = UInt16(message[index + 1]) << 8 | UInt16(message[index + 2])
        name = labels.joined(separator: ".").lowercased()
        type = DNSRecordType.allCases.first { $0.code == code }
        self.transport = transport
        id = Array(message[..<2])
        section = Array(message[DNSMessage.headerLength..<(index + 5)])
        let rest = message[(index + 5)...]
        hasOPT = rest.count >= DNSMessage.optLength && message[11] == 1
        udpPayload =
            hasOPT ? Int(rest[rest.startIndex + 3]) << 8 | Int(rest[rest.startIndex + 4]) : 512
    }
}

/// Writes the answer to a question.
struct DNSResponse {
    /// RCODE.
    var code: UInt8 = 0
    var isTruncated = false
    private(set) var answers: [[UInt8]] = []
    private(set) var authority: [[UInt8]] = []

    mutating func add(_ record: DNSRecord, type: DNSRecordType, owner: String, ttl: UInt32) {
        let data: [UInt8]
        switch record {
        case .txt(let text):
            var strings: [UInt8] = text.isEmpty ? [0] : []
            var rest = text[...]
            while !rest.isEmpty {
                let part = rest.prefix(255)
                strings += [UInt8(part.count)] + part
                rest = rest.dropFirst(255)
            }
            data = strings
        case .address(let octets): data = octets
        case .mx(let preference, let exchange):
            data =
                [UInt8(preference >> 8), UInt8(preference & 0xFF)]
                + (DNSMessage.wireName(exchange) ?? [0])
        case .ptr(let name): data = DNSMessage.wireName(name) ?? [0]
        }
        answers.append(Self.record(owner, type.code, ttl, data))
    }

    mutating func add(alias target: String, owner: String, ttl: UInt32) {
        answers.append(
            Self.record(owner, DNSMessage.typeCNAME, ttl, DNSMessage.wireName(target) ?? [0]))
    }

    /// A SOA record at the root, whose MINIMUM is the time for which the
    /// negative answer may be kept.
    mutating func addSOA(minimum: UInt32) {
        let numbers = [1, 3600, 600, 86_400, minimum].flatMap(Self.octets)
        authority.append(Self.record("", DNSMessage.typeSOA, 86_400, [0, 0] + numbers))
    }

    func bytes(to question: ReceivedQuestion) -> [UInt8] {
        let flags: [UInt8] = [0x81 | (isTruncated ? 0x02 : 0), 0x80 | code]
        let kept = isTruncated ? ([], []) : (answers, authority)
        func count(_ records: [[UInt8]]) -> [UInt8] {
            [UInt8(records.count >> 8), UInt8(records.count & 0xFF)]
        }
        return question.id + flags + [0, 1] + count(kept.0) + count(kept.1) + [0, 0]
            + question.section
            + kept.0.joined() + kept.1.joined()
    }

    private static func octets(_ number: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
    }

    private static func record(
        _ owner: String, _ type: UInt16, _ ttl: UInt32, _ data: [UInt8]
    ) -> [UInt8] {
        (DNSMessage.wireName(owner) ?? [0]) + [UInt8(type >> 8), UInt8(type & 0xFF), 0, 1]
            + octets(ttl)
            + [UInt8(data.count >> 8), UInt8(data.count & 0xFF)] + data
    }
}
