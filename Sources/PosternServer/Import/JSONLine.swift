// A JSON object a line.

import Foundation
import PosternStore

/// Reads lines of JSON objects with the columns as keys; values are strings, numbers, truth values or null.
enum JSONLine {
    /// Octets of one line.
    static let maximum = 65_536

    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    private struct Object: Decodable {
        var fields = ImportFields()

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Key.self)
            for key in container.allKeys {
                // A key that is none may be an inbox that slipped: it is not repeated.
                guard let column = ImportColumn(rawValue: key.stringValue) else {
                    throw StoreRefusal(.invalid, "a key is none of: \(ImportColumn.names)")
                }
                if try container.decodeNil(forKey: key) { continue }
                if let flag = try? container.decode(Bool.self, forKey: key) {
                    fields[column] = flag ? "true" : "false"
                } else if let number = try? container.decode(Int64.self, forKey: key) {
                    fields[column] = String(number)
                } else if let text = try? container.decode(String.self, forKey: key) {
                    fields[column] = text
                } else {
                    throw StoreRefusal(.invalid, "\(column.rawValue) is neither text, a whole number nor true or false")
                }
            }
        }
    }

    /// Throws `StoreRefusal` that says what is wrong without repeating the line.
    static func fields(_ octets: [UInt8]) throws -> ImportFields {
        guard octets.count <= maximum else { throw StoreRefusal(.invalid, "the line is longer than \(maximum) octets") }
        do {
            return try JSONDecoder().decode(Object.self, from: Data(octets)).fields
        } catch let refusal as StoreRefusal {
            throw refusal
        } catch DecodingError.typeMismatch {
            throw StoreRefusal(.invalid, "the line is no JSON object")
        } catch {
            throw StoreRefusal(.invalid, "the line is not JSON")
        }
    }
}
