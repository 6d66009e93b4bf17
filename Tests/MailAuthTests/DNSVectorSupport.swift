// Vectors with their DNS data, and a resolver that records its queries.

import Foundation
import Synchronization

@testable import MailAuth

/// Answers from a zone and keeps the queries in order.
final class RecordingResolver: DNSResolver {
    private let zone: ZoneResolver
    private let asked = Mutex<[String]>([])

    init(_ zone: ZoneResolver) { self.zone = zone }

    var questions: [String] { asked.withLock { $0 } }

    func query(_ name: String, _ type: DNSRecordType) -> DNSAnswer {
        asked.withLock { $0.append("\(name) \(type.rawValue)") }
        return zone.query(name, type)
    }
}

/// A zone in the form of vectors: `{"name": {"TXT": ["…"], "A": ["…"], "MX": [[10, "…"]], "error":
/// "TIMEOUT"}}`.
struct VectorZone: Decodable {
    private struct Value: Decodable {
        var texts: [String] = []
        var exchanges: [(UInt16, String)] = []
        var failure: ZoneResolver.Failure?

        init(from decoder: any Decoder) throws {
            if let list = try? decoder.singleValueContainer().decode([String].self) {
                texts = list
            } else if let word = try? decoder.singleValueContainer().decode(String.self) {
                failure = ZoneResolver.Failure(rawValue: word)
                texts = [word]
            } else {
                var list = try decoder.unkeyedContainer()
                while !list.isAtEnd {
                    var pair = try list.nestedUnkeyedContainer()
                    exchanges.append((try pair.decode(UInt16.self), try pair.decode(String.self)))
                }
            }
        }
    }

    let resolver: ZoneResolver

    init(from decoder: any Decoder) throws {
        var nodes: [String: ZoneResolver.Node] = [:]
        for (name, values) in try decoder.singleValueContainer().decode(
            [String: [String: Value]].self)
        {
            var node = ZoneResolver.Node()
            for (key, value) in values {
                switch key {
                case "TXT": node.records[.txt] = value.texts.map { .txt(Array($0.utf8)) }
                case "A":
                    node.records[.a] = value.texts.compactMap {
                        IPAddress($0).map { .address($0.octets) }
                    }
                case "AAAA":
                    node.records[.aaaa] = value.texts.compactMap {
                        IPAddress($0).map { .address($0.octets) }
                    }
                case "PTR": node.records[.ptr] = value.texts.map { .ptr($0) }
                case "MX":
                    node.records[.mx] = value.exchanges.map {
                        .mx(preference: $0.0, exchange: $0.1)
                    }
                case "CNAME": node.alias = value.texts.first
                case "error": node.failure = value.failure
                default:
                    throw DecodingError.dataCorrupted(
                        .init(
                            codingPath: decoder.codingPath, debugDescription: "unknown type \(key)")
                    )
                }
            }
            nodes[name] = node
        }
        resolver = ZoneResolver(nodes)
    }
}

/// Every JSON file of a vector folder, decoded; throws if there is none.
func vectors<Vector: Decodable>(_ folder: String, as type: Vector.Type) throws -> [Vector] {
    let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
        "Vectors/\(folder)")
    let files = try FileManager.default.contentsOfDirectory(
        at: path, includingPropertiesForKeys: nil
    )
    .filter { $0.pathExtension == "json" }.sorted { $0.path < $1.path }
    guard !files.isEmpty else {
        throw CocoaError(.fileNoSuchFile, userInfo: [NSFilePathErrorKey: path.path])
    }
    return try files.flatMap { try JSONDecoder().decode([Vector].self, from: Data(contentsOf: $0)) }
}
