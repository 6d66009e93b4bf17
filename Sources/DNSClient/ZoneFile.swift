// Zones as JSON: `postern explain --dns FILE`, vectors and test servers.

import Foundation
import MailAuth

/// A zone file: `{"name": {"TXT": ["…"], "A": ["…"], "AAAA": ["…"], "MX": [[10, "mx.example"]],
/// "PTR": ["…"], "CNAME": "…"}}`. Instead of records there may be `{"error":
/// "NXDOMAIN|NODATA|SERVFAIL|TIMEOUT"}`, for a type or for the whole name. A name that is not in
/// the file does not exist.
package struct ZoneFile: Sendable, Decodable {
    /// The nodes by name, as written.
    package let nodes: [String: ZoneResolver.Node]

    /// A resolver that answers from the file.
    package var resolver: ZoneResolver { ZoneResolver(nodes) }

    /// Reads JSON text. Throws an error with the problem and its place.
    package init(json: Data) throws {
        do {
            self = try JSONDecoder().decode(ZoneFile.self, from: json)
        } catch let error as DecodingError {
            throw DNSClientError(description: "zone file: \(Self.describe(error))")
        }
    }

    package init(from decoder: any Decoder) throws {
        let names = try decoder.container(keyedBy: Key.self)
        var nodes: [String: ZoneResolver.Node] = [:]
        for name in names.allKeys {
            let values = try names.nestedContainer(keyedBy: Key.self, forKey: name)
            var node = ZoneResolver.Node()
            for key in values.allKeys {
                switch key.stringValue {
                case "error": node.failure = try Self.failure(values, key)
                case "CNAME": node.alias = try values.decode(String.self, forKey: key)
                default:
                    // Zones may contain types that are never queried here: NS, SOA, the SPF type of
                    // RFC 4408.
                    guard let type = DNSRecordType(rawValue: key.stringValue.uppercased()) else {
                        continue
                    }
                    if let object = try? values.nestedContainer(keyedBy: Key.self, forKey: key) {
                        node.failures[type] = try Self.failure(object, Key("error"))
                    } else {
                        node.records[type] = try Self.records(values, key, type)
                    }
                }
            }
            nodes[name.stringValue] = node
        }
        self.nodes = nodes
    }

    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(_ text: String) { stringValue = text }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { return nil }
    }

    private static func failure(
        _ container: KeyedDecodingContainer<Key>, _ key: Key
    ) throws -> ZoneResolver.Failure {
        guard
            let failure = ZoneResolver.Failure(
                rawValue: try container.decode(String.self, forKey: key))
        else {
            throw DecodingError.dataCorruptedError(
                forKey: key, in: container,
                debugDescription: "neither NXDOMAIN, NODATA, SERVFAIL nor TIMEOUT")
        }
        return failure
    }

    private static func records(
        _ container: KeyedDecodingContainer<Key>, _ key: Key, _ type: DNSRecordType
    ) throws -> [DNSRecord] {
        var list = try container.nestedUnkeyedContainer(forKey: key)
        var records: [DNSRecord] = []
        while !list.isAtEnd {
            switch type {
            case .mx:
                var pair = try list.nestedUnkeyedContainer()
                records.append(
                    .mx(
                        preference: try pair.decode(UInt16.self),
                        exchange: try name(pair.decode(String.self))))
            case .txt: records.append(.txt(Array(try list.decode(String.self).utf8)))
            case .ptr: records.append(.ptr(try name(list.decode(String.self))))
            case .a, .aaaa:
                let text = try list.decode(String.self)
                let bytes = Array(text.utf8)[...]
                guard let octets = type == .a ? IPAddress.ipv4(bytes) : IPAddress.ipv6(bytes) else {
                    throw DecodingError.dataCorruptedError(
                        forKey: key, in: container,
                        debugDescription: "\(text) is no \(type == .a ? "IPv4" : "IPv6") address")
                }
                records.append(.address(octets))
            }
        }
        return records
    }

    private static func name(_ text: String) -> String {
        text.hasSuffix(".") ? String(text.dropLast()) : text
    }

    private static func describe(_ error: DecodingError) -> String {
        switch error {
        case .dataCorrupted(let context), .keyNotFound(_, let context),
            .typeMismatch(_, let context),
            .valueNotFound(_, let context):
            let path = context.codingPath.map(\.stringValue).joined(separator: " → ")
            return path.isEmpty ? context.debugDescription : "\(path): \(context.debugDescription)"
        @unknown default: return "not readable"
        }
    }
}
