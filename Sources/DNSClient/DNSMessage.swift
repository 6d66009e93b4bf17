// DNS messages (RFC 1035 section 4): writes queries and reads answers. Pure, limited in size, and
// safe against compression loops.

import InternetMessage
import MailAuth
import Support

/// The wire format, as far as one query and its answer need it.
package enum DNSMessage {
    /// Class IN.
    package static let classIN: UInt16 = 1
    package static let typeCNAME: UInt16 = 5
    package static let typeSOA: UInt16 = 6
    package static let typeOPT: UInt16 = 41
    /// Octets of a message header.
    package static let headerLength = 12
    /// Octets of the OPT record that ends a query (RFC 6891 section 6.1.2).
    package static let optLength = 11
    /// CNAMEs that are followed within one answer; a longer chain is a temporary failure.
    package static let maximumChain = 16

    /// Writes a recursive query with an OPT record; nil for a name that `DomainName.queryable`
    /// refuses.
    package static func question(
        id: UInt16, name: String, type: UInt16, udpPayload: UInt16
    ) -> [UInt8]? {
        guard let name = wireName(name) else { return nil }
        var message: [UInt8] = [
            UInt8(id >> 8), UInt8(id & 0xFF), 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 1,
        ]
        message += name + [UInt8(type >> 8), UInt8(type & 0xFF), 0, UInt8(classIN)]
        message += [
            0, 0, UInt8(typeOPT), UInt8(udpPayload >> 8), UInt8(udpPayload & 0xFF), 0, 0, 0, 0, 0,
            0,
        ]
        return message
    }

    /// The uncompressed wire form of a name, lower case; the empty name is the root.
    package static func wireName(_ name: String) -> [UInt8]? {
        if name.isEmpty || name == "." { return [0] }
        guard let name = DomainName.queryable(name) else { return nil }
        var wire: [UInt8] = []
        for label in name.utf8.split(separator: UInt8(ascii: ".")) {
            wire.append(UInt8(label.count))
            wire += label
        }
        return wire + [0]
    }

    /// The content of one message.
    package enum Reply: Sendable, Hashable {
        /// An answer, and the seconds for which it may be kept; nil if the message
        /// gives none (RFC 2308 section 5).
        case answer(DNSAnswer, ttl: Int64?)
        /// The server did not understand the query, perhaps because of its OPT record (RFC 6891
        /// section 7).
        case formatError
        /// Anything that gives no information about the name.
        case unusable(String)
    }

    /// Reads the answer to a query.
    ///
    /// - Parameters:
    ///   - bytes: the whole message.
    ///   - name: the requested name.
    ///   - type: its type.
    package static func reply(
        _ bytes: UnsafeBufferPointer<UInt8>, to name: String, _ type: DNSRecordType
    ) -> Reply {
        var reader = DNSReader(bytes)
        guard let asked = wireName(name), let header = reader.header(), header.isResponse else {
            return .unusable("garbage")
        }
        guard header.counts.question == 1 else {
            return header.code == 1 && header.counts.question == 0
                ? .formatError : .unusable("garbage")
        }
        guard let question = reader.name(), let askedType = reader.uint16(),
            let askedClass = reader.uint16(),
            question == asked, askedType == type.code, askedClass == classIN
        else { return .unusable("a response to another query") }
        switch header.code {
        case 0, 3: break
        case 1: return .formatError
        case 2: return .unusable("SERVFAIL")
        case 5: return .unusable("REFUSED")
        default: return .unusable("response code \(header.code)")
        }
        guard !header.isTruncated else { return .unusable("truncated answer") }
        return body(&reader, header: header, asked: asked, type: type)
    }

    private static func body(
        _ reader: inout DNSReader, header: DNSReader.Header, asked: [UInt8], type: DNSRecordType
    ) -> Reply {
        var aliases: [[UInt8]: (target: [UInt8], ttl: Int64)] = [:]
        var found: [[UInt8]: (records: [DNSRecord], ttl: Int64)] = [:]
        for _ in 0..<header.counts.answer {
            guard let record = reader.record() else { return .unusable("garbage") }
            guard record.class == classIN else { continue }
            if record.type == typeCNAME {
                var data = reader.at(record.data)
                guard let target = data.name(), data.position == record.data.upperBound else {
                    return .unusable("garbage")
                }
                aliases[record.owner] = (target, record.ttl)
            } else if record.type == type.code {
                guard let value = reader.value(record, type) else { return .unusable("garbage") }
                found[record.owner, default: ([], record.ttl)].records += value
                found[record.owner]?.ttl.lower(to: record.ttl)
            }
        }
        var owner = asked
        var visited: Set<[UInt8]> = [asked]
        var ttl = Int64.max
        for _ in 0...maximumChain {
            if header.code == 0, let match = found[owner] {
                ttl = min(ttl, match.ttl)
                // All records may have been dropped because of names without a text form.
                return .answer(match.records.isEmpty ? .noData : .records(match.records), ttl: ttl)
            }
            guard let alias = aliases[owner] else {
                let negative: DNSAnswer = header.code == 3 ? .nxDomain : .noData
                guard let limit = negativeTTL(&reader, count: header.counts.authority) else {
                    return .answer(negative, ttl: nil)
                }
                return .answer(negative, ttl: min(ttl, limit))
            }
            guard visited.insert(alias.target).inserted else { return .unusable("CNAME loop") }
            owner = alias.target
            ttl = min(ttl, alias.ttl)
        }
        return .unusable("CNAME chain too long")
    }

    /// The smaller of the SOA record's TTL and its MINIMUM field (RFC 2308 section
    /// 5); nil if there is none.
    private static func negativeTTL(_ reader: inout DNSReader, count: Int) -> Int64? {
        for _ in 0..<count {
            guard let record = reader.record() else { return nil }
            guard record.type == typeSOA, record.class == classIN else { continue }
            var data = reader.at(record.data)
            guard data.name() != nil, data.name() != nil,
                record.data.upperBound - data.position == 20
            else { return nil }
            data.position += 16
            guard let minimum = data.ttl() else { return nil }
            return min(record.ttl, minimum)
        }
        return nil
    }
}

extension Int64 {
    fileprivate mutating func lower(to other: Int64) { self = Swift.min(self, other) }
}

extension DNSRecordType {
    /// The TYPE value (RFC 1035 section 3.2.2, RFC 3596).
    package var code: UInt16 {
        switch self {
        case .a: 1
        case .ptr: 12
        case .mx: 15
        case .txt: 16
        case .aaaa: 28
        }
    }
}
